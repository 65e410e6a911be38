"""Tiles cover an index space: every element once, within the limits of the memory."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from formats.dtypes import Dtype
from formats.targets import resolve_target
from neurontools.compiler.arrays import Array, merged, row_major
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.loading import part_of
from neurontools.compiler.tiling import tiles

_SHAPES = [(1,), (5,), (64,), (129,), (4096,), (100_003,), (3, 5), (300, 7), (7, 300), (128, 2048), (2, 3, 4, 5),
           (1, 200, 1, 3), (257, 33), (33, 257), (2, 4099)]  # fmt: skip


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("inside", [0, 1])
def test_every_element_lies_in_one_tile(shape: tuple[int, ...], inside: int) -> None:
    array = Emitter(resolve_target("trn2")).tensor(Dtype.FLOAT32, shape)
    seen = np.zeros(prod(shape), int)
    for tile in tiles(shape, 512, inside):
        assert 1 <= tile.partitions <= 128
        assert prod(tile.free) <= 512
        view = part_of(array, array.strides, tile)
        places = np.array([view.offset // 4])
        for step, count in view.dims:
            places = (places[:, None] + step * np.arange(count)).reshape(-1)
        np.add.at(seen, places, 1)
        if inside:
            rows = {axis for axis, _ in zip(tile.splits, tile.shape[: tile.rows], strict=False)}
            assert rows.isdisjoint(range(len(shape) - inside, len(shape)))
    assert (seen == 1).all()


def _numbers(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the places of an array's elements."""
    out = np.full((), array.offset)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        out = out[..., None] + stride * np.arange(extent)
    return out


def test_views_select_what_numpy_selects() -> None:
    array = Emitter(resolve_target("trn2")).tensor(Dtype.FLOAT32, (4, 6, 5))
    whole = np.arange(120).reshape(4, 6, 5)
    assert (_numbers(array.permuted((2, 0, 1))) == whole.transpose(2, 0, 1)).all()
    assert (_numbers(array.sliced((1, 0, 2), (2, 3, 2), (1, 2, 1))) == whole[1:3, 0:6:2, 2:4]).all()
    assert (_numbers(array.reversed((0, 2))) == whole[::-1, :, ::-1]).all()
    assert (_numbers(array.broadcast((4, 7, 6, 5), (0, 2, 3))) == np.broadcast_to(whole[:, None], (4, 7, 6, 5))).all()
    column = array.sliced((0, 0, 3), (4, 6, 1)).reshaped((3, 8))
    assert column is not None
    assert (_numbers(column) == whole[:, :, 3].reshape(3, 8)).all()
    assert array.permuted((1, 0, 2)).reshaped((24, 5)) is None


def test_merged_dimensions_walk_alike() -> None:
    shape, (a, b) = merged([(2, 3, 4)] * 2, [row_major((2, 3, 4)), (100, 4, 1)])
    assert shape == (2, 12)
    assert (a, b) == ((12, 1), (100, 1))


def test_rows_of_large_arrays_get_longer_before_tiles_get_more() -> None:
    """Tiles of 2 KiB a partition while they are eight or fewer, longer ones behind that, up to the most."""
    for total, wanted in ((1 << 16, 512), (1 << 19, 512), (1 << 20, 1024), (1 << 21, 2048), (1 << 24, 2048)):
        found = list(tiles((total,), 2048))
        assert {prod(one.free) for one in found} == {wanted}
        assert len(found) == total // (128 * wanted)
