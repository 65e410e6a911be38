"""Groups of products where a place in PSUM is filled anew before products are added to it."""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks.engine_state import Groups, _Group, _Live
from emulator.events import Event, Touched
from formats import isa
from formats.regions import Region
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, serious

X = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)


def rows(x: Any, filled: bool) -> Any:
    """Transpose into PSUM, then add products to one row of the same bank, wider than what lay there."""
    out = nl.ndarray((1, 192), dtype=x.dtype, buffer=nl.shared_hbm)
    part, kept = nl.ndarray((128, 64), dtype=x.dtype), nl.ndarray((64, 128), dtype=x.dtype)
    wide, row = nl.ndarray((128, 192), dtype=x.dtype), nl.ndarray((1, 192), dtype=x.dtype)
    turned = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum, address=(0, 0))
    total = nl.ndarray((1, 192), dtype=nl.float32, buffer=nl.psum, address=(0, 0))
    nisa.dma_copy(dst=part, src=x)
    nisa.nc_transpose(dst=turned, data=part)
    nisa.tensor_copy(dst=kept, src=turned)
    for column in range(0, 192, 64):
        nisa.tensor_copy(dst=wide[:, column : column + 64], src=part)
    if filled:
        nisa.memset(dst=total, value=0.0)
    for _ in range(2):
        nisa.nc_matmul(dst=total, stationary=part[:, 0:1], moving=wide, accumulate=True)
    nisa.tensor_copy(dst=row, src=total)
    nisa.dma_copy(dst=out, src=row)
    return out


@pytest.mark.parametrize("filled", [True, False])
def test_a_row_that_was_filled_is_no_part_of_the_group_before(filled: bool) -> None:
    """As a depthwise convolution of nki-library does it: a memset of one row, products added to that."""
    neff: Any = build_neff(rows, (X, filled), {}, target="trn2")
    found = serious(checked(neff, {neff.inputs[0].name: X}, ("memcheck",))[0])
    told = [one for one in found if one.kind == "psum-group"]
    assert bool(told) != filled and (not filled or found == [])
    assert all("a part of the group" in one.message for one in told)


def test_live_groups_are_found_by_what_lies_around_them() -> None:
    numbers, begun = random.Random(5), Event(0, 0, 0, 0, "PE", 0, isa.Nop(), "instruction")

    def place() -> Region:
        low, nbytes = 4 * numbers.randrange(1500), numbers.choice((4, 64, 2048, 5000))
        return Region("PSUM", 0, 32 * numbers.randrange(4), 32 * numbers.randint(1, 2), low, nbytes)

    for _ in range(20):
        live, plain = _Live(), []
        for _ in range(60):
            if plain and numbers.random() < 0.3:
                gone = numbers.sample(plain, numbers.randint(1, min(3, len(plain))))
                live.leave(gone)
                plain = [one for one in plain if one not in gone]
            else:
                plain.append(_Group(place(), begun))
                live.add(plain[-1])
            region = place()
            assert live.near(region) == [one for one in plain if one.region.overlaps(region)]
            assert [*live] == plain and len(live) == len(plain)


_PRODUCTS = [isa.MatMul(acc_flags=flags) for flags in range(4)]
_OTHER = isa.Nop()


class _Told:
    """Groups of a device without a map of tiles, and what they tell of."""

    def __init__(self, takes_plain: bool) -> None:
        self.found: list[Any] = []
        self.taken = 0
        self._takes_plain = takes_plain
        core = SimpleNamespace(loaded=None)
        device: Any = SimpleNamespace(cores=[core], model=None)
        names: Any = SimpleNamespace(name=lambda region, engine, pc: "tile" if engine == "PE" else "")
        self.groups = Groups(device, self._tell, names)

    def _tell(self, kind: str, event: Event, message: str, hint: str, region: Any = None, other: Any = None) -> None:
        self.found.append((kind, event.pc, message, region, None if other is None else other.pc))

    def take(self, pc: int, word: isa.Instruction, touches: Touched) -> None:
        """Take a word as the pass over notes does, or as a look at each word."""
        event = partial(Event, 0, 0, 0, 0, "PE" if word is not _OTHER else "Pool", pc, word, "instruction", (), touches)
        if self._takes_plain and self.groups.is_plain(0, word, touches, event):
            self.taken += isinstance(word, isa.MatMul)
        else:
            self.groups.on_event(event())

    @property
    def state(self) -> list[tuple[Any, ...]]:
        """Return what is known of each group."""
        (live,) = self.groups._groups
        return [(one.region, one.begun.pc, one.ended, one.read, list(one.filled)) for one in live]


def test_products_that_are_plain_are_taken_as_all_others_are() -> None:
    numbers, taken, told = random.Random(9), 0, 0
    combs = (None, None, None, (((16, 4),), 8))
    for _ in range(150):
        quick, plain = _Told(True), _Told(False)
        some = [
            Region(
                "PSUM", 0, 0, 32 * numbers.randint(1, 2), 64 * numbers.randrange(3) + 8 * numbers.randrange(2), 56, comb
            )
            if (comb := numbers.choice(combs)) is not None
            else Region("PSUM", 0, 0, 64, 64 * numbers.randrange(4), 64 * numbers.randint(1, 3))
            for _ in range(numbers.randint(1, 5))
        ]
        for pc in range(60):
            region, chance = numbers.choice(some), numbers.random()
            if chance < 0.5:
                word, touches = numbers.choice(_PRODUCTS), Touched((), (region,))
            else:
                word, touches = _OTHER, Touched((region,)) if chance < 0.85 else Touched((), (region,))
            quick.take(pc, word, touches)
            plain.take(pc, word, touches)
            assert quick.found == plain.found
            assert quick.state == plain.state
        taken, told = taken + quick.taken, told + len(plain.found)
    assert taken > 1000 and told > 100
