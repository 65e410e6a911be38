"""Accesses as tests of regions make them up, and the bytes that they touch."""

from __future__ import annotations

from hypothesis import strategies as st

from formats.regions import shape_of
from neurontools.builder.areas import Area

Pattern = tuple[int, int, int, int, tuple[tuple[int, int], ...]]
"""Partition, partitions, byte of the first element, bytes of an element, dimensions."""

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
patterns = st.one_of(tiles, tiles, others)


def area_of(pattern: Pattern) -> Area:
    """Return what a pattern touches as the builder knows it."""
    first, partitions, start, size, dims = pattern
    return Area(first, first + partitions, start, shape_of(dims, size))


def bytes_of(pattern: Pattern) -> set[tuple[int, int]]:
    """Return every (partition, byte) that a pattern touches."""
    first, partitions, start, size, dims = pattern
    places = {start}
    for step, count in dims:
        places = {place + step * size * i for place in places for i in range(count)}
    return {(p, place + b) for p in range(first, first + partitions) for place in places for b in range(size)}
