"""Parts of tensors in HBM whose places stand in tiles: one number for a part, a number for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((6, 8, 32)).astype(np.float32)
ONE = np.array([[5]], np.int32)
FIVE = np.array([[3], [0], [5], [1], [3]], np.int32)


def run(kernel: Any, *args: Any) -> Any:
    return nki.simulate_kernel(nki.jit(kernel), *args)


# What kernels write behind the tensor, and NumPy's result, of two dimensions.
PARTS = {
    "a number and slices": (lambda x, it: x[it[0, 0], :, :], X[5]),
    "a number of a column": (lambda x, it: x[it[0, 0:1][0, 0], 2:7, 1:9], X[5, 2:7, 1:9]),
    "a tile of one among expressions": (lambda x, it: x[it, nl.arange(8)[:, None], nl.arange(32)[None, :]], X[5]),
    "a number between two": (lambda x, it: x[nl.arange(4)[:, None], it[0, 0], nl.arange(9)[None, :]], X[:4, 5, :9]),
    "a number behind a slice": (lambda x, it: x[1:4, it[0, 0], 8:16], X[1:4, 5, 8:16]),
    "a row stands up": (lambda x, it: x[it[0, 0], 3, :], X[5, 3][:, None]),
    "a column": (lambda x, it: x[2, :, it[0, 0]], X[2, :, 5][:, None]),
    "one element": (lambda x, it: x[2, 7, it[0, 0]], X[2, 7, 5].reshape(1, 1)),
    "of a part": (lambda x, it: x[2][it[0, 0], 4:20], X[2, 5, 4:20][:, None]),
    "a new axis": (lambda x, it: x[None, it[0, 0], 2, :], X[5, 2][None]),
}  # fmt: skip


@pytest.mark.parametrize(("part", "want"), PARTS.values(), ids=PARTS)
def test_a_number_from_a_tile_is_an_index_like_any_number(part: Any, want: np.ndarray) -> None:
    def load(x: Any, it: Any) -> Any:
        tile = nl.load(part(x, nl.load(it)))
        out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    def store(x: Any, it: Any, value: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out.reshape((6, 256)), nl.zeros((6, 256), x.dtype))
        nl.store(part(out, nl.load(it)), nl.load(value))
        return out

    np.testing.assert_array_equal(run(load, X, ONE), want)
    values, places = np.unique(X, return_index=True)  # all of them differ
    changed = np.zeros(X.size, np.float32)
    changed[places[np.searchsorted(values, want)]] = 2 * want
    np.testing.assert_array_equal(run(store, X, ONE, 2 * want), changed.reshape(X.shape))


def test_a_mask_leaves_rows_out_behind_a_number() -> None:
    def kernel(x: Any, it: Any) -> Any:
        out = nl.ndarray((16, 32), x.dtype, buffer=nl.shared_hbm)
        row, column = nl.arange(16)[:, None], nl.arange(32)[None, :]
        nl.store(out, nl.zeros((16, 32), x.dtype))
        tile = nl.load(x[nl.load(it), row - 2, column], mask=(row >= 2) & (row < 10))
        nl.store(out[row, column], tile, mask=(row >= 2) & (row < 10))
        return out

    want = np.zeros((16, 32), np.float32)
    want[2:10] = X[5]
    np.testing.assert_array_equal(run(kernel, X, ONE), want)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32, np.float16])
def test_rows_of_a_part_of_a_tensor_by_numbers_of_any_type(dtype: Any) -> None:
    def kernel(x: Any, it: Any) -> Any:
        out = nl.ndarray((5, 32), x.dtype, buffer=nl.shared_hbm)
        rows = nl.copy(nl.load(it), dtype=dtype)
        nl.store(out, nl.load(x[2][rows[nl.arange(5)[:, None], 0], nl.arange(32)[None, :]]))
        return out

    np.testing.assert_array_equal(run(kernel, X, FIVE), X[2][FIVE[:, 0]])


def test_numbers_in_psum_are_copied_first() -> None:
    def kernel(x: Any, it: Any) -> Any:
        out = nl.ndarray((32, 8), x.dtype, buffer=nl.shared_hbm)
        found = nl.ndarray((1, 1), np.float32, buffer=nl.psum)
        found[...] = nl.load(it)
        nl.store(out, nl.transpose(nl.load(x[found[0, 0], :, :])))
        return out

    np.testing.assert_array_equal(run(kernel, X, ONE), X[5].T)


def test_rows_by_numbers_whose_columns_begin_elsewhere_are_refused() -> None:
    def kernel(x: Any, it: Any) -> Any:
        return nl.load(x[2][nl.load(it), nl.arange(5)[:, None] + nl.arange(16)[None, :]])

    with pytest.raises(UnsupportedError, match="beside an index expression that steps from row to row"):
        run(kernel, X, FIVE)
    with pytest.raises(UnsupportedError, match="several indices behind an index expression or a slice"):
        run(lambda x, it: nl.load(x[1:3, nl.load(it), 0:4]), X, FIVE)
