"""Sorts and top-k of floats with NaN, infinities and both zeros, against the reference interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.rewriting import Builder
from neurontools.hlo_interpreter.binary import total_order
from neurontools.hlo_interpreter.sorting import largest_first
from tests.compiler.support import floats, integers, run_graph

Array = np.ndarray[Any, Any]
FLOATS = (np.float32, ml_dtypes.bfloat16, np.float16)


def _special(dtype: Any, rows: int = 3, count: int = 11) -> Array:
    """Return rows with NaN of both signs, infinities, zeros of both signs and equal elements, in any order."""
    values = floats(rows, count)
    values[:, :8] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 1.5]
    return np.random.default_rng(4).permuted(values, axis=1).astype(dtype)


def _bits(values: Array) -> list[Any]:
    """Return what can be compared exactly: NaN by their sign, the others by their bits."""
    return np.where(np.isnan(values), 0, values.view(f"i{values.itemsize}")).tolist() + np.signbit(values).tolist()  # type: ignore[no-any-return]


def _top(k: int, largest: bool) -> Any:
    def make(b: Builder, x: Value) -> list[Value]:
        kinds = [(x.dtype, (*x.shape[:-1], k)), ("s32", (*x.shape[:-1], k))]
        return list(b.graph.node("topk", (x,), kinds, {"k": k, "largest": largest}).results)

    return make


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_top_k_is_in_the_total_order(dtype: Any, largest: bool) -> None:
    x = _special(dtype)
    values, places = run_graph(_top(7, largest), x)
    want, where = largest_first(x, 7, largest=largest)
    assert places.tolist() == where.tolist()
    assert _bits(values) == _bits(want)


def test_top_k_of_integers_is_exact() -> None:
    x = integers(2, 9)
    values, places = run_graph(_top(4, True), x)
    want, where = largest_first(x, 4)
    assert (values.tolist(), places.tolist()) == (want.tolist(), where.tolist())


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_sort_with_a_comparator_of_the_total_order(dtype: Any) -> None:
    def make(b: Builder, x: Value) -> list[Value]:
        body = Graph("less")
        left, right = body.parameter(x.dtype, ()), body.parameter(x.dtype, ())
        body.roots = [body.add("compare", (left, right), "pred", (), direction="LT", type="TOTALORDER")]
        attrs = {"dimension": 1, "stable": True, "body": body}
        return list(b.graph.node("sort", (x,), [(x.dtype, x.shape)], attrs).results)

    x = _special(dtype)
    (got,) = run_graph(make, x)
    want = np.take_along_axis(x, np.argsort(total_order(x), axis=1, kind="stable"), 1)
    assert _bits(got) == _bits(want)


@pytest.mark.parametrize("target", ["AwsNeuronArgMax", "AwsNeuronArgMin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_place_of_an_extreme_is_that_of_the_first_nan(dtype: Any, target: str) -> None:
    def make(b: Builder, x: Value) -> Value:
        return b.graph.node("custom-call", (x,), [("u32", (x.shape[0],))], {"target": target, "config": b""}).result

    x = _special(dtype, rows=4)
    x[2, np.isnan(x[2])] = 0.25
    x[3] = np.array([-0.0, 0.0] * 5 + [0.0], dtype)
    (got,) = run_graph(make, x)
    assert got.tolist() == (np.argmax if target.endswith("Max") else np.argmin)(x, axis=1).tolist()
