"""Areas: no overlap is certain, and tiles of one tensor are told apart."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from formats.regions import shape_of
from neurontools.builder.areas import Area, overlap

patterns = st.tuples(
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(100, 200),
    st.sampled_from([1, 2, 4]),
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 5)), max_size=3).map(tuple),
)


def area_and_cells(
    pattern: tuple[int, int, int, int, tuple[tuple[int, int], ...]],
) -> tuple[Area, set[tuple[int, int]]]:
    """Return the area of a pattern and the (partition, byte) cells that it covers."""
    first, partitions, start, size, dims = pattern
    places = {start}
    for step, count in dims:
        places = {place + step * size * i for place in places for i in range(count)}
    cells = {(p, place + b) for p in range(first, first + partitions) for place in places for b in range(size)}
    return Area(first, first + partitions, start, shape_of(dims, size)), cells


@settings(max_examples=500)
@given(patterns, patterns)
def test_overlap_is_safe(one: object, other: object) -> None:
    a, cells_a = area_and_cells(one)  # type: ignore[arg-type]
    b, cells_b = area_and_cells(other)  # type: ignore[arg-type]
    assert (a.low, a.high) == (min(c for _, c in cells_a), max(c for _, c in cells_a) + 1)
    if cells_a & cells_b:
        assert overlap(a, b) and overlap(b, a)


def test_columns_and_interleaved_elements_lie_apart() -> None:
    row = 4096
    left = Area(0, 1, 0, shape_of(((row, 128), (1, 512)), 1))
    right = Area(0, 1, 512, shape_of(((row, 128), (1, 512)), 1))
    both = Area(0, 1, 0, shape_of(((row, 128), (1, 1024)), 1))
    assert not overlap(left, right)
    assert overlap(both, left) and overlap(both, right)
    even, odd = (Area(0, 128, 4 * i, shape_of(((2, 100),), 4)) for i in range(2))
    assert not overlap(even, odd)
    heads = [Area(0, 1, 64 * h, shape_of(((1024, 4), (256, 4), (1, 64)), 1)) for h in range(4)]
    assert not any(overlap(a, b) for i, a in enumerate(heads) for b in heads[:i])
