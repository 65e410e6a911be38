"""Regions of a transfer cover exactly the bytes of its sides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side
from formats.dtypes import Dtype
from formats.regions import Region

STRIDE, WIDTH, PARTITIONS = 0x40000, 2048, 128


def _bytes(region: Region) -> set[int]:
    dims, run = region.pattern or ((), region.nbytes)
    offsets = np.arange(run)
    for step, count in dims:
        offsets = (offsets[:, None] + step * np.arange(count)).reshape(-1)
    start = 0 if region.space == "HBM" else region.first * STRIDE
    return {start + row * STRIDE + region.byte + int(o) for row in range(region.partitions) for o in offsets}


def _expected(side: Side) -> set[int]:
    return {side.row_address(row) + byte for row in range(side.rows) for byte in range(side.run)}


@given(
    space=st.sampled_from(["HBM", "SBUF"]),
    run=st.integers(1, 16),
    dims=st.lists(st.tuples(st.sampled_from([0, 1, 4, 40, -7, -40]), st.integers(1, 4)), max_size=2),
    across=st.lists(st.tuples(st.sampled_from([1, 2, 5, -1]), st.integers(1, 4)), max_size=2),
)
def test_regions_are_the_bytes(space: str, run: int, dims: list, across: list) -> None:
    steps = tuple((step * STRIDE, count) for step, count in across) + tuple(dims)
    side = Side(space, 0, 64 * STRIDE + 1000, steps, run, Dtype.UINT8)
    regions = side_regions(side, WIDTH)
    assert set().union(*map(_bytes, regions)) == _expected(side)


def test_a_whole_tile_is_one_region() -> None:
    side = Side("SBUF", 1, 0x4000, ((STRIDE, 128),), 512, Dtype.FLOAT32)
    assert side_regions(side, 1 << 18) == (Region("SBUF", 1, 0, 128, 0x4000, 512, None),)


def test_a_diagonal_is_a_box() -> None:
    side = Side("SBUF", 0, 0, ((STRIDE + 4, 8),), 4, Dtype.FLOAT32)
    assert side_regions(side, 1 << 18) == (Region("SBUF", 0, 0, 8, 0, 32, None),)
