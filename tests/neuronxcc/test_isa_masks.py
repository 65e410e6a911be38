"""Masks of instructions that are not computed element by element, and operands of other types, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools.neuronxcc.nki as nki
import neurontools.neuronxcc.nki.isa as nisa
import neurontools.neuronxcc.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.nki.errors import NkiValidationError

RANDOM = np.random.default_rng(5)
X = RANDOM.uniform(-2, 2, (64, 12)).astype(np.float32)
Y = RANDOM.uniform(3, 4, (64, 12)).astype(np.float32)
ROWS, COLUMNS = np.arange(64)[:, None], np.arange(12)[None, :]
MASKS: dict[str, tuple[Callable[[], Any], Any]] = {
    "rows": (lambda: nl.arange(64)[:, None] < 40, np.broadcast_to(ROWS < 40, X.shape)),
    "columns": (lambda: nl.arange(12)[None, :] >= 5, np.broadcast_to(COLUMNS >= 5, X.shape)),
    "both": (lambda: (nl.arange(64)[:, None] < 40) & (nl.arange(12)[None, :] >= 5), (ROWS < 40) & (COLUMNS >= 5)),
}
WHICH = pytest.mark.parametrize("which", MASKS)


def run(kernel: Callable[..., Any], *args: Any) -> Any:
    results = nki.jit(kernel)(*args)
    return [np.asarray(one) for one in results] if isinstance(results, tuple) else np.asarray(results)


def stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@WHICH
def test_select_reduce_writes_and_folds_inside_its_mask(which: str) -> None:
    mask, inside = MASKS[which]
    where = RANDOM.integers(0, 2, X.shape).astype(np.uint8)
    column = RANDOM.uniform(5, 6, (64, 1)).astype(np.float32)

    def kernel(x: Any, p: Any, c: Any) -> Any:
        dst, folded = nl.zeros(X.shape, nl.float32), nl.zeros((64, 1), nl.float32)
        nisa.select_reduce(dst=dst, predicate=nl.load(p), on_true=nl.load(x), on_false=nl.load(c), reduce_res=folded,
                           reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=nl.max, mask=mask())  # fmt: skip
        return stored(dst), stored(folded)

    chosen = np.where(where, X, column)
    got, folded = run(kernel, X, where, column)
    np.testing.assert_array_equal(got, np.where(inside, chosen, 0))
    most = np.where(inside, chosen, -np.inf).max(1, keepdims=True)
    np.testing.assert_array_equal(folded, np.where(inside.any(1, keepdims=True), most, 0))


@WHICH
def test_range_select_counts_places_as_if_there_were_no_mask(which: str) -> None:
    mask, inside = MASKS[which]
    low, high = (RANDOM.integers(0, 14, (64, 1)).astype(np.float32) for _ in range(2))

    def kernel(x: Any, a: Any, b: Any) -> Any:
        result = nl.full(X.shape, 7.0, nl.float32, buffer=nl.sbuf)
        result[...] = nisa.range_select(on_true_tile=nl.load(x), comp_op0=np.greater_equal, comp_op1=np.less,
                                        bound0=nl.load(a), bound1=nl.load(b), range_start=1, mask=mask())  # fmt: skip
        return stored(result)

    place = COLUMNS + 1
    want = np.where((place >= low) & (place < high), X, np.finfo(np.float32).min)
    np.testing.assert_array_equal(run(kernel, X, low, high), np.where(inside, want, 7))


def test_range_select_takes_the_one_value_that_it_has() -> None:
    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return stored(nisa.range_select(on_true_tile=tile, comp_op0=np.less, comp_op1=np.less, bound0=tile[:, 0:1],
                                        bound1=tile[:, 0:1], on_false_value=-5.0))  # fmt: skip

    with pytest.raises(NkiValidationError, match=r"on_false_value is -5\.0, must be FP32_MIN"):
        run(kernel, X)


def test_a_shuffle_moves_the_columns_inside_its_mask() -> None:
    order = [int(one) for one in RANDOM.permutation(32)]

    def kernel(x: Any, y: Any, name: str) -> Any:
        dst = nl.load(y)
        nisa.nc_stream_shuffle(src=nl.load(x), dst=dst, shuffle_mask=order, mask=MASKS[name][0]())
        return stored(dst)

    moved = X.reshape(2, 32, 12)[:, order].reshape(X.shape)
    got = run(lambda x, y: kernel(x, y, "columns"), X, Y)
    np.testing.assert_array_equal(got, np.where(MASKS["columns"][1], moved, Y))
    with pytest.raises(UnsupportedError, match="nc_stream_shuffle with a mask over partitions"):
        run(lambda x, y: kernel(x, y, "rows"), X, Y)


def test_masks_of_gathers_and_transposes_by_dma_keep_what_is_outside() -> None:
    index = RANDOM.integers(0, 12, (64, 1)).astype(np.uint16)

    def gather(x: Any, places: Any) -> Any:
        result = nl.full((64, 1, 16), 7.0, nl.float32, buffer=nl.sbuf)
        result[...] = nisa.local_gather(nl.load(x), nl.load(places), mask=nl.arange(64)[:, None, None] < 20)
        return stored(result)

    found = np.concatenate([X[group : group + 16, index[group : group + 16, 0]] for group in range(0, 64, 16)])
    got = run(gather, X, index)
    np.testing.assert_array_equal(got[:, 0], np.where(ROWS < 20, found, 7))

    def turn(x: Any) -> Any:
        result = nl.full((12, 64), 7.0, nl.float32, buffer=nl.sbuf)
        result[...] = nisa.dma_transpose(nl.load(x), mask=MASKS["both"][0]())
        return stored(result)

    np.testing.assert_array_equal(run(turn, X), np.where(MASKS["both"][1].T, X.T, 7))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32])
def test_columns_of_other_types_are_read_as_engines_read_them(dtype: Any) -> None:
    whole = RANDOM.integers(0, 99, (64, 12)).astype(dtype)
    column = RANDOM.integers(0, 99, (64, 1)).astype(dtype)
    bits = run(lambda x, c: stored(nisa.tensor_scalar(nl.load(x), np.bitwise_xor, nl.load(c))), whole, column)
    np.testing.assert_array_equal(bits, whole ^ column)
    added = run(lambda x, c: stored(nisa.tensor_scalar(nl.load(x), np.add, nl.load(c))), X, column)
    np.testing.assert_array_equal(added, X + column.astype(np.float32))


def test_what_words_refuse_is_brought_to_them() -> None:
    half = X[:, :1].astype(np.float16)

    def reduced(x: Any, c: Any) -> Any:
        folded = nl.zeros((64, 1), nl.float32)
        nisa.tensor_scalar_reduce(data=nl.load(x), op0=np.add, operand0=nl.load(c), reduce_op=np.max, reduce_res=folded)
        return stored(folded)

    np.testing.assert_array_equal(run(reduced, X, half), (X + half.astype(np.float32)).max(1, keepdims=True))
    dropped = run(lambda x: stored(nisa.dropout(nl.load(x), 0.0, dtype=nl.bfloat16)), X)
    np.testing.assert_array_equal(dropped.astype(np.float32), X.astype(dropped.dtype).astype(np.float32))
    total = run(lambda x: stored(nisa.tensor_partition_reduce(np.add, x)), X)
    np.testing.assert_allclose(total, X.sum(0, keepdims=True), rtol=1e-4, atol=1e-5)
