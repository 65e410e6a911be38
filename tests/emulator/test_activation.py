"""Activation functions against `math` in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from emulator.activation_functions import FUNCTIONS, VALID, bind
from formats.errors import UnsupportedError
from formats.isa import ActivationFunction

SLOPE = 0.25
POINTS = np.concatenate(
    [np.linspace(-8, 8, 2001), np.random.default_rng(1).normal(scale=3, size=2000), [0.0, 1e-6, -1e-6, 30.0, -30.0]]
).astype(np.float32)
POSITIVE = np.abs(POINTS) + np.float32(1e-6)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def sine(x: float) -> float:
    """Return the sine as the engine has it: outside -pi to pi a cubic goes on. Source: nki.api.shared."""
    beyond = abs(x) - math.pi
    return math.sin(x) if beyond <= 0 else math.copysign(1, x) * (beyond**3 / 6 - beyond)


REFERENCE = {
    "identity": lambda x: x,
    "copy": lambda x: x,
    "memset_zero": lambda x: 0.0,
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x: x if x > 0 else SLOPE * x,
    "parametric_relu": lambda x: x if x > 0 else SLOPE * x,
    "derivative_identity": lambda x: 1.0,
    "derivative_relu": lambda x: float(x > 0),
    "derivative_leaky_relu": lambda x: 1.0 if x > 0 else SLOPE,
    "tanh": math.tanh,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "abs": abs,
    "is_finite": lambda x: 1.0,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    "gelu": lambda x: x * normal(x),
    "gelu_dx": lambda x: normal(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
    "softplus": softplus,
    "mish": lambda x: x * math.tanh(softplus(x)),
    "erf": math.erf,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "sin": sine,
    "cos": math.cos,
    "tan": math.tan,
    "arctan": math.atan,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}


def test_every_function_of_the_enumeration_is_there_and_tested() -> None:
    assert {f.name.lower() for f in ActivationFunction} == set(FUNCTIONS) == set(REFERENCE)


@pytest.mark.parametrize("name", REFERENCE)
def test_values(name: str) -> None:
    points = POSITIVE if name in ("log", "sqrt", "rsqrt", "reciprocal") else POINTS
    out = np.empty_like(points)
    with np.errstate(all="ignore"):
        bind(name)(points, out, SLOPE)
    expected = np.array([REFERENCE[name](float(x)) for x in points])
    # Near its zeros a function is judged by its distance, elsewhere by its relative error: a few units of fp32.
    assert np.allclose(
        out,
        expected,
        rtol=1e-6,
        atol=1e-9 if name in ("sin", "cos", "tan", "gelu_dx", "silu_dx", "gelu_apprx_sigmoid_dx") else 1e-44,
    )


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_output_may_be_the_input(name: str) -> None:
    apart, together = np.empty_like(POSITIVE), POSITIVE.copy()
    with np.errstate(all="ignore"):
        bind(name)(POSITIVE, apart, SLOPE)
        bind(name)(together, together, SLOPE)
    assert np.array_equal(apart, together)


def test_what_is_not_finite() -> None:
    x, out = np.array([np.inf, -np.inf, np.nan], np.float32), np.empty(3, np.float32)
    expected = {
        "is_finite": [0, 0, 0],
        "erf": [1, -1, np.nan],
        "tanh": [1, -1, np.nan],
        "exp": [np.inf, 0, np.nan],
        "sigmoid": [1, 0, np.nan],
        "relu": [np.inf, 0, np.nan],
        "softplus": [np.inf, 0, np.nan],
    }
    for name, values in expected.items():
        with np.errstate(all="ignore"):
            bind(name)(x, out, 0.0)
        assert np.array_equal(out, np.array(values, np.float32), equal_nan=True), name


def test_names_have_no_case_and_unknown_ones_are_refused() -> None:
    assert bind("EXP") is bind("exp") is FUNCTIONS["exp"]
    with pytest.raises(UnsupportedError, match="softsign"):
        bind("softsign")


def test_ranges_name_functions() -> None:
    assert set(VALID) <= set(FUNCTIONS) and all(r.low < r.high and r.cite for r in VALID.values())
