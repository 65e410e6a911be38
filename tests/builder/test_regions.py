"""Regions: what an access must wait for, against a look at all accesses before it and against the bytes themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.engines import ENGINES
from formats.regions import shape_of
from neurontools.builder import hazards
from neurontools.builder.areas import Area, Way, overlap, step_of
from neurontools.builder.hazards import NOWHERE, Memory, Needs, Record, Region
from neurontools.builder.span_index import SpanIndex
from neurontools.builder.vector_clocks import VectorClocks
from tests.builder.patterns import Pattern, area_of, bytes_of, patterns
from tests.counting import counted

WORKING = 3  # engines of the programs below
WAYS: tuple[Way | None, ...] = (None, ("across",), ("along",))
# Engine, whether its queue does it, number of the way, and the accesses: pattern and whether it writes.
operations = st.lists(
    st.tuples(
        st.integers(0, WORKING - 1),
        st.booleans(),
        st.integers(0, 2),
        st.lists(st.tuples(patterns, st.booleans()), min_size=1, max_size=2),
    ),
    min_size=10,
    max_size=60,
)
Operation = tuple[int, bool, int, list[tuple[Pattern, bool]]]


def record(pattern: Pattern, unit: int, way: Way | None = None) -> Record:
    first, partitions, start, size, dims = pattern
    shape = shape_of(dims, size)
    low = start + shape.shift
    return unit, low, low + shape.reach, first, first + partitions, shape, step_of(shape), way


class Program:
    """Clocks of five engines, of which each that works has a queue."""

    def __init__(self) -> None:
        self.clocks = VectorClocks()
        self.queues = [self.clocks.actor() for _ in range(WORKING)]

    def do(self, engine: int, queued: bool, needs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Wait for units, as `Streams.add` does, and complete one; return what was waited for."""
        known, actor = self.clocks.known[engine], self.queues[engine] if queued else engine
        wanted: dict[int, int] = {}
        for its, unit in needs:
            # words of one engine complete in order
            if known[its] < unit and (queued or its != engine):
                wanted[its] = max(unit, wanted.get(its, -1))
        found = self.clocks.essential(list(wanted.items()))
        for its, unit in found:
            self.clocks.wait(engine, its, unit)
        self.clocks.unit(engine, actor)
        return found


class Everything:
    """The plain way: every access since the beginning is kept, and looked at by each that follows."""

    def __init__(self) -> None:
        self.entries: list[tuple[Area, int, int, bool, Way | None]] = []

    def access(self, area: Area, write: bool, actor: int, unit: int, way: Way | None) -> list[tuple[int, int]]:
        found = [
            (its, its_unit)
            for other, its, its_unit, its_write, its_way in self.entries
            if (write or its_write)
            and overlap(area, other)
            and (its, its_unit) != (actor, unit)
            # Transfers of one queue that bring each byte through the same ring stay in order.
            and not (
                its == actor and write and way is not None and way == its_way
                and (area.low, area.first) == (other.low, other.first)
            )
        ]  # fmt: skip
        self.entries.append((area, actor, unit, write, way))
        return found


def ask(region: Region, one: Record, write: bool, actor: int, known: list[int], itself: int = -1) -> Needs:
    """Make an access to a region and return what it must wait for."""
    needs: Needs = {}
    region.access(one, write, actor, needs, known, itself)
    return needs


@pytest.mark.parametrize("bounds", [(), NOWHERE])
@pytest.mark.parametrize("flat", [2, 100])
def test_waits_are_those_of_a_look_at_everything(
    flat: int, bounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others stand for, what is known and what is filed in cells is left out, and no wait is another."""
    monkeypatch.setattr(hazards, "_FLAT", flat)
    filed = []

    @settings(max_examples=150, deadline=None)
    @given(operations)
    def check(program: list[Operation]) -> None:
        region, plain = Region(*bounds), Everything()
        quick, slow = Program(), Program()
        for engine, queued, number, touched in program:
            actor = quick.queues[engine] if queued else engine
            way, unit = WAYS[number] if queued else None, quick.clocks.count(actor)
            mine, all_of_it = [], []
            for pattern, write in touched:
                needs = ask(region, record(pattern, unit, way), write, actor, quick.clocks.known[engine],
                            -1 if queued else engine)  # fmt: skip
                mine += needs.items()
                all_of_it += plain.access(area_of(pattern), write, actor, unit, way)
            assert quick.do(engine, queued, mine) == slow.do(engine, queued, all_of_it)
        grids = [track[4] for track in region.tracks if track[4] is not None]
        filed.append(any(grid.step > 0 for one in grids for grid in one))

    check()
    assert any(filed) == (flat == 2)  # the grid that tells places inside a row apart was in use


claims = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 4), st.booleans(), st.integers(0, WORKING - 1), st.booleans(),
              st.integers(0, 63), st.sampled_from([(1, 1), (1, 16), (2, 8), (4, 6), (16, 4)]), st.booleans()),
    min_size=5,
    max_size=60,
)  # fmt: skip
Claim = tuple[int, int, bool, int, bool, int, tuple[int, int], bool]


@pytest.mark.parametrize(("many", "flat"), [(1, 100), (256, 100), (256, 1)])
def test_tiles_inherit_what_touched_their_bytes(many: int, flat: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes over bytes, all of an owner's or parts of several, waits as if all were one memory."""
    monkeypatch.setattr(hazards, "_MANY", many)
    monkeypatch.setattr(hazards, "_FLAT", flat)
    looked_up = []

    class Watched(SpanIndex):
        def touching(self, low: int, high: int) -> list[int]:
            looked_up.append((low, high))
            return super().touching(low, high)

    monkeypatch.setattr(hazards, "SpanIndex", Watched)

    @settings(max_examples=300, deadline=None)
    @given(claims)
    def check(program: list[Claim]) -> None:
        quick, slow = Program(), Program()
        memory, plain = Memory(quick.clocks), Everything()
        regions: list[tuple[int, int, Region]] = []
        for place, length, again, engine, queued, offset, dim, write in program:
            low, high = 16 * place, 16 * (place + length)
            mine = [region for start, stop, region in regions if (start, stop) == (low, high)]
            region = mine[-1] if again and mine else memory.claim(low, high)
            regions = [one for one in regions if one[1] <= low or one[0] >= high] + [(low, high, region)]
            # as much of the pattern as the tile has room for
            start, (step, count) = offset % (high - low), dim
            count = max(1, min(count, (high - low - start - 1) // step + 1))
            pattern = 0, 128, low + start, 1, ((step, count),)
            if offset == 0:
                pattern = 0, 128, low, 1, ((1, high - low),)
            actor = quick.queues[engine] if queued else engine
            unit = quick.clocks.count(actor)
            needs = ask(region, record(pattern, unit), write, actor, quick.clocks.known[engine],
                        -1 if queued else engine)  # fmt: skip
            wanted = plain.access(area_of(pattern), write, actor, unit, None)
            found = quick.do(engine, queued, needs.items())
            assert found == slow.do(engine, queued, wanted)

    check()
    assert bool(looked_up) == (flat == 1)


@settings(max_examples=200, deadline=None)
@given(operations)
def test_every_conflict_of_bytes_is_ordered(program: list[Operation]) -> None:
    """Waiting for what `needs` names, and for what that waited for, covers every earlier access that shares a byte."""
    region, run = Region(*NOWHERE), Program()
    earlier: list[tuple[set[tuple[int, int]], int, int, bool]] = []
    for engine, queued, _, touched in program:
        actor = run.queues[engine] if queued else engine
        unit = run.clocks.count(actor)
        mine, conflicts = [], []
        for pattern, write in touched:
            needs = ask(region, record(pattern, unit), write, actor, run.clocks.known[engine])
            mine += needs.items()
            places = bytes_of(pattern)
            conflicts += [
                (its, its_unit)
                for others, its, its_unit, its_write in earlier
                if (write or its_write) and (its, its_unit) != (actor, unit) and places & others
            ]
            earlier.append((places, actor, unit, write))
        run.do(engine, queued, mine)
        known = run.clocks.known[engine]
        assert all(known[its] >= its_unit for its, its_unit in conflicts if queued or its != engine)


UNKNOWN = [-1] * 8


def test_an_access_that_shares_no_byte_waits_for_nothing() -> None:
    """Columns of one row-major tensor, written by 240 transfers, are independent; a read of two waits for both."""
    region = Region()
    for column in range(240):
        needs = ask(region, record((0, 1, 16 * column, 1, ((4096, 128), (1, 16))), column), True, column % 2, UNKNOWN)
        assert not needs
    assert all(track[4] is not None for track in region.tracks)
    pair = (0, 1, 16 * 40, 1, ((4096, 128), (1, 32)))
    assert ask(region, record(pair, 0), False, 2, UNKNOWN) == {0: 40, 1: 41}


class Unsearched(list[Any]):
    """Records that may be added to, and not gone through."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("looked at")

    __reversed__ = __iter__


def unsearched(region: Region) -> None:
    for track in region.tracks:
        track[3] = Unsearched(track[3][:])


@pytest.mark.parametrize("step", [64, -64])
def test_a_tensor_that_is_written_from_end_to_end_is_not_searched(step: int) -> None:
    region = Region(*NOWHERE)
    for row in range(60):
        needs = ask(region, record((0, 1, (1 << 20) + step * row, 1, ((1, 64),)), row), True, 0, UNKNOWN)
        assert not needs
        unsearched(region)
    one = record((0, 1, (1 << 20) + step * 10, 1, ((1, 64),)), 0)
    with pytest.raises(AssertionError, match="looked at"):
        ask(region, one, False, 1, UNKNOWN)
    for track in region.tracks:
        track[3] = list(track[3][:])
    assert ask(region, one, False, 1, UNKNOWN) == {0: 10}


def test_what_is_known_is_not_searched() -> None:
    region = Region()
    for column in range(50):
        ask(region, record((0, 128, 4 * column, 4, ((64, 8),)), column), True, 0, UNKNOWN)
    unsearched(region)
    known = [49, *UNKNOWN[1:]]
    needs = ask(region, record((0, 128, 0, 4, ((64, 8),)), 0), False, 1, known)
    assert not needs
    with pytest.raises(AssertionError, match="looked at"):
        ask(region, record((0, 128, 0, 4, ((64, 8),)), 1), False, 1, [48, *UNKNOWN[1:]])


@pytest.mark.parametrize("parts", [40, 400])
def test_many_parts_of_one_tile_cost_the_same_each(parts: int) -> None:
    """An engine that knows what was written reads a tile in strided parts: no part is held against the others."""
    region = Region(0, 16 * parts)
    shape = shape_of(((parts, 4),), 4)
    ask(region, record((0, 128, 0, 1, ((1, 16 * parts),)), 0), True, 1, UNKNOWN)
    known = [-1, 0, *UNKNOWN[2:]]
    needs: Needs = {}
    reads = [(unit, 4 * unit, 4 * unit + shape.reach, 0, 128, shape, 4 * parts, None) for unit in range(parts)]

    def work() -> None:
        for one in reads:
            region.access(one, False, 0, needs, known, 0)

    assert counted(work, builtins=True)[0] <= 3 * parts
    assert not needs


@pytest.mark.parametrize("pieces", [200, 1600])
def test_a_piece_of_a_large_tile_costs_the_same_however_many_there_are(pieces: int) -> None:
    """A tile that was written part by part is taken over piece by piece, and then as a whole."""
    program, shape = Program(), shape_of(((1, 16),), 1)
    memory = Memory(program.clocks)
    large = memory.claim(0, 16 * pieces)
    for unit in range(pieces):
        program.do(0, False, [])
        large.add((unit, 16 * unit, 16 * unit + 16, 0, 128, shape, 0, None), True, 0)
    steps = steps_of(lambda: [memory.claim(16 * piece, 16 * piece + 16) for piece in range(pieces)])
    assert steps <= 800 * pieces
    whole: list[Region] = []
    steps = steps_of(lambda: whole.append(memory.claim(0, 16 * pieces)))
    assert steps <= 1000 * pieces  # large writes are held against all of many
    assert ask(whole[0], record((0, 128, 16 * 70, 1, ((1, 16),)), 0), False, 1, UNKNOWN) == {0: 70}


def steps_of(run: Callable[[], object]) -> int:
    """Return how many steps of the interpreter the module takes: a count of calls hides what loops."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != hazards.__file__:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return steps


def test_an_access_to_the_same_bytes_again_replaces_the_last_one() -> None:
    region, shape = Region(), shape_of(((1, 64),), 1)
    for unit in range(1000):
        ask(region, (unit, 0, 64, 0, 128, shape, 0, None), unit % 2 == 0, 0, UNKNOWN, 0)
    assert [len(track[3]) for track in region.tracks] == [1, 1]
    assert ask(region, (0, 0, 64, 0, 128, shape, 0, None), False, 1, UNKNOWN) == {0: 998}
    assert ask(region, (1, 0, 64, 0, 128, shape, 0, None), True, 2, UNKNOWN) == {0: 999, 1: 0}


def test_what_reaches_out_of_a_region_is_known_beside_it() -> None:
    """A tile inherits from one that stood half beside it; the bytes outside still know that tile's access."""
    program = Program()
    memory = Memory(program.clocks)
    old = memory.claim(0, 64)
    ask(old, record((0, 128, 0, 1, ((1, 64),)), 0), True, 0, UNKNOWN)
    program.do(0, False, [])
    new = memory.claim(32, 96)
    assert ask(new, record((0, 128, 32, 1, ((1, 64),)), 0), True, 1, program.clocks.known[1]) == {0: 0}
    assert program.do(1, False, [(0, 0)]) == [(0, 0)]
    beside = memory.claim(0, 32)
    assert ask(beside, record((0, 128, 0, 1, ((1, 32),)), 0), False, 2, UNKNOWN) == {0: 0}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(patterns, st.integers(0, 1)), max_size=20), st.integers(0, 20), patterns)
def test_what_was_written_since(writes: list[tuple[Pattern, int]], number: int, view: Pattern) -> None:
    region, counts = Region(), [0, 0]
    before = region.written()
    for place, (pattern, actor) in enumerate(writes):
        if place == number:
            before = region.written()
        ask(region, record(pattern, counts[actor]), True, actor, UNKNOWN)
        counts[actor] += 1
    if number >= len(writes):
        before = region.written()
    wanted = any(overlap(area_of(pattern), area_of(view)) for pattern, _ in writes[number:])
    assert region.is_written_since(record(view, 1 << 62), before) == wanted


def test_what_arrives_stands_for_what_it_covers() -> None:
    """What another core sends is known by its own semaphore alone: nobody waits for what was there before."""
    region = Region(0, 64)
    ask(region, record((0, 128, 0, 1, ((1, 64),)), 3), True, 0, UNKNOWN)
    ask(region, record((0, 128, 0, 1, ((2, 16),)), 4), False, 1, UNKNOWN)
    ask(region, record((0, 128, 40, 1, ((1, 8),)), 5), True, 2, UNKNOWN)
    region.replace(record((0, 128, 0, 1, ((1, 40),)), 0), 5)
    # the first write is not covered, the read and nothing else is
    assert ask(region, record((0, 128, 0, 1, ((1, 64),)), 0), True, 4, UNKNOWN) == {0: 3, 2: 5, 5: 0}
    region.replace(record((0, 128, 0, 1, ((1, 64),)), 1), 5)
    assert ask(region, record((0, 128, 0, 1, ((1, 64),)), 1), False, 3, UNKNOWN) == {5: 1}


def test_engines_of_the_tests_are_those_of_the_builder() -> None:
    assert len(ENGINES) + WORKING == len(UNKNOWN) and len(Program().clocks.known[0]) == len(UNKNOWN)
