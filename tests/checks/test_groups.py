"""Groups of products where a place in PSUM is filled anew before products are added to it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks.engine_state import _Group, _Live
from emulator.events import Event
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
