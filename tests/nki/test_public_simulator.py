"""What AWS's simulator takes beyond the documented views: ranges as indices, words of the second beta, copies."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.errors import NkiValidationError

RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((128, 64), np.float32)
Y = RANDOM.standard_normal((128, 64), np.float32)


def stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("make", [nl.affine_range, nl.sequential_range, nl.static_range, range])
@pytest.mark.parametrize("bounds", [(64,), (8, 24), (1, 64, 3), (5, 6)])
def test_a_range_as_an_index(make: Any, bounds: tuple[int, ...]) -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        view = tile[:, make(*bounds)]
        copy = nl.ndarray(view.shape, nl.float32, buffer=nl.sbuf)
        copy[nl.affine_range(128), :] = view
        return stored(copy), stored(nl.load(x[nl.affine_range(32, 64), make(*bounds)]))

    whole, part = nki.jit(kernel)(X)
    np.testing.assert_array_equal(whole, X[:, range(*bounds)])
    np.testing.assert_array_equal(part, X[32:64, range(*bounds)])


@pytest.mark.parametrize("index", [range(65), range(-1, 3), range(3, 3), range(9, 3, -1)])
def test_a_range_that_leaves_the_dimension(index: range) -> None:
    with pytest.raises(NkiValidationError, match=r"range\(.*\) leaves dimension 1 of size 64, or does not count up"):
        nki.jit(lambda x: nl.load(x)[:, index])(X)


def test_words_of_the_second_beta() -> None:
    def kernel(a: Any, b: Any) -> Any:
        first = sbuf.view(dtype=a.dtype, shape=a.shape)  # type: ignore[name-defined]  # noqa: F821
        second = nl.sbuf.view(b.dtype, b.shape)
        nisa.dma_copy(dst=first, src=a)
        nisa.dma_copy(dst=second, src=b)
        total = psum.view(dtype=nl.float32, shape=(64, 64))  # type: ignore[name-defined]  # noqa: F821
        nisa.nc_matmul(total, first, second)
        nisa.tensor_copy(first[0:64], total)
        out = hbm.view(dtype=a.dtype, shape=(64, 64))  # type: ignore[name-defined]  # noqa: F821
        nisa.dma_copy(dst=out, src=first[0:64])
        return out

    np.testing.assert_allclose(nki.jit(kernel)(X, Y), X.T @ Y, rtol=1e-4, atol=1e-3)
    assert not any(hasattr(builtins, word) for word in ("sbuf", "psum", "hbm"))


@pytest.mark.parametrize("shape", [(64, 128), (16, 8, 64), (1, 8192), (128, 8, 8), (-1, 256)])
def test_a_reshape_across_partitions(shape: tuple[int, ...]) -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return stored(nl.multiply(tile.reshape(shape), 2.0)), stored(tile[32:64, 0:48].reshape((64, 24)))

    whole, part = nki.jit(kernel)(X)
    np.testing.assert_array_equal(whole, 2 * X.reshape(shape))
    np.testing.assert_array_equal(part, X[32:64, :48].reshape(64, 24))


def test_a_reshape_across_partitions_that_a_view_would_tell_apart_is_refused() -> None:
    def writes(x: Any) -> Any:
        tile = nl.load(x)
        nisa.memset(tile.reshape((64, 128)), 0.0)
        return stored(tile)

    def changed(x: Any) -> Any:
        tile = nl.load(x)
        wide = tile.reshape((64, 128))
        nisa.memset(tile, 0.0)
        return stored(wide)

    with pytest.raises(NkiValidationError, match="a write to tile reshaped across partitions would reach a copy only"):
        nki.jit(writes)(X)
    with pytest.raises(NkiValidationError, match="tile changed after it was reshaped across partitions"):
        nki.jit(changed)(X)

    def product(x: Any) -> Any:
        sums = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
        return sums.reshape((32, 128))

    with pytest.raises(NkiValidationError, match="changes the 64 partitions of a psum tensor"):
        nki.jit(product)(X)


@pytest.mark.parametrize(("compute", "want"), [
    (nl.add, X + Y), (lambda a, b: a * b, X * Y), (lambda a, b: nl.subtract(a, nl.load(b)), X - Y),
    (lambda a, b: nl.maximum(a, 0.5), np.maximum(X, 0.5)), (lambda a, b: nl.square(a), X * X),
    (lambda a, b: -b, -Y), (lambda a, b: nl.max(a, axis=1), X.max(1, keepdims=True)),
    (lambda a, b: nl.softmax(a, axis=1), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    (lambda a, b: nl.where(nl.greater(a, b), a, b), np.maximum(X, Y)),
])  # fmt: skip
def test_functions_of_tensors_in_hbm(compute: Any, want: Any) -> None:
    got = nki.jit(lambda a, b: stored(compute(a, b)))(X, Y)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_updates_of_a_tensor_in_hbm() -> None:
    def kernel(a: Any, b: Any) -> None:
        a += b
        a *= 2.0

    mine = X.copy()
    assert nki.jit(kernel)(mine, Y) is None
    np.testing.assert_allclose(mine, (X + Y) * 2, rtol=1e-6)


def test_a_product_of_tensors_in_hbm() -> None:
    def kernel(a: Any, b: Any) -> Any:
        return stored(nl.matmul(a, b, transpose_x=True))

    np.testing.assert_allclose(nki.jit(kernel)(X, Y), X.T @ Y, rtol=1e-4, atol=1e-3)
