"""Transfers that need no look at what they do to themselves, against a look at their bytes."""

import random

import pytest

from emulator.checks import inside
from emulator.checks.inside import clash_of, is_simple
from emulator.device import Device
from emulator.dma.transfer import Part, Request, Side, Transfer
from formats.dtypes import Dtype
from formats.neuron_core import SBUF_PARTITION_STRIDE

_STEPS = {"HBM": (4, 8, 12, 16, 64), "SBUF": (4, 8, 16, SBUF_PARTITION_STRIDE)}


def side(chance: random.Random, space: str, run: int) -> Side:
    """Return runs somewhere in a few bytes of a memory."""
    dims = tuple((chance.choice(_STEPS[space]), chance.randint(2, 4)) for _ in range(chance.randrange(3)))
    address = 4 * chance.randrange(24)
    if space == "SBUF":
        address += SBUF_PARTITION_STRIDE * chance.randrange(2)
    return Side(space, chance.randrange(2) if space == "SBUF" else 0, address, dims, run, Dtype.UINT8)


def test_a_simple_transfer_does_nothing_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, device = random.Random(4), Device("trn2")
    transfers = []
    for _ in range(6000):
        run = chance.choice((4, 8))
        source = side(chance, chance.choice(("HBM", "SBUF")), run)
        target = source if chance.random() < 0.3 else side(chance, chance.choice(("HBM", "SBUF")), run)
        op = chance.choice(("copy", "copy", "transpose"))
        part = Part(op, ((source, target),), shape=(2, 1, 2, 1) if op == "transpose" else ())
        transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(part,)))
        transfers.append((transfer, is_simple(transfer), source is target))
    monkeypatch.setattr(inside, "is_simple", lambda _: False)
    clashes = {True: 0, False: 0}
    for transfer, simple, _ in transfers:
        clash = clash_of(device, transfer)
        assert not simple or clash is None
        clashes[clash is not None] += 1
    assert min(clashes.values()) > 100
    assert sum(simple for _, simple, is_same in transfers if is_same) > 100


def bytes_of(side: Side) -> list[int]:
    """Return the addresses of all bytes of a side, each as often as it is touched."""
    starts = [side.address]
    for step, count in side.dims:
        starts = [start + step * place for start in starts for place in range(count)]
    return [start + byte for start in starts for byte in range(side.run)]


def test_whatever_writes_a_byte_twice_is_told() -> None:
    chance, device = random.Random(5), Device("trn2")
    told = {True: 0, False: 0}
    for _ in range(4000):
        run = chance.choice((4, 8))
        spaces = chance.choice((("HBM", "SBUF"), ("SBUF", "HBM")))
        source, target = (side(chance, space, run) for space in spaces)
        part = Part("copy", ((source, target),))
        clash = clash_of(device, Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(part,))))
        touched = bytes_of(target)
        is_twice = len(touched) > len(set(touched))
        assert (clash is not None) == is_twice
        told[is_twice] += 1
    assert min(told.values()) > 100


def test_runs_that_overlap_within_partitions_are_told() -> None:
    """Steps from partition to partition leave room for more bytes than the runs have."""
    dims = (SBUF_PARTITION_STRIDE, 4), (4, 3)
    target, source = (Side(space, 0, 64, dims, 8, Dtype.UINT8) for space in ("SBUF", "HBM"))
    part = Part("copy", ((source, target),))
    transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=(part,)))
    assert not is_simple(transfer)
    clash = clash_of(Device("trn2"), transfer)
    assert clash is not None and clash.kind == "overlap"
