"""The interpreter at its edges: sorts of nothing, NaN of few bits, custom calls that do not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from formats.errors import FormatError
from formats.hlo.text import parse_module
from neurontools.hlo_interpreter import evaluate


def _evaluated(root: str, *inputs: tuple[str, Any], bodies: str = "") -> Any:
    given = "\n".join(f"  p{number} = {kind} parameter({number})" for number, (kind, _) in enumerate(inputs))
    text = f"HloModule m\n\n{bodies}\nENTRY main {{\n{given}\n  ROOT r = {root}\n}}\n"
    return evaluate(parse_module(text), [value for _, value in inputs])


def test_sorts_of_nothing() -> None:
    less = "lt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT\n}\n"
    for shape in ((0, 3), (3, 0)):
        text = f"f32[{shape[0]},{shape[1]}]"
        for dimension in (0, 1):
            root = f"{text} sort(p0), dimensions={{{dimension}}}, to_apply=lt"
            assert _evaluated(root, (text, np.zeros(shape, np.float32)), bodies=less).shape == shape


@pytest.mark.parametrize("bits", [0, 1, 5])
def test_nan_stays_with_any_number_of_bits(bits: int) -> None:
    """As XLA has it on a CPU; without a bit of mantissa it was infinite."""
    root = f"f32[3] reduce-precision(p0), exponent_bits=5, mantissa_bits={bits}"
    found = _evaluated(root, ("f32[3]", np.array([np.nan, np.inf, 1], np.float32)))
    np.testing.assert_array_equal(found, np.array([np.nan, np.inf, 1], np.float32))


def test_short_floats_lose_precision_too() -> None:
    values = np.array([1.25, 1.75, 3, -5], ml_dtypes.float8_e5m2)
    found = _evaluated("f8e5m2[4] reduce-precision(p0), exponent_bits=5, mantissa_bits=1", ("f8e5m2[4]", values))
    assert found.astype(float).tolist() == [1.0, 2.0, 3.0, -4.0]


_ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("root", "inputs"),
    [
        ('f32[3] custom-call(p0, p1), custom_call_target="AwsNeuronGeluBackward"',
         [("f32[3]", _ONES), ("f32[4]", np.ones(4, np.float32))]),
        ('f32[3] custom-call(p0), custom_call_target="AwsNeuronSilu"', [("pred[3]", np.ones(3, bool))]),
        ('f32[3] custom-call(p0), custom_call_target="AwsNeuronSilu"', [("c64[3]", np.ones(3, np.complex64))]),
        ('f32[3] custom-call(p0), custom_call_target="AwsNeuronSilu"', [("token[]", None)]),
        ('(f32[1], s32[1]) custom-call(p0), custom_call_target="AwsNeuronTopK"', [("f32[]", np.float32(1))]),
    ],
)  # fmt: skip
def test_custom_calls_that_do_not_fit_are_refused(root: str, inputs: list[tuple[str, Any]]) -> None:
    """These were errors of NumPy."""
    with pytest.raises(FormatError):
        _evaluated(root, *inputs)


def test_a_softmax_of_nothing() -> None:
    root = 'f32[2,0] custom-call(p0), custom_call_target="AwsNeuronSoftmax"'
    assert _evaluated(root, ("f32[2,0]", np.zeros((2, 0), np.float32))).shape == (2, 0)
