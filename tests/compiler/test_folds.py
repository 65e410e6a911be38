"""Folds and signs at their edges: parts of long folds, bodies that mind the order, types without infinities."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neurontools.compiler.options import CompileOptions
from tests.compiler.support import floats, run_graph
from tests.compiler.test_edges import both, module

_TRN3 = CompileOptions(target="trn3", limits="ours", lnc=1)
_NAMES = {"bfloat16": "bf16", "float16": "f16", "float8_e5m2": "f8e5m2", "float32": "f32", "float8_e4m3fn": "f8e4m3fn",
          "float8_e4m3": "f8e4m3", "float8_e3m4": "f8e3m4"}  # fmt: skip


def _body(fold: str, kind: str) -> str:
    return f"fold {{ a = {kind}[] parameter(0)\n b = {kind}[] parameter(1)\n ROOT r = {kind}[] {fold}(a, b)\n}}\n"


@pytest.mark.parametrize("shape", [(3, 1100), (1025,), (64, 5000), (2, 257, 7)])
@pytest.mark.parametrize("fold", ["maximum", "minimum", "add"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e5m2])
def test_long_folds_of_short_floats(dtype: Any, fold: str, shape: tuple[int, ...]) -> None:
    """Parts are kept in fp32, and what was made of them in the short type was taken for that: NaN, or any number."""
    kind = _NAMES[np.dtype(dtype).name]
    dims = ",".join(map(str, shape))
    axes = ",".join(map(str, range(len(shape) > 1, len(shape))))
    kept = shape[:1] if len(shape) > 1 else ()
    start = {"maximum": "-inf", "minimum": "inf", "add": "0"}[fold]
    whole = module(
        f"{kind}[{','.join(map(str, kept))}] reduce(p0, c), dimensions={{{axes}}}, to_apply=fold",
        f"{kind}[{dims}]", bodies=_body(fold, kind), more=f"  c = {kind}[] constant({start})",
    )  # fmt: skip
    given = (floats(*shape) / 64).astype(dtype)
    want, (got,) = both(whole, given)
    np.testing.assert_array_equal(got.reshape(kept).astype(np.float32), np.asarray(want).astype(np.float32))


_FIRST_NAN = """take {
  value = f32[] parameter(0)
  place = s32[] parameter(1)
  other = f32[] parameter(2)
  there = s32[] parameter(3)
  larger = pred[] compare(value, other), direction=GT
  none = pred[] compare(value, value), direction=NE
  pick = pred[] or(larger, none)
  same = pred[] compare(value, other), direction=EQ
  before = pred[] compare(place, there), direction=LT
  tie = pred[] and(same, before)
  either = pred[] or(pick, tie)
  v = f32[] select(pick, value, other)
  p = s32[] select(either, place, there)
  ROOT r = (f32[], s32[]) tuple(v, p)
}
"""


@pytest.mark.parametrize("shape", [(3, 4), (5, 31), (2, 1100), (40, 1)])
def test_a_body_gets_elements_in_their_order(shape: tuple[int, int]) -> None:
    """A body that may be regrouped only was given the two halves of a row: of several NaN a later one was found."""
    dims = f"{shape[0]},{shape[1]}"
    whole = module(
        f"s32[{shape[0]}] get-tuple-element(both), index=1", f"f32[{dims}]", bodies=_FIRST_NAN,
        more=f"  places = s32[{dims}] iota(), iota_dimension=1\n  low = f32[] constant(-inf)\n"
        f"  zero = s32[] constant(0)\n"
        f"  both = (f32[{shape[0]}], s32[{shape[0]}]) reduce(p0, places, low, zero), dimensions={{1}}, to_apply=take",
    )  # fmt: skip
    given = floats(*shape)
    given[np.random.default_rng(1).random(shape) < 0.3] = np.nan
    want, (got,) = both(whole, given)
    np.testing.assert_array_equal(want, given.argmax(1))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_the_sign_of_zero_stays(dtype: Any) -> None:
    """The operator of the engines makes 0 of -0, and the result of a division by it was infinity of the wrong sign."""
    tiny = ml_dtypes.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, 2.5, -2.5, np.inf, -np.inf, np.nan, float(tiny), -float(tiny), 3e4, -3e4], dtype)
    (got,) = run_graph(lambda b, x: b.op("sign", x), x)
    want = np.where((x == 0) | np.isnan(x), x, np.copysign(dtype(1), x))
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("fold", ["maximum", "minimum"])
def test_windows_over_types_without_infinities(fold: str, dtype: Any) -> None:
    """The padding was an infinity, which in f8e4m3fn is no number."""
    kind = _NAMES[np.dtype(dtype).name]
    start = float(ml_dtypes.finfo(dtype).max) * (-1 if fold == "maximum" else 1)
    whole = module(
        f"{kind}[5,8] reduce-window(p0, c), window={{size=3x1 pad=2_0x0_0}}, to_apply=fold", f"{kind}[5,8]",
        bodies=_body(fold, kind), more=f"  c = {kind}[] constant({start})",
    )  # fmt: skip
    want, (got,) = both(whole, floats(5, 8).astype(dtype), options=_TRN3)
    np.testing.assert_array_equal(got.astype(np.float32), np.asarray(want).astype(np.float32))


@pytest.mark.parametrize("root", [
    "f8e4m3fn[6,9] add(p0, p1)", "f8e4m3fn[6,9] maximum(p0, p1)", "f8e4m3fn[6,9] multiply(p0, p0)",
    "pred[6,9] compare(p0, p1), direction=LT", "f8e4m3fn[6,9] clamp(p1, p0, p1)",
])  # fmt: skip
def test_arithmetic_of_a_type_that_words_have_no_code_for(root: str) -> None:
    """Of two inputs, TENSOR_TENSOR has no room for the code of f8e4m3fn: the builder gave up with a field's width."""
    whole = module(root, "f8e4m3fn[6,9]", "f8e4m3fn[6,9]")
    given = [floats(6, 9, seed=seed).astype(ml_dtypes.float8_e4m3fn) for seed in range(2)]
    want, (got,) = both(whole, *given, options=_TRN3)
    np.testing.assert_array_equal(got.astype(np.float32), np.asarray(want).astype(np.float32))
