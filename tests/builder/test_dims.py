"""Patterns: merging, common shapes and cutting keep every element and its partner."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neurontools.builder.dims import Dims, Limit, common, elements, merge, split

NARROW = Limit(3, (1 << 16) - 1, -(1 << 15), (1 << 15) - 1)

dims = st.lists(st.tuples(st.integers(-70000, 70000), st.integers(1, 6)), max_size=6).map(tuple)


def walk(pattern: Dims, offset: int = 0) -> list[int]:
    """Return the places of a pattern in order."""
    places = np.array([offset])
    for step, count in pattern:
        places = (places[:, None] + np.arange(count) * step).ravel()
    return [int(place) for place in places]


@given(dims)
def test_merge_keeps_the_walk(pattern: Dims) -> None:
    merged = merge(pattern)
    assert walk(merged) == walk(pattern)
    assert all(outer[0] != inner[0] * inner[1] for outer, inner in pairwise(merged))


def test_merge_of_one_element_is_one_dimension() -> None:
    assert merge(()) == ((1, 1),)
    assert merge(((7, 1), (3, 1))) == ((1, 1),)


@given(st.lists(st.integers(1, 6), max_size=4), st.data())
def test_common_pairs_the_same_elements(counts: list[int], data: st.DataObject) -> None:
    """Cut the same number of elements in two ways that nest."""
    patterns = []
    for _ in range(2):
        steps = data.draw(st.lists(st.integers(-9, 9), min_size=len(counts), max_size=len(counts)))
        pattern = [(step, count) for step, count in zip(steps, counts, strict=True)]
        cuts = data.draw(st.integers(0, 2))
        for at in range(min(cuts, len(pattern))):
            step, count = pattern[at]
            if count % 2 == 0:
                pattern[at : at + 1] = [(step * 2, count // 2), (step, 2)]
        patterns.append(tuple(pattern))
    shared = common(patterns)
    if shared is not None:
        assert [[count for _, count in one] for one in shared[1:]] == [[count for _, count in shared[0]]]
        assert [walk(one) for one in shared] == [walk(one) for one in patterns]


def test_common_refuses_what_does_not_nest() -> None:
    assert common([((10, 2), (1, 3)), ((10, 3), (1, 2))]) is None
    assert common([((1, 6),), ((1, 5),)]) is None


def test_common_merges_only_what_runs_on_everywhere() -> None:
    assert common([((4, 2), (1, 4)), ((8, 2), (1, 4))]) == (((4, 2), (1, 4)), ((8, 2), (1, 4)))
    assert common([((4, 2), (1, 4)), ((1, 8),)]) == (((1, 8),), ((1, 8),))


@given(
    st.lists(
        st.tuples(st.integers(-40000, 40000), st.integers(-40000, 40000), st.integers(1, 5)), min_size=1, max_size=6
    )
)
def test_pieces_fit_and_cover_everything_once(columns: list[tuple[int, int, int]]) -> None:
    patterns = tuple(tuple((column[i], column[2]) for column in columns) for i in range(2))
    pieces = split(patterns, [NARROW, NARROW])
    pairs = []
    for piece in pieces:
        for one in piece.dims:
            assert len(one) <= NARROW.dims
            assert all(count <= NARROW.most and NARROW.low_step <= step <= NARROW.high_step for step, count in one)
        pairs += zip(*(walk(one, offset) for one, offset in zip(piece.dims, piece.offsets, strict=True)), strict=True)
    assert sorted(pairs) == sorted(zip(*map(walk, patterns), strict=True))


def test_long_dimensions_are_cut() -> None:
    for count in (1 << 17, 65537, 200000):
        pieces = split([((1, count),)], [NARROW])
        assert sum(elements(piece.dims[0]) for piece in pieces) == count
        assert sorted(place for piece in pieces for place in walk(piece.dims[0], piece.offsets[0])) == list(
            range(count)
        )


def test_the_shortest_dimensions_become_words() -> None:
    pattern = ((1000, 7), (100, 2), (10, 9), (1, 3))
    assert len(split([pattern], [NARROW])) == 2
