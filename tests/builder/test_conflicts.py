"""Conflicts: which operations one has to follow, against a scan of all earlier accesses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.regions import Shape, shape_of
from neurontools.builder import conflicts
from neurontools.builder.areas import Area, overlap
from neurontools.builder.conflicts import Conflicts, record_of
from tests.builder.patterns import Pattern, area_of, patterns

# pattern, whether it writes, whether it belongs to the operation before
accesses = st.lists(st.tuples(patterns, st.booleans(), st.booleans()), min_size=20, max_size=70)


def ask(region: Conflicts, pattern: Pattern, write: bool, number: int) -> set[int]:
    """Make an access and return the operations that it has to follow."""
    first, partitions, start, size, dims = pattern
    before: set[int] = set()
    region.access(record_of(first, first + partitions, start, shape_of(dims, size), write, number), before)
    return before


def contains(area: Area, other: Area) -> bool:
    """Return whether every byte of `other` is certainly one of an area."""
    if area.first > other.first or area.last < other.last or area.low > other.low or area.high < other.high:
        return False
    return not area.shape.steps or (area.low, area.high, area.shape) == (other.low, other.high, other.shape)


class Scan:
    """The same answers from one list: every earlier access is looked at, the ones that another stands for go."""

    def __init__(self) -> None:
        self.kept: list[tuple[Area, int, bool]] = []

    def access(self, area: Area, write: bool, number: int) -> set[int]:
        kept, before = [], set()
        for entry in self.kept:
            other, its, its_write = entry
            stays = True
            if overlap(area, other):
                if (write or its_write) and its != number:
                    before.add(its)
                # A write stands for all it covers; a read for earlier reads of its own operation.
                stays = not (contains(area, other) and (write or (not its_write and its == number)))
            if stays:
                kept.append(entry)
        self.kept = [*kept, (area, number, write)]
        return before


@pytest.mark.parametrize("flat", [2, 32])
def test_the_grid_finds_what_a_scan_finds(flat: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "_FLAT", flat)
    monkeypatch.setattr(conflicts, "_FEW", flat // 4)
    filed = []

    @settings(max_examples=200, deadline=None)
    @given(accesses)
    def check(program: list[tuple[Pattern, bool, bool]]) -> None:
        region, scan, number = Conflicts(), Scan(), 0
        for pattern, write, joined in program:
            number += not joined
            assert ask(region, pattern, write, number) == scan.access(area_of(pattern), write, number)
        for kept in (region.reads, region.writes):
            filed.append(kept.grids is not None and max(grid.step for grid in kept.grids) > 0)

    check()
    assert any(filed)  # the grid that tells places inside a row apart was in use


def test_columns_of_one_tensor_are_independent() -> None:
    """Columns of one row-major tensor, written by 200 operations; a read of two has to follow both."""
    region = Conflicts()
    for column in range(200):
        assert not ask(region, (0, 1, 16 * column, 1, ((4096, 128), (1, 16))), True, column)
    assert region.writes.grids is not None
    assert ask(region, (0, 1, 16 * 40, 1, ((4096, 128), (1, 32))), False, 200) == {40, 41}


def test_reads_are_not_compared_with_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile that is filled once, as an identity is, may be read by all operations of a program."""
    region, looked = Conflicts(), 0
    plain = conflicts._Kept.near

    def near(kept: conflicts._Kept, low: int, high: int, shape: Shape) -> list[conflicts.Record]:
        nonlocal looked
        found = plain(kept, low, high, shape)
        looked += len(found)
        return found

    monkeypatch.setattr(conflicts._Kept, "near", near)
    pattern: Pattern = (0, 128, 0, 4, ((1, 128),))
    assert not ask(region, pattern, True, 0)
    for number in range(1, 2000):
        assert ask(region, pattern, False, number) == {0}
    assert looked == 1999
    assert ask(region, pattern, True, 2000) == {*range(2000)}
