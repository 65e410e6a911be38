"""Rows of an indirect transfer all at once, against their parts one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma.binding import bind, bind_parts
from emulator.dma.regions import TransferRegions, regions_of
from emulator.dma.row_moves import _box, bind_rows
from emulator.dma.rows import Rows, RowsRequest
from emulator.dma.transfer import Limit, Part, Side, Transfer, facts_of
from emulator.faults import FaultError
from formats.dtypes import Dtype
from formats.isa import Nop
from tests.counting import counted

PARTITION = 0x40000
ROOM = 1 << 12
WIDTH = 1 << 14
TILES = np.s_[:48, :WIDTH]
NAMES = ("x", "y")


def shifted(side: Side, distance: int) -> Side:
    return side._replace(address=side.address + distance)


def is_inside(side: Side) -> bool:
    low, high = side.span
    return side.limit is None or (side.limit.address <= low and high <= side.limit.address + side.limit.nbytes)


def kept(source: Side, target: Side, moving: int) -> Iterator[tuple[Side, Side]]:
    """Yield the pair, or what is left of it run by run where the side that moves leaves its variable."""
    if is_inside((source, target)[moving]):
        yield source, target
        return
    for place in product(*(range(count) for _, count in source.dims)):
        pair = [
            shifted(side, sum(step * at for (step, _), at in zip(side.dims, place, strict=True)))._replace(dims=())
            for side in (source, target)
        ]
        if is_inside(pair[moving]):
            yield pair[0], pair[1]


def parts_of(
    op: str, sides: tuple[Side, Side], moving: int, numbers: list[int], index_step: int, row_step: int, skip: bool
) -> tuple[Part, ...]:
    """Return the parts as the word means them, a row after the other."""
    found = []
    for row, number in enumerate(numbers):
        pair = list(sides)
        pair[moving] = shifted(sides[moving], number * index_step)._replace(chosen=(number, row, index_step))
        pair[1 - moving] = shifted(sides[1 - moving], row * row_step)
        for source, target in kept(pair[0], pair[1], moving) if skip else ((pair[0], pair[1]),):
            found.append(Part(op, ((target, target), (source, target)) if op == "add" else ((source, target),)))
    return tuple(found)


@st.composite
def words(draw: Any) -> dict[str, Any]:
    """Return what an indirect word says: sides by space and place, indices, steps."""
    spaces = draw(st.sampled_from([("HBM", "SBUF"), ("SBUF", "HBM"), ("HBM", "HBM"), ("SBUF", "SBUF")]))
    op = draw(st.sampled_from(["copy", "copy", "cast", "add"]))
    first = draw(st.sampled_from([Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.INT32]))
    second = first if op == "copy" else draw(st.sampled_from([Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.INT8]))
    moving = draw(st.integers(0, 1))
    counts = draw(st.sampled_from([(), (), (1,), (3,), (2, 3)]))
    elements = draw(st.sampled_from([1, 2, 4, 7]))
    rows = draw(st.integers(0, 2) if draw(st.integers(0, 5)) == 0 else st.integers(3, 12))
    sides, steps = [], []
    for which, (space, dtype) in enumerate(zip(spaces, (first, second), strict=True)):
        run = elements * dtype.size
        step, dims = run, []
        for number, count in reversed(list(enumerate(counts))):
            if space == "SBUF" and number == 0 and draw(st.booleans()):
                dims.append((PARTITION * draw(st.sampled_from([1, 1, 2])), count))
                continue
            gap = (step + dtype.size * draw(st.integers(0, 2))) * draw(st.sampled_from([1, 1, 1, -1]))
            dims.append((gap, count))
            step = abs(gap) * count
        usual = [step, step, step + dtype.size, -step, dtype.size, 0]
        if space == "SBUF":
            usual += [PARTITION] * 6
        steps.append(draw(st.sampled_from(usual)))
        tensor, begin = draw(st.integers(0, 1)), draw(st.integers(0, draw(st.sampled_from([4, 300]))))
        sides.append((space, tensor, begin * dtype.size, tuple(reversed(dims)), run, dtype, which))
    low, high = draw(st.sampled_from([(0, 12), (0, 12), (0, 3), (-2, 12), (0, 90), (-70, 70), (0, 1 << 40)]))
    numbers = draw(st.lists(st.integers(low, high), min_size=rows, max_size=rows))
    if draw(st.booleans()):
        numbers = list(dict.fromkeys(numbers))
    if numbers and draw(st.integers(0, 9)) == 0:
        numbers[-1] = draw(st.sampled_from([(1 << 63) - 1, -(1 << 63), 1 << 31]))
    return {
        "op": op if op == "add" or first != second else "copy", "sides": sides, "moving": moving, "numbers": numbers,
        "steps": steps, "skip": draw(st.booleans()), "apart": draw(st.sampled_from([0, 2, 10, 10])),
        "written": [draw(st.sampled_from([True, True, True, None, False])) for _ in range(4)],
    }  # fmt: skip


class Twin:
    """A device with two tensors and a core, and the transfer that a word asks of it."""

    def __init__(self, word: dict[str, Any]) -> None:
        self.device = device = Device("trn2")
        device.hbm.allocate(ROOM, "before")
        random = np.random.default_rng(len(word["numbers"]))
        limits = []
        for name, written in zip(NAMES, word["written"], strict=False):
            address = device.hbm.allocate(ROOM, name)
            limits.append(Limit(name, address, ROOM))
            data = random.integers(0, 256, ROOM).astype(np.uint8)
            if written is not False:
                device.hbm.write(address, data[: None if written else 1500])
        memory = device.cores[0].memory
        memory.bound("SBUF")[TILES] = random.integers(0, 256, (48, WIDTH)).astype(np.uint8)
        for first, written in zip((0, 11), word["written"][2:], strict=True):
            memory.mark_written("SBUF", first, 11, 0, WIDTH // (1 if written else 1024 if written is None else WIDTH))
        sides = []
        for space, tensor, offset, dims, run, dtype, which in word["sides"]:
            if space == "HBM":
                limit = limits[tensor]
                sides.append(Side("HBM", 0, limit.address + offset, dims, run, dtype, limit))
            else:
                sides.append(Side("SBUF", 0, (1 + word["apart"] * which) * PARTITION + offset, dims, run, dtype))
        moving, (index_step, row_step) = word["moving"], word["steps"]
        if moving:
            index_step, row_step = row_step, index_step
        numbers = np.array(word["numbers"], np.int64)
        self.rows = Rows(word["op"], sides[0], sides[1], moving, numbers, index_step, row_step, word["skip"])
        self.wanted = parts_of(word["op"], (sides[0], sides[1]), moving, word["numbers"], index_step, row_step,
                               word["skip"])  # fmt: skip
        request = RowsRequest(self.rows, queue="q", core=0, engine="SP", pc=0, semaphore=9, increment=16,
                              instruction=Nop())  # fmt: skip
        self.transfer = Transfer(request)

    def outcome(self, one_by_one: bool) -> tuple[Any, ...]:
        """Return what is left behind by the transfer: a fault, or bytes, which of them are written, and warnings."""
        device, chip = self.device, self.device.cores[0]
        try:
            with np.errstate(all="ignore"):
                (bind_parts if one_by_one else bind)(device, self.transfer)()
        except FaultError as fault:
            return str(fault), repr(vars(fault))
        tensors = [each for each in device.hbm.allocations.values() if each.name in NAMES]
        arrays = [
            chip.sbuf[TILES],
            chip.sbuf_written[TILES],
            *[one for each in tensors for one in (each.data, each.written)],
        ]
        return (
            [each.tobytes() for each in arrays],
            np.count_nonzero(chip.sbuf_written),
            list(map(repr, device.warnings)),
        )


@settings(max_examples=150, deadline=None)
@given(words())
def test_rows_are_their_parts(word: dict[str, Any]) -> None:
    twin = Twin(word)
    rows, transfer = twin.rows, twin.transfer
    assert transfer.facts == facts_of(twin.wanted)
    assert rows.count == len(twin.wanted)
    assert transfer.parts == twin.wanted and transfer.parts is transfer.parts
    assert all(type(value) is int for part in transfer.parts for side in part.copies[-1] for value in side.chosen or ())
    touched = TransferRegions(transfer, WIDTH)
    assert touched.read_regions == regions_of(transfer.reads, WIDTH)
    assert touched.write_regions == regions_of(transfer.writes, WIDTH)
    assert all(type(value) is int for each in touched.write_regions for value in each[1:6])
    twin.device.release()


@settings(max_examples=250, deadline=None)
@given(words())
def test_all_at_once_leaves_behind_what_one_by_one_does(word: dict[str, Any]) -> None:
    twins = Twin(word), Twin(word)
    assert twins[0].outcome(one_by_one=False) == twins[1].outcome(one_by_one=True)
    for twin in twins:
        twin.device.release()


def test_steps_that_mean_something_else_in_the_last_row_are_left_to_the_parts() -> None:
    # From byte 0 up 100,000 bytes in the partition; from byte 165,000 that many up is in the next one, further down.
    word = {
        "op": "copy", "moving": 0, "numbers": [1, 2], "steps": [16, 165000], "skip": False, "apart": 10,
        "written": [True] * 4,
        "sides": [("HBM", 0, 0, ((8, 2),), 4, Dtype.FLOAT32, 0), ("SBUF", 0, 0, ((100000, 2),), 4, Dtype.FLOAT32, 1)],
    }  # fmt: skip
    twin = Twin(word)
    assert bind_rows(twin.device, twin.transfer, twin.rows, lambda: pytest.fail("never asked for")) is None
    bind(twin.device, twin.transfer)()
    tensor, sbuf = twin.device.hbm.allocations[twin.rows.sides[0].limit.address].data, twin.device.cores[0].sbuf  # type: ignore[union-attr]
    places = [(11, 0), (11, 100000), (11, 165000), (12, 165000 + 100000 - PARTITION)]
    for (partition, byte), at in zip(places, (16, 24, 32, 40), strict=True):
        assert sbuf[partition, byte : byte + 4].tobytes() == tensor[at : at + 4].tobytes()
    twin.device.release()


@pytest.mark.parametrize("moving", [0, 1])
@pytest.mark.parametrize("op", ["copy", "cast", "add"])
@pytest.mark.parametrize("skip", [False, True])
def test_calls_of_python_do_not_grow_with_the_rows(op: str, moving: int, skip: bool) -> None:
    assert _calls(op, moving, skip, 100) == _calls(op, moving, skip, 20)


def _calls(op: str, moving: int, skip: bool, rows: int) -> int:
    """Return how often Python functions are called from the word to the moved bytes."""
    types = Dtype.BFLOAT16 if op == "cast" else Dtype.FLOAT32, Dtype.FLOAT32
    spaces, sides = (("SBUF", "HBM") if moving else ("HBM", "SBUF")), []
    for which, (space, dtype) in enumerate(zip(spaces, types, strict=True)):
        sides.append((space, 0, 0, (), 4 * dtype.size, dtype, which))
    steps = [PARTITION if space == "SBUF" else 4 * dtype.size for space, dtype in zip(spaces, types, strict=True)]
    numbers = [(7 * at) % rows for at in range(rows)]
    numbers[3:5] = numbers[5], 1 << 20 if skip else numbers[1]
    word = {"op": op, "moving": moving, "numbers": numbers, "steps": steps, "skip": skip, "written": [True] * 4,
            "apart": 0, "sides": sides}  # fmt: skip
    twin = Twin(word)
    twin.device.cores[0].memory.mark_written("SBUF", 0, 128, 0, WIDTH)
    request = twin.transfer.request

    def move() -> None:
        request.facts, bind(twin.device, twin.transfer)()

    _box.cache_clear()
    calls, _ = counted(move)
    twin.device.release()
    return calls
