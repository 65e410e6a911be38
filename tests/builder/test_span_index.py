"""Spans by where they begin, against a look at each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neurontools.builder.span_index import SpanIndex

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=40)
asked = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), min_size=1, max_size=10)


@given(spans, asked)
def test_spans_that_touch_are_those_of_a_look_at_each(
    lows_and_sizes: list[tuple[int, int]], questions: list[tuple[int, int]]
) -> None:
    lows = [low for low, _ in lows_and_sizes]
    highs = [low + size for low, size in lows_and_sizes]
    index = SpanIndex(lows, highs)
    for low, size in questions:
        high = low + size
        wanted = [place for place in range(len(lows)) if lows[place] < high and highs[place] > low]
        assert index.touching(low, high) == wanted


def test_spans_side_by_side_do_not_touch() -> None:
    index = SpanIndex([0, 4, 8, 4], [4, 8, 12, 8])
    assert index.touching(4, 8) == [1, 3]
    assert index.touching(3, 5) == [0, 1, 3]
    assert index.touching(12, 99) == index.touching(-5, 0) == []
