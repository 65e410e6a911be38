"""Which bytes two patterns share, and which earlier accesses a new one meets, against brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.checks.clocks import Clock, Unit
from emulator.checks.overlap import Pattern, share_bytes
from emulator.checks.shadow import Record, Shadow
from emulator.events import Region

dims = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=3).map(tuple)
patterns = st.tuples(dims, st.integers(1, 5))


def bytes_of(low: int, pattern: Pattern) -> set[int]:
    starts = [low]
    for step, count in pattern[0]:
        starts = [start + step * i for start in starts for i in range(count)]
    return {start + i for start in starts for i in range(pattern[1])}


def size_of(pattern: Pattern) -> int:
    return max(bytes_of(0, pattern)) + 1


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


accesses = st.lists(
    st.tuples(
        st.integers(0, 2),  # actor
        st.integers(0, 3),  # first partition
        st.integers(1, 3),  # partitions
        st.integers(0, 40),  # byte
        st.one_of(st.integers(1, 40), patterns),
        st.booleans(),
        st.lists(st.integers(0, 12), min_size=3, max_size=3),  # how much of the others' accesses it knows
    ),
    max_size=14,
)


@given(accesses)
def test_a_race_is_found_where_there_is_one(steps: list[tuple[int, int, int, int, object, bool, list[int]]]) -> None:
    """Knowledge only grows and is passed on whole, as with real clocks: then leaving records out hides no race."""
    shadow = Shadow(4)
    counts = [0, 0, 0]
    known: list[Clock] = [(0, 0, 0)] * 3
    releases: list[list[Clock]] = [[(0, 0, 0)] for _ in range(3)]
    seen: list[tuple[Unit, int, int, set[int], bool]] = []
    expected = False
    found: list[Record] = []
    for actor, p0, rows, low, shape, write, learns in steps:
        for other, upto in enumerate(learns):
            if other != actor:
                known[actor] = tuple(map(max, known[actor], releases[other][min(upto, counts[other])]))
        counts[actor] += 1
        unit = Unit(actor, counts[actor], known[actor], None, None, 0)
        releases[actor].append(unit.release)
        pattern: Pattern = shape if isinstance(shape, tuple) else ((), int(str(shape)))
        region = Region("SBUF", 0, p0, rows, low, size_of(pattern), pattern if isinstance(shape, tuple) else None)
        touched = bytes_of(low, pattern)
        expected |= any(
            (write or wrote)
            and not unit.knows(other.actor, other.number)
            and q0 < p0 + rows
            and p0 < q1
            and touched & had
            for other, q0, q1, had, wrote in seen
        )
        shadow.access(unit, region, write, lambda old, new: found.append(old), lambda: (0, 0, 0))
        seen.append((unit, p0, p0 + rows, touched, write))
    assert bool(found) == expected
