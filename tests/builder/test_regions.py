"""Regions: what an access must wait for, against a scan of all earlier accesses and against the bytes themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.regions import shape_of
from neurontools.builder import hazards
from neurontools.builder.areas import Area, overlap
from neurontools.builder.hazards import NOWHERE, Memory, Needs, Region, record_of

ACTORS = 3
Pattern = tuple[int, int, int, int, tuple[tuple[int, int], ...]]
Access = tuple[Pattern, int, bool, bool]  # pattern, actor, write, whether it belongs to the unit before

# Tiles of one row-major tensor, as kernels walk them: where the grid files by the place inside a row.
ROW = 256
tiles = st.builds(
    lambda row, rows, column, columns: (0, 1, row * ROW + column * 16, 1, ((ROW, rows), (1, columns * 16))),
    st.integers(0, 7), st.integers(1, 4), st.integers(0, 15), st.integers(1, 4),
)  # fmt: skip
# Anything else: partitions, interleaved elements, steps of both signs, several jumps.
others = st.tuples(
    st.integers(0, 2),
    st.integers(1, 2),
    st.integers(300, 2300),
    st.sampled_from([1, 2, 4]),
    st.lists(st.tuples(st.sampled_from([-64, -3, 0, 1, 2, 5, 16, 100, ROW]), st.integers(1, 4)), max_size=3).map(tuple),
)
accesses = st.lists(
    st.tuples(st.one_of(tiles, tiles, others), st.integers(0, ACTORS - 1), st.booleans(), st.booleans()),
    min_size=20,
    max_size=70,
)


def area_of(pattern: Pattern) -> Area:
    first, partitions, start, size, dims = pattern
    return Area(first, first + partitions, start, shape_of(dims, size))


def ask(region: Region, pattern: Pattern, write: bool, actor: int, unit: int) -> Needs:
    """Make an access to a region and return what it must wait for."""
    first, partitions, start, size, dims = pattern
    needs = Needs()
    region.access(record_of(first, first + partitions, start, shape_of(dims, size), write, actor, unit), needs)
    return needs


def bytes_of(pattern: Pattern) -> set[tuple[int, int]]:
    """Return every (partition, byte) that a pattern touches."""
    first, partitions, start, size, dims = pattern
    places = {start}
    for step, count in dims:
        places = {place + step * size * i for place in places for i in range(count)}
    return {(p, place + b) for p in range(first, first + partitions) for place in places for b in range(size)}


def numbered(program: list[Access]) -> list[tuple[Pattern, int, int, bool]]:
    """Return pattern, actor, unit and direction; units of an actor count up, and one may have several accesses."""
    units = [-1] * ACTORS
    found = []
    last = -1
    for pattern, actor, write, joined in program:
        if not (joined and last == actor):
            units[actor] += 1
        last = actor
        found.append((pattern, actor, units[actor], write))
    return found


def contains(area: Area, other: Area) -> bool:
    """Return whether every byte of `other` is certainly one of an area."""
    if area.first > other.first or area.last < other.last or area.low > other.low or area.high < other.high:
        return False
    return not area.shape.steps or (area.low, area.high, area.shape) == (other.low, other.high, other.shape)


class Scan:
    """The same answers from one list: every earlier access is looked at, the ones that another stands for go."""

    def __init__(self) -> None:
        self.kept: list[tuple[Area, int, int, bool]] = []

    def access(self, area: Area, write: bool, actor: int, unit: int, needs: Needs) -> None:
        kept = []
        for entry in self.kept:
            other, its_actor, its_unit, its_write = entry
            stays = True
            if overlap(area, other):
                into = needs.order if write else needs.data
                if (write or its_write) and (its_actor, its_unit) != (actor, unit):
                    into[its_actor] = max(into.get(its_actor, -1), its_unit)
                # A write stands for all it covers; a read for earlier reads of its own actor, which are complete then.
                stays = not (contains(area, other) and (write or (not its_write and its_actor == actor)))
            if stays:
                kept.append(entry)
        self.kept = [*kept, (area, actor, unit, write)]


@pytest.mark.parametrize("bounds", [(), NOWHERE])
@pytest.mark.parametrize("flat", [2, 32])
def test_the_grid_finds_what_a_scan_finds(flat: int, bounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hazards, "_FLAT", flat)
    monkeypatch.setattr(hazards, "_FEW", flat // 4)
    filed = []

    @settings(max_examples=200, deadline=None)
    @given(accesses, st.integers(0, 2500), st.integers(1, 400))
    def check(program: list[Access], low: int, length: int) -> None:
        region, scan = Region(*bounds), Scan()
        for pattern, actor, unit, write in numbered(program):
            got, want = ask(region, pattern, write, actor, unit), Needs()
            scan.access(area_of(pattern), write, actor, unit, want)
            assert (got.data, got.order) == (want.data, want.order)
        # Bytes asked for without a pattern: at least what may touch them, at most what spans them.
        window = Area(0, 128, low, shape_of(((1, length),), 1))
        within = region.within(low, low + length)
        found = {(one[0], one[1], actor, unit, write) for one in within for write, actor, unit in [one[6:9]]}
        spanning = [entry for entry in scan.kept if entry[0].low < window.high and entry[0].high > low]
        touching = [entry for entry in spanning if overlap(entry[0], window)]
        assert {(area.low, area.high, *rest) for area, *rest in touching} <= found
        assert found <= {(area.low, area.high, *rest) for area, *rest in spanning}
        filed.append(region.grids is not None and max(grid.step for grid in region.grids) > 0)

    check()
    assert any(filed)  # the grid that tells places inside a row apart was in use


@settings(max_examples=200, deadline=None)
@given(accesses)
def test_every_conflict_of_bytes_is_ordered(program: list[Access]) -> None:
    """Waiting for what `needs` names, and for what that waited for, covers every earlier access that shares a byte."""
    region = Region(*NOWHERE)
    clocks: dict[tuple[int, int], list[int]] = {}  # by unit: last unit of each actor that is complete before it ends
    earlier: list[tuple[set[tuple[int, int]], int, int, bool]] = []
    for pattern, actor, unit, write in numbered(program):
        needs = ask(region, pattern, write, actor, unit)
        clock = clocks.setdefault((actor, unit), list(clocks.get((actor, unit - 1), [-1] * ACTORS)))
        clock[actor] = max(clock[actor], unit - 1)  # an actor completes its units in order
        for wanted in (needs.data, needs.order):
            for its_actor, its_unit in wanted.items():
                known = clocks[its_actor, its_unit]
                clock[:] = [max(pair) for pair in zip(clock, known, strict=True)]
                clock[its_actor] = max(clock[its_actor], its_unit)
        mine = bytes_of(pattern)
        for places, its_actor, its_unit, its_write in earlier:
            if (write or its_write) and (its_actor, its_unit) != (actor, unit) and mine & places:
                assert clock[its_actor] >= its_unit
        earlier.append((mine, actor, unit, write))


def test_an_access_that_shares_no_byte_waits_for_nothing() -> None:
    """Columns of one row-major tensor, written by 200 transfers, are independent; a read of two waits for both."""
    region = Region()
    for column in range(200):
        needs = ask(region, (0, 1, 16 * column, 1, ((4096, 128), (1, 16))), True, 0, column)
        assert not needs.data and not needs.order
    assert region.grids is not None
    needs = ask(region, (0, 1, 16 * 40, 1, ((4096, 128), (1, 32))), False, 1, 0)
    assert needs.data == {0: 41} and not needs.order


class Unsearched(list[Any]):
    """Records that may be added to, and not gone through."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("looked at")


@pytest.mark.parametrize("step", [64, -64])
def test_a_tensor_that_is_written_from_end_to_end_is_not_searched(step: int) -> None:
    region = Region(*NOWHERE)
    region.records = Unsearched()
    for row in range(60):
        needs = ask(region, (0, 1, (1 << 20) + step * row, 1, ((1, 64),)), True, 0, row)
        assert not needs.data and not needs.order
    with pytest.raises(AssertionError, match="looked at"):
        ask(region, (0, 1, (1 << 20) + step * 10, 1, ((1, 64),)), False, 1, 0)
    region.records = list(region.records[:])
    assert ask(region, (0, 1, (1 << 20) + step * 10, 1, ((1, 64),)), False, 1, 0).data == {0: 10}


def test_what_reaches_out_of_a_region_is_covered_by_a_write_of_all_its_bytes() -> None:
    """A tile inherits from one that stood half beside it; the bytes outside still know that tile's access."""
    memory = Memory()
    old = memory.claim(0, 64)
    ask(old, (0, 128, 0, 1, ((1, 64),)), True, 0, 0)
    new = memory.claim(32, 96)
    assert ask(new, (0, 128, 32, 1, ((1, 64),)), True, 1, 0).order == {0: 0}
    # who waits for that write need not wait for the one before it
    assert ask(new, (0, 128, 32, 1, ((1, 64),)), False, 2, 0).data == {1: 0}
    beside = memory.claim(0, 32)
    assert ask(beside, (0, 128, 0, 1, ((1, 32),)), False, 2, 1).data == {0: 0}


claims = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 2), st.booleans()), max_size=30)


@settings(max_examples=300, deadline=None)
@given(claims)
def test_tiles_inherit_what_touched_their_bytes(program: list[tuple[int, int, int, bool]]) -> None:
    """Whoever takes over bytes, all of an owner's or parts of several, waits for the last that wrote any of them."""
    memory = Memory()
    last: dict[int, tuple[int, int]] = {}  # by byte
    regions: list[tuple[int, int, Region]] = []
    for unit, (place, length, actor, again) in enumerate(program):
        low, high = 16 * place, 16 * (place + length)
        mine = [region for start, stop, region in regions if (start, stop) == (low, high)]
        region = mine[-1] if again and mine else memory.claim(low, high)
        regions = [one for one in regions if one[1] <= low or one[0] >= high] + [(low, high, region)]
        needs = ask(region, (0, 128, low, 1, ((1, high - low),)), True, actor, unit)
        touched = {last[byte] for byte in range(low, high) if byte in last}
        wanted = {each: max(unit for one, unit in touched if one == each) for each, _ in touched}
        assert needs.order == wanted
        last.update(dict.fromkeys(range(low, high), (actor, unit)))
