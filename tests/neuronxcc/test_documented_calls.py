"""Functions of the first generation in their documented forms: by name, with dtype=, under a mask, of HBM operands."""

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

RANDOM = np.random.default_rng(21)
X = RANDOM.uniform(0.1, 0.9, (64, 48)).astype(np.float32)
Y = RANDOM.uniform(0.1, 0.9, (64, 48)).astype(np.float32)
WHOLE = RANDOM.integers(1, 30, (64, 48)).astype(np.int32)
INSIDE = (np.arange(64)[:, None] < 40) & (np.arange(48)[None, :] >= 3)


def run(body: Callable[..., Any], *args: Any) -> Any:
    def kernel(*tensors: Any) -> Any:
        made = body(*tensors)
        out = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
        nl.store(out, made)
        return out

    return np.asarray(nki.jit(kernel)(*args)).astype(np.float64)


def mask() -> Any:
    return (nl.arange(64)[:, None] < 40) & (nl.arange(48)[None, :] >= 3)


UNARY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "square": np.square, "abs": np.abs, "negative": np.negative,
         "tanh": np.tanh, "reciprocal": lambda x: 1 / x, "floor": np.floor, "sign": np.sign}  # fmt: skip
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
          "less": np.less, "equal": np.equal, "logical_and": np.logical_and, "power": np.power}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tile(name: str) -> None:
    function, want = getattr(nl, name), UNARY[name](X)
    np.testing.assert_allclose(run(lambda x: function(x=nl.load(x)), X), want, rtol=8e-3, atol=1e-3)
    np.testing.assert_allclose(run(lambda x: function(x), X), want, rtol=8e-3, atol=1e-3)
    np.testing.assert_allclose(run(lambda x: function(nl.load(x), dtype=nl.bfloat16), X), want, rtol=2e-2, atol=1e-2)
    got = run(lambda x: function(nl.load(x), mask=mask()), X)
    np.testing.assert_allclose(got[INSIDE], want[INSIDE], rtol=8e-3, atol=1e-3)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_tiles(name: str) -> None:
    function, want = getattr(nl, name), BINARY[name](X, Y).astype(np.float64)
    np.testing.assert_allclose(run(lambda x, y: function(x=nl.load(x), y=nl.load(y)), X, Y), want, rtol=2e-3)
    np.testing.assert_allclose(run(lambda x, y: function(nl.load(x), y=y), X, Y), want, rtol=2e-3)
    got = run(lambda x, y: function(nl.load(x), nl.load(y), mask=mask()), X, Y)
    np.testing.assert_allclose(got[INSIDE], want[INSIDE], rtol=2e-3)
    np.testing.assert_allclose(run(lambda x: function(0.5, nl.load(x)), X), BINARY[name](0.5, X), rtol=2e-3)


@pytest.mark.parametrize(("use", "want"), [
    (lambda t: t == 3, WHOLE == 3), (lambda t: t != 3, WHOLE != 3), (lambda t: t % 7, WHOLE % 7), (
        lambda t: ~t, ~WHOLE), (lambda t: abs(-t), WHOLE), (lambda t: np.int32(3) * t, 3 * WHOLE),
    (lambda t: nl.add(*t[0:2]), WHOLE[:1] + WHOLE[1:2]),
])  # fmt: skip
def test_operators_of_python(use: Any, want: Any) -> None:
    np.testing.assert_array_equal(run(lambda x: use(nl.load(x)), WHOLE), want)


def test_what_masks_leave_of_a_transpose() -> None:
    rows = np.arange(64) < 40
    for turn in (nl.load_transpose2d, lambda x, **more: nl.transpose(nl.load(x), **more)):
        got = run(lambda x, turn=turn: turn(x, mask=nl.arange(64)[:, None] < 40), X)
        np.testing.assert_array_equal(got[:, rows], X.T[:, rows])


def test_a_comparison_of_index_expressions_as_a_condition() -> None:
    i, j = np.arange(64)[:, None], np.arange(48)[None, :]
    got = run(lambda x: nl.where(nl.arange(64)[:, None] >= nl.arange(48)[None, :], nl.load(x), -1.0), X)
    np.testing.assert_array_equal(got, np.where(i >= j, X, -1))
    with pytest.raises(NkiValidationError, match="needs a tile as x or y"):
        run(lambda x: nl.where(nl.arange(64)[:, None] > 3, 1.0, 0.0), X)


def test_a_seed_of_random_numbers_and_a_sum_into_hbm() -> None:
    def drawn(x: Any) -> Any:
        nl.random_seed(7)
        return nl.rand((64, 48))

    first = run(drawn, X)
    np.testing.assert_array_equal(first, run(drawn, X))
    assert first.std() > 0.2

    def summed(x: Any) -> Any:
        nl.atomic_rmw(x[nl.arange(64)[:, None], nl.arange(48)[None, :]], nl.load(x), op=np.add)
        return nl.load(x)

    np.testing.assert_array_equal(run(summed, X.copy()), 2 * X)


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: nl.exp(t, dtpye=nl.float32), r"nl\.exp has no dtpye=; did you mean dtype\?; it is nl\.exp\(x, dtype="),
    (lambda t: nl.add(t), r"nl\.add got 1 operands; it is nl\.add\(x, y, dtype=, mask=\)"),
    (lambda t: nl.exp(2.0), r"nl\.exp takes tiles; none of its operands is one: 2\.0"),
    (lambda t: nl.bypass(t), r"nl\.bypass got"), (lambda t: 1 if t else 2, r"nl\.where\(condition, x, y\)"),
    (lambda t: t @ t, r"write nl\.matmul"), (lambda t: t // 2, r"write nl\.floor"), (lambda t: t.T, r"nl\.transpose"),
    (lambda t: float(t), r"there is no float\(\) of it"), (lambda t: range(t), "there is no integer of it"),
    (lambda t: np.exp(t), r"np\.exp takes none"), (lambda t: t.item(), r"nl\.device_print"),
])  # fmt: skip
def test_calls_that_do_not_fit_say_what_does(call: Any, words: str) -> None:
    with pytest.raises(NkiValidationError, match=words) as raised:
        nki.jit(lambda x: call(nl.load(x)))(X)
    assert "\n" not in str(raised.value) and "test_documented_calls.py:" in str(raised.value)


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: nl.load(x, mask=np.ones((64, 48), bool)), r"a mask that is a ndarray; write comparisons of index"),
    (lambda x: nl.load(x, mask=nl.load(x)), r"or nl\.where for a choice by values"),
    (lambda x: nl.arange(64)[:, None] * nl.arange(48)[None, :], "times an index expression, which is no whole number"),
    (lambda x: nl.load(x[np.arange(64)[:, None], np.arange(48)[None, :]]), r"an array of NumPy is no index; write nl"),
    (lambda x: nisa.tensor_copy(nl.load(x), dst=nl.load(x)), r"with dst= as in the present generation"),
    (lambda x: nl.load(x).reshape((64, 48 / 5, 5)), r"shape \(64, 9\.6, 5\) is not made of whole numbers"),
    (lambda x: nl.zeros((64, 48 / 5), nl.float32), r"shape \(64, 9\.6\) is not made of whole numbers"),
    (lambda x: nl.load(x, msak=None), r"load with msak= is not supported; did you mean mask\?, at"),
    (lambda x: nl.add(nl.load(x), nl.arange(4)[:, None]), r"y is <index expression of shape \(4, 1\)>, must"),
    (lambda x: nl.load(x[nl.ds(nl.load(x[0:1, 0:1]), 4), :]), r"index <NkiTensor '\w+' sbuf float32 \(1, 1\)> of dim"),
    (lambda x: nl.arange(128.0), r"nl\.arange does not take bounds=\(128\.0,\) \(TypeError"),
])  # fmt: skip
def test_indices_and_masks_of_other_kinds_say_what_to_write(call: Any, words: str) -> None:
    with pytest.raises((NkiValidationError, UnsupportedError), match=words):
        nki.jit(lambda x: call(x))(X)


def test_a_quotient_that_is_whole_is_an_extent() -> None:
    """Kernels write shapes as `height / 2`, which Python makes a float."""

    def kernel(x: Any) -> Any:
        parts = nl.load(x).reshape((64, 48 / 6, 6))
        return nisa.tensor_reduce(np.max, parts, axis=[2])

    np.testing.assert_array_equal(run(kernel, X), X.reshape(64, 8, 6).max(2))
