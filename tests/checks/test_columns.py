"""Regions in different columns of a tensor: told apart where no byte is shared, and races inside one still found."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks.columns import apart_by_columns
from emulator.device import Device
from formats.regions import Region, shape_of
from neurontools.nki.launch import build_neff
from tests.checks.support import drop_wait, waits_of
from tests.checks.test_orderly import Found

ROW = 64


def region(low: int, dims: tuple[tuple[int, int], ...]) -> Region:
    shape = shape_of(dims, 1)
    return Region("HBM", -1, 0, 1, low, shape.reach, shape.pattern)


tiles = st.builds(
    lambda row, rows, column, columns: region(1000 + row * ROW + column, ((ROW, rows), (1, columns))),
    st.integers(0, 5), st.integers(1, 4), st.integers(0, ROW - 1), st.integers(1, 20),
)  # fmt: skip
others = st.builds(
    lambda low, dims: region(1000 + low, tuple(dims)),
    st.integers(0, 300),
    st.lists(st.tuples(st.sampled_from([1, 2, 3, 8, ROW, 2 * ROW, 100]), st.integers(1, 4)), max_size=3),
)


@given(st.lists(st.one_of(tiles, tiles, others), min_size=1, max_size=12))
def test_regions_of_different_lists_share_no_byte(regions: list[Region]) -> None:
    lists = apart_by_columns(regions)
    assert sorted(place for each in lists for place in each) == list(range(len(regions)))
    assert all(each == sorted(each) for each in lists)
    for one, other in combinations(lists, 2):
        assert not any(regions[a].overlaps(regions[b]) for a in one for b in other)


def test_columns_are_apart_and_what_goes_around_is_not() -> None:
    columns = [region(1000 + 4 * column, ((ROW, 8), (1, 4))) for column in range(16)]
    assert len(apart_by_columns(columns)) == 16
    for column in range(16):  # rows of the tensor begin anywhere: one of these goes around
        two = region(1000 + 4 * column, ((ROW, 2), (1, 8)))
        found = apart_by_columns([*columns, two])
        assert len(found) == 15 and sorted([column, (column + 1) % 16, 16]) in found
    assert apart_by_columns([*columns, region(1000 + ROW, ((1, ROW),))]) == [list(range(17))]
    assert apart_by_columns([region(0, ((1, 8),)), region(4, ((1, 8),))]) == [[0, 1]]


def column_by_column(x: Any) -> Any:
    """Every column is stored by itself, and once more; those of the other half are copied within the tensor."""
    out = nl.ndarray((128, 160), dtype=nl.float32, buffer=nl.shared_hbm)
    part = nl.ndarray((128, 80), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=part, src=x)
    for turn in range(2):
        for column in range(80):
            one = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=one, data=part[0:128, column : column + 1], op0=nl.add, operand0=float(turn))
            nisa.dma_copy(dst=out[0:128, column : column + 1], src=one)
    for column in range(80):
        nisa.dma_copy(dst=out[0:128, 80 + column : 81 + column], src=out[0:128, column : column + 1])
    return out


def test_columns_of_one_tensor_are_followed_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((128, 80)).astype(np.float32)
    neff = build_neff(column_by_column, (x,), {}, target="trn2")
    inputs = {neff.inputs[0].name: x}
    found = Found(neff, inputs, monkeypatch)
    assert found.way == "all" and found.findings == found.without
    assert all("severity='note'" in one for one in found.findings)  # semaphores that nobody waits for at the end
    device = Device(neff.target, 1)
    device.load(neff)
    told = 0
    for place in list(waits_of(device))[::9]:
        found = Found(neff, inputs, monkeypatch, drop_wait(place), max_steps=20_000)
        assert found.findings == found.without, place
        told += any("racecheck" in one for one in found.findings)
    assert told > 3
