"""Ranges that share bytes with another are all found, and few others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.checks.spans import Combs, Spans
from formats.regions import Pattern, share_bytes

ranges = st.tuples(st.integers(0, 300), st.integers(1, 120))
narrow = st.tuples(st.integers(2, 24), st.integers(2, 6))
wide, inner = st.tuples(st.integers(30, 40), st.integers(1, 3)), st.tuples(st.integers(3, 9), st.integers(1, 3))
patterns = st.one_of(
    st.none(),
    st.tuples(st.tuples(narrow), st.integers(1, 12)),
    st.tuples(st.tuples(wide, inner), st.integers(1, 3)),
)


def width(pattern: Pattern) -> int:
    steps, run = pattern
    return run + sum(step * (count - 1) for step, count in steps)


@given(st.lists(ranges, max_size=30), ranges)
def test_ranges_that_share_a_byte_are_found_and_no_others(held: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    spans: Spans[int] = Spans()
    for number, (low, nbytes) in enumerate(held):
        spans.add(low, low + nbytes, number)
    low, high = asked[0], sum(asked)
    wanted = [number for number, (at, nbytes) in enumerate(held) if at < high and at + nbytes > low]
    assert sorted(spans.near(low, high)) == wanted
    spans.clear()
    assert spans.near(0, 1000) == []


@given(st.lists(st.tuples(ranges, patterns), max_size=30), st.tuples(ranges, patterns))
def test_patterns_that_share_a_byte_are_found_once(
    held: list[tuple[tuple[int, int], Pattern | None]], asked: tuple[tuple[int, int], Pattern | None]
) -> None:
    combs: Combs[int] = Combs()
    sized = [(low, nbytes if pattern is None else width(pattern), pattern) for (low, nbytes), pattern in (*held, asked)]
    for number, (low, nbytes, pattern) in enumerate(sized[:-1]):
        combs.add(low, low + nbytes, pattern, number)
    low, nbytes, pattern = sized[-1]
    near = combs.near(low, low + nbytes, pattern)
    wanted = {number for number, one in enumerate(sized[:-1]) if share_bytes(low, nbytes, pattern, *one)}
    assert wanted <= set(near)
    assert len(near) == len(set(near))


def test_columns_of_a_tile_are_not_near_one_another() -> None:
    combs: Combs[int] = Combs()
    pattern: Pattern = (((128, 128),), 2)
    for column in range(64):
        combs.add(2 * column, 2 * column + 127 * 128 + 2, pattern, column)
    assert combs.near(0, 127 * 128 + 2, pattern) == [0]
    assert len(combs.near(0, 128, None)) == 64
