"""Masks that say "or", masked tiles as operands of products, products under a mask, and sums of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.nki.errors import NkiValidationError

RANDOM = np.random.default_rng(3)
A = RANDOM.standard_normal((128, 256), np.float32)


def run(kernel: Any, *args: Any) -> Any:
    return nki.simulate_kernel(nki.jit(kernel), *args)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("bound", "rows"), [(0, 100), (256, 128)])
def test_either_of_two_masks_where_one_holds_nowhere_or_everywhere(swapped: bool, bound: int, rows: int) -> None:
    def kernel(x: Any) -> Any:
        out = nl.full(x.shape, -1.0, nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
        first, second = i < 100, j < bound
        nl.store(out[i, j], nl.load(x[i, j]), mask=(second | first) if swapped else (first | second))
        return out

    want = np.full_like(A, -1)
    want[:rows] = A[:rows]
    np.testing.assert_array_equal(run(kernel, A), want)


MASKS = [
    lambda i, j: (i < 100) | (j < 100), lambda i, j: i >= j, lambda i, j: i != 5, lambda i, j: ~((i < 3) & (j > 7)),
    lambda i, j: 256 * i + j < 1000, lambda i, j: (i == 2 * j) & (j != 3),
    lambda i, j: (j < 3) | ((j > 200) & (i != 9)),
]  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
def test_masks_that_are_no_box(mask: Any) -> None:
    """Loads, stores, operations and assignments take the places of the mask, in boxes."""

    def kernel(x: Any) -> Any:
        out = nl.full(x.shape, -1.0, nl.float32, buffer=nl.shared_hbm)
        into = nl.full(x.shape, -1.0, nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
        kept = nl.full((128, 256), -1.0, nl.float32, buffer=nl.sbuf)
        where = mask(i, j)
        tile = nl.load(x[i, j], mask=where)
        nl.store(out[i, j], nl.add(tile, tile, mask=where), mask=where)
        kept[i, j] = nisa.tensor_scalar(tile, np.multiply, 2.0, mask=where)
        nl.store(into, kept)
        return out, into

    want = np.where(mask(np.arange(128)[:, None], np.arange(256)[None, :]), 2 * A, -1)
    for got in run(kernel, A):
        np.testing.assert_array_equal(got, want)


def test_a_flat_index_ends_where_its_mask_says() -> None:
    """The mask is no box, and keeps the index inside: each box is loaded for itself."""

    def kernel(x: Any) -> Any:
        out = nl.full((4, 64), -1.0, nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(4)[:, None], nl.arange(64)[None, :]
        inside = 64 * i + j < 200
        nl.store(out[i, j], nl.multiply(nl.load(x[64 * i + j], mask=inside), 3.0), mask=inside)
        return out

    want = np.full(256, -1, np.float32)
    want[:200] = 3 * A.reshape(-1)[:200]
    np.testing.assert_array_equal(run(kernel, A.reshape(-1)[:200]), want.reshape(4, 64))


@pytest.mark.parametrize("use", [
    lambda t, m: nl.sum(t, axis=1, mask=m), lambda t, m: nisa.nc_matmul(t[:, 0:64], t, mask=m),
    lambda t, m: nisa.bn_stats(t, mask=m),
    lambda t, m: nl.softmax(t, 1, mask=m), lambda t, m: nl.rms_norm(t, nl.load(nl.shared_constant(A)), 1, 256, mask=m),
])  # fmt: skip
def test_masks_of_several_boxes_are_refused_where_elements_meet(use: Any) -> None:
    def kernel(x: Any) -> Any:
        i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
        return nl.copy(use(nl.load(x), (i < 100) | (j < 100)))

    with pytest.raises(UnsupportedError, match=r"2 boxes of places|either of two conditions"):
        run(kernel, A)


def test_a_mask_of_more_places_than_a_value_has() -> None:
    """A value would have to grow; a target is written if any of the places holds."""

    def kernel(x: Any) -> Any:
        out = nl.full((128, 1), -1.0, nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
        nl.store(out[i, 0], nl.load(x[:, 0:1]), mask=(i < 50) & (j > 3))
        return out

    want = np.full((128, 1), -1, np.float32)
    want[:50] = A[:50, :1]
    np.testing.assert_array_equal(run(kernel, A), want)

    def grown(x: Any) -> Any:
        return nl.load(x[nl.arange(128)[:, None], 0], mask=nl.arange(256)[None, :] < 3)

    with pytest.raises(NkiValidationError, match="a mask over 256 places of dimension 1 of a tile of"):
        run(grown, A)


def test_iota_and_affine_select_under_a_mask() -> None:
    def kernel(x: Any) -> Any:
        i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
        where = (i > 40) & (j < 100)
        counted = nl.full((128, 256), -1, nl.int32, buffer=nl.sbuf)
        counted[i, j] = nisa.iota(300 * i + j, nl.int32, mask=where)
        chosen = nl.full((128, 256), -1.0, nl.float32, buffer=nl.sbuf)
        chosen[i, j] = nisa.affine_select(i >= j, nl.load(x), -9.0, mask=where)
        outs = nl.ndarray((128, 256), nl.int32, buffer=nl.hbm), nl.ndarray((128, 256), nl.float32, buffer=nl.hbm)
        nl.store(outs[0], counted), nl.store(outs[1], chosen)
        return outs

    i, j = np.arange(128)[:, None], np.arange(256)[None, :]
    where = (i > 40) & (j < 100)
    counted, chosen = run(kernel, A)
    np.testing.assert_array_equal(counted, np.where(where, 300 * i + j, -1))
    np.testing.assert_array_equal(chosen, np.where(where, np.where(i >= j, A, -9), -1))


def multiplied(rows: int, columns: int, width: int) -> Any:
    want = np.full((64, 256), 7, np.float32)
    want[:columns, :width] += A[:rows, :columns].T @ A[:rows, :width]
    return want


@pytest.mark.parametrize(("columns", "width"), [(64, 256), (40, 256), (64, 100), (33, 5), (0, 256)])
def test_masked_operands_of_a_product(columns: int, width: int) -> None:
    """What the masks leave out of either operand is left out of the result, which keeps what it held there."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 256), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        sums = nl.full((64, 256), 7.0, nl.float32, buffer=nl.psum)
        i, j = nl.arange(128)[:, None], nl.arange(64)[None, :]
        k = nl.arange(256)[None, :]
        sums[...] += nisa.nc_matmul(tile[i, j][j < columns], tile[k >= 0][k < 200][k < width][True])
        nl.store(out, sums)
        return out

    want = multiplied(128, columns, min(width, 200))
    np.testing.assert_allclose(run(kernel, A), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("columns", "width"), [(128, 256), (40, 256), (128, 100), (33, 5), (0, 256)])
def test_masked_operands_of_matmul(columns: int, width: int, turned: bool) -> None:
    """A masked left operand that is not transposed yet is transposed where it takes part, and nowhere else."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 256), nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(128)[:, None], nl.arange(128)[None, :]
        inside = (j if turned else i) < columns
        left, right = nl.load(x[0:128, 0:128], mask=inside), nl.load(x)
        sums = nl.full((128, 256), 7.0, nl.float32, buffer=nl.psum)
        sums[...] += nl.matmul(left[inside], right[nl.arange(256)[None, :] < width], transpose_x=turned)
        nl.store(out, sums)
        return out

    left = A[:, :128].T if turned else A[:, :128]
    want = np.full((128, 256), 7, np.float32)
    want[:columns, :width] += left[:columns] @ A[:, :width]
    np.testing.assert_allclose(run(kernel, A), want, rtol=1e-4, atol=1e-3)


def test_a_masked_tile_anywhere_else_is_refused() -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return nl.exp(tile[nl.arange(128)[:, None] < 3])

    with pytest.raises(UnsupportedError, match="a masked tile anywhere but in a matrix product"):
        run(kernel, A)


@pytest.mark.parametrize("width", [256, 77, 0])
def test_a_product_under_a_mask_of_its_columns(width: int) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 256), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        sums = nl.full((64, 256), 7.0, nl.float32, buffer=nl.psum)
        kept = nl.full((64, 256), 7.0, nl.float32, buffer=nl.sbuf)
        mask = nl.arange(256)[None, :] < width
        sums[...] += nisa.nc_matmul(tile[:, 0:64], tile, mask=mask)
        kept[...] = nisa.nc_matmul(tile[:, 0:64], tile, mask=mask)
        nl.store(out, nl.subtract(sums, kept))
        return out

    want = np.zeros((64, 256), np.float32)
    want[:, :width] = 7
    np.testing.assert_allclose(run(kernel, A), want, atol=1e-3)


@pytest.mark.parametrize("mask", [nl.arange(128)[:, None] < 100, nl.arange(64)[None, :] < 60])
def test_a_mask_that_may_be_of_either_operand_is_refused(mask: Any) -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return nl.copy(nisa.nc_matmul(tile[:, 0:64], tile[:, 64:128], mask=mask))

    with pytest.raises(UnsupportedError, match="of either operand"):
        run(kernel, A)


def test_products_added_to_whole_numbers() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 256), nl.int32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        sums = nl.full((64, 256), 3, nl.int32, buffer=nl.psum)
        for _ in nl.affine_range(2):
            sums += nl.matmul(tile[:, 0:64], tile, transpose_x=True)
        nl.store(out, sums)
        return out

    whole = np.round(A * 3).astype(np.float32)
    np.testing.assert_array_equal(run(kernel, whole), 3 + 2 * (whole[:, :64].T @ whole).astype(np.int32))


@pytest.mark.parametrize(("rows", "columns"), [(128, 64), (40, 70), (32, 32), (5, 100)])
def test_the_vector_engine_transposes_large_tiles_in_squares(rows: int, columns: int) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((columns, rows), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.nc_transpose(nl.load(x[0:rows, 0:columns]), engine=nisa.vector_engine))
        return out

    np.testing.assert_array_equal(run(kernel, A), A[:rows, :columns].T)


@pytest.mark.parametrize("engine", [nisa.vector_engine, nisa.tensor_engine])
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float32])
def test_a_transpose_casts_behind_the_engine(engine: Any, dtype: Any) -> None:
    def kernel(x: Any) -> Any:
        out = nl.full((64, 128), 7.0, dtype, buffer=nl.shared_hbm)
        turned = nisa.nc_transpose(nl.load(x[:, 0:64]), dtype=dtype, engine=engine, mask=nl.arange(128)[:, None] < 96)
        assert turned.dtype == dtype
        nl.store(out[:, 0:96], nl.copy(turned[:, 0:96]))
        return out

    want = np.full((64, 128), 7, A.dtype)
    want[:, :96] = A[:96, :64].T
    np.testing.assert_array_equal(run(kernel, A).astype(np.float32), want.astype(dtype.numpy).astype(np.float32))


@pytest.mark.parametrize(("make", "divisor"), [
    (lambda i, j: j + 3, 100), (lambda i, j: 64 * i + j + 2, 64), (lambda i, j: 128 * j + i + 256, 128),
    (lambda i, j: 6 * i + 2 * j, 2),
])  # fmt: skip
def test_quotient_and_rest_of_index_expressions(make: Any, divisor: int) -> None:
    """Where both are affine they walk like NumPy's numbers."""
    places = np.arange(4)[:, None], np.arange(5)[None, :]
    expression, want = make(nl.arange(4)[:, None], nl.arange(5)[None, :]), make(*places)

    def values(one: Any) -> Any:
        return one.const + sum(c * np.arange(extent).reshape([-1 if at == axis else 1 for at in range(2)])
                               for axis, (c, extent) in one.axes.items())  # fmt: skip

    np.testing.assert_array_equal(values(expression // divisor) + 0 * want, want // divisor)
    np.testing.assert_array_equal(values(expression % divisor) + 0 * want, want % divisor)


@pytest.mark.parametrize("divisor", [3, 0, -2, 1.5])
def test_a_quotient_that_is_not_affine_is_refused(divisor: Any) -> None:
    with pytest.raises(UnsupportedError, match="division of an index expression"):
        nl.arange(8) // divisor


def test_transpose_mode_is_a_hint_on_gen2(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product is the same one, in fp32, whatever the stationary operand is."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 256), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x, dtype=nl.bfloat16)
        product = nisa.nc_matmul(tile[:, 0:64], tile, is_transpose=True)
        assert product.dtype == nl.float32
        nl.store(out, nl.copy(product))
        return out

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    rounded = A.astype(nl.bfloat16.numpy).astype(np.float32)
    np.testing.assert_allclose(run(kernel, A), rounded[:, :64].T @ rounded, rtol=1e-4, atol=1e-3)
