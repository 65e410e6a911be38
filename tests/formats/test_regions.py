"""The algebra of regions against sets of bytes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formats.regions import Pattern, Region, shape_of, share_bytes

walks = st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 4)), max_size=3)
dims = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=3).map(tuple)
patterns = st.tuples(dims, st.integers(1, 5))
WIDTH, ROWS = 256, 6


def bytes_of(low: int, pattern: Pattern) -> set[int]:
    starts = [low]
    for step, count in pattern[0]:
        starts = [start + step * i for start in starts for i in range(count)]
    return {start + i for start in starts for i in range(pattern[1])}


def size_of(pattern: Pattern) -> int:
    return max(bytes_of(0, pattern)) + 1


@st.composite
def regions(draw: st.DrawFn) -> Region:
    pattern: Pattern | None = draw(st.none() | patterns)
    nbytes = draw(st.integers(1, 40)) if pattern is None else size_of(pattern)
    first = draw(st.integers(0, 3))
    space, core = draw(st.sampled_from(("SBUF", "PSUM"))), draw(st.integers(0, 1))
    return Region(space, core, first, draw(st.integers(1, ROWS - first)), draw(st.integers(0, 40)), nbytes, pattern)


def cells(one: Region) -> set[tuple[str, int, int, int]]:
    places = bytes_of(one.byte, one.pattern or ((), one.nbytes))
    return {(one.space, one.core, row, at) for row in range(one.first, one.behind) for at in places}


@given(patterns, patterns, st.integers(0, 60), st.integers(0, 60))
def test_share_bytes_is_exact(first: Pattern, second: Pattern, low0: int, low1: int) -> None:
    expected = bool(bytes_of(low0, first) & bytes_of(low1, second))
    assert share_bytes(low0, size_of(first), first, low1, size_of(second), second) == expected
    whole = ((), size_of(second))
    expected = bool(bytes_of(low0, first) & bytes_of(low1, whole))
    assert share_bytes(low0, size_of(first), first, low1, size_of(second), None) == expected


def test_rows_of_one_table() -> None:
    rows = (((64, 10),), 16)
    assert not share_bytes(0, 592, rows, 16, 592, rows)
    assert share_bytes(0, 592, rows, 8, 592, rows)
    assert share_bytes(0, 592, rows, 64 * 9 + 15, 592, rows)
    assert not share_bytes(0, 592, rows, 64 * 9 + 16, 592, rows)
    assert share_bytes(60, 592, rows, 0, 592, rows)


@given(walks, st.integers(1, 5), st.integers(0, 3))
def test_a_shape_has_the_bytes_of_its_walk(walk: list[tuple[int, int]], run: int, unit: int) -> None:
    walked = {
        sum(step * (unit or run) * at for (step, _), at in zip(walk, index, strict=True)) + i
        for index in product(*(range(count) for _, count in walk))
        for i in range(run)
    }
    shape = shape_of(walk, run, unit)
    assert bytes_of(shape.shift, (shape.steps, shape.run)) == walked
    assert (shape.shift, shape.shift + shape.reach) == (min(walked), max(walked) + 1)
    if shape.pattern is None:
        assert len(walked) == shape.reach
    # The same bytes in any order and direction have one shape.
    turned = [(-step, count) for step, count in reversed(walk)]
    assert shape_of(turned, run, unit)[1:] == shape[1:]


@given(regions(), regions())
def test_what_two_regions_share(one: Region, other: Region) -> None:
    mine, its = cells(one), cells(other)
    assert one.overlaps(other) == other.overlaps(one) == bool(mine & its)
    assert not one.covers(other) or mine >= its
    assert one.covers(one) and (one.pattern is not None or one.covers(other) == (mine >= its))
    if mine & its:
        common = one.common(other)
        assert mine & its <= cells(common._replace(pattern=None))
        assert common.pattern is None or mine & its == cells(common)


@given(regions())
def test_bytes_of_a_region(one: Region) -> None:
    mine = cells(one)
    assert one.size == len(mine)
    runs = list(one.runs())
    assert runs == sorted(runs) and all(low < high for low, high in runs)
    assert all(before[1] < behind[0] for before, behind in pairwise(runs))
    assert {at for low, high in runs for at in range(low, high)} == {at for *_, at in mine}
    plane = np.zeros((ROWS, WIDTH), np.bool_)
    offset, shape, strides = one.walk(WIDTH)
    np.ndarray(shape, np.bool_, plane, offset, strides)[...] = True
    assert {(one.space, one.core, int(row), int(at)) for row, at in np.argwhere(plane)} == mine


def test_an_empty_region_has_nothing() -> None:
    nothing = Region("SBUF", 0, 0, 1, 8, 0)
    assert nothing.size == 0 and not list(nothing.runs())


def test_hbm_is_shared_by_the_cores_of_a_device() -> None:
    one = Region("HBM", 0, 0, 1, 100, 8)
    assert one.overlaps(one._replace(core=1)) and one.text == "HBM[0x64:0x6c]"
    assert not one.overlaps(one._replace(space="SBUF"))


def test_patterns_that_no_memory_has_end_too() -> None:
    huge, other = (((3, 1 << 50), (5, 1 << 40)), 1), (((1 << 44, 1 << 10), (7, 1 << 45)), 1)
    assert share_bytes(1 << 30, 1 << 60, huge, 1 << 31, 1 << 60, other)
