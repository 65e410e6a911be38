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


def normalized(x: Any, weight: Any, inside: Any) -> Any:
    return np.where(inside, x * weight / np.sqrt(np.where(inside, x * x, 0).sum(1, keepdims=True) / 12 + 1e-6), 0)


def softmax(x: Any, inside: Any) -> Any:
    powers = np.where(inside, np.exp(x), 0)
    return powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (lambda x, y, m: nl.softmax(x, 1, mask=m), lambda x, y, inside: softmax(x, inside)),
    "rms_norm": (lambda x, y, m: nl.rms_norm(x, y, 1, 12, mask=m), normalized),
    "rms_norm row": (lambda x, y, m: nl.rms_norm(x, nl.broadcast_to(y[0:1], (1, 12)), 1, 12, mask=m),
                     lambda x, y, inside: normalized(x, y[:1], inside)),
    "dropout": (lambda x, y, m: nl.dropout(x, nl.zeros((64, 1), nl.float32), mask=m),
                lambda x, y, inside: np.where(inside, x, 0)),
    "gather_flattened": (lambda x, y, m: nl.gather_flattened(
        x, nisa.iota(nl.arange(64)[:, None] * 0 + 11 - nl.arange(12)[None, :], nl.uint32), mask=m),
        lambda x, y, inside: np.where(inside, x[:, ::-1], 0)),
}  # fmt: skip


@WHICH
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_several_operands_under_a_mask(function: str, which: str) -> None:
    (mask, inside), (call, meaning) = MASKS[which], FUNCTIONS[function]

    def kernel(x: Any, y: Any) -> Any:
        kept = nl.zeros(X.shape, nl.float32)
        kept[...] = call(nl.load(x), nl.load(y), mask())
        return stored(kept)

    np.testing.assert_allclose(run(kernel, X, Y), meaning(X, Y, inside), rtol=2e-5, atol=1e-6)


FOLDS: dict[str, Callable[..., Any]] = {
    "activation": lambda x, r, m: nisa.activation(
        np.square, x, reduce_op=np.add, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce, mask=m),
    "activation_reduce": lambda x, r, m: nisa.activation_reduce(
        np.square, x, reduce_op=np.add, reduce_res=r, mask=m),
    "tensor_scalar_reduce": lambda x, r, m: nisa.tensor_scalar_reduce(
        data=nl.multiply(x, x), op0=np.add, operand0=0.0, reduce_op=np.add, reduce_res=r, mask=m),
}  # fmt: skip
ROWS_FROM = {
    "low": (lambda: nl.arange(64)[:, None] < 40, slice(0, 40)),
    "high": (lambda: nl.arange(64)[:, None] >= 40, slice(40, 64)),
    "none": (lambda: nl.arange(64)[:, None] < 0, slice(0, 0)), "all": (lambda: None, slice(0, 64)),
}  # fmt: skip


@pytest.mark.parametrize("rows", ROWS_FROM)
@pytest.mark.parametrize("name", FOLDS)
def test_sums_go_where_they_are_asked_for_wherever_that_begins(name: str, rows: str) -> None:
    mask, where = ROWS_FROM[rows]

    def kernel(x: Any) -> Any:
        sums = nl.zeros((64, 3), nl.float32)
        FOLDS[name](nl.load(x), sums[:, 1:2], mask())
        return stored(sums)

    want = np.zeros((64, 3))
    want[where, 1] = (X[where] ** 2).sum(1)
    np.testing.assert_allclose(run(kernel, X), want, rtol=1e-5)


def test_a_sum_of_rows_that_no_engine_begins_at() -> None:
    def kernel(x: Any) -> Any:
        sums = nl.zeros((64, 1), nl.float32)
        nisa.activation_reduce(np.square, nl.load(x)[5:10], reduce_op=np.add, reduce_res=sums[5:10])
        most, dst = nl.zeros((64, 1), nl.float32), nl.zeros((64, 12), nl.float32)
        ones = nl.full((64, 12), 1, nl.uint8)
        nisa.select_reduce(dst=dst[5:10], predicate=ones[5:10], on_true=nl.load(x)[5:10], on_false=0.0,
                           reduce_res=most[5:10], reduce_cmd=nisa.reduce_cmd.reset_reduce)  # fmt: skip
        return stored(sums), stored(most), stored(dst)

    sums, most, dst = run(kernel, X)
    want = np.zeros((64, 12), np.float32)
    want[5:10] = X[5:10]
    np.testing.assert_array_equal(dst, want)
    np.testing.assert_allclose(sums, (want**2).sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(most[5:10], X[5:10].max(1, keepdims=True))
    assert not most[:5].any() and not most[10:].any()


@pytest.mark.parametrize("rows", ROWS_FROM)
def test_a_running_sum_takes_its_factors_from_inside_the_mask(rows: str) -> None:
    mask, where = ROWS_FROM[rows]

    def kernel(x: Any) -> Any:
        dst, tile = nl.zeros(X.shape, nl.float32), nl.load(x)
        nisa.tensor_scalar_cumulative(src=tile, dst=dst, op0=nl.multiply, op1=nl.add, imm0=tile[:, 0:1], mask=mask())
        return stored(dst)

    want = np.zeros_like(X)
    want[where] = np.cumsum(X[where] * X[where, :1], 1)
    np.testing.assert_allclose(run(kernel, X), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pred", [
    lambda i, j: i != j, lambda i, j: (i < 3) | (j > 7), lambda i, j: ~((i == j) & (j > 2)), lambda i, j: i == 2 * j,
])  # fmt: skip
def test_a_choice_by_place_takes_either_of_two_comparisons(pred: Any) -> None:
    def kernel(x: Any) -> Any:
        where = pred(nl.arange(64)[:, None], nl.arange(12)[None, :])
        return stored(nisa.affine_select(where, nl.load(x), -9.0))

    np.testing.assert_array_equal(run(kernel, X), np.where(pred(ROWS, COLUMNS), X, np.float32(-9)))
