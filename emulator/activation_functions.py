"""Activation functions by name, in closed form on fp32 arrays.

`bind(name)` gives a call `f(x, out, immediate)`; `out` may be `x`. Real engines evaluate piecewise polynomials, so last
bits differ; outside `VALID` real results are documented as invalid while these functions go on (sine as documented, as
a cubic). Source: hardware.md 3.5, 7.4, isa.md 5 (names of a public function table); slopes taken from `immediate` are
inferred.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from emulator.dtypes import Array
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple

__all__ = ["COPY", "FUNCTIONS", "VALID", "Activation", "Range", "bind"]

Activation = Callable[[Array, Array, float], object]


class Range(NamedTuple):
    """Input range in which a function is documented to be valid."""

    low: float
    high: float
    cite: str


# Source: hardware.md 7.4; log's lower bound and reciprocal's are bounds of the magnitude.
VALID: dict[str, Range] = {
    "log": Range(2.0**-64, 2.0**64, "hardware.md 7.4"),
    "sin": Range(-math.pi, math.pi, "hardware.md 7.4"),
    "arctan": Range(-math.pi / 2, math.pi / 2, "hardware.md 7.4"),
    "sqrt": Range(2.0**-116, 2.0**118, "hardware.md 7.4"),
    "rsqrt": Range(2.0**-87, 2.0**97, "hardware.md 7.4"),
    "reciprocal": Range(2.0**-42, 2.0**42, "hardware.md 7.4"),
}

_BEYOND_PI = np.float32(math.pi)  # the least fp32 above pi
_REACH = 12.0  # erfc is below the smallest fp32 from here on
_PER_UNIT = 128  # nodes per unit: cubic interpolation errs by less than 1e-9
_ROWS_AT_ONCE = 16  # computed together in float64
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715  # of the tanh approximation
_GELU_SLOPE = 1.702  # of the sigmoid approximation


@cache
def _cubics(scaled: bool) -> Array:
    """Return the coefficients of the cubic on each interval of 0 to _REACH, a row each, lowest power first.

    The cubics meet erf, or erfc(x)*exp(x*x), in values and slopes at the nodes.
    """
    points = [i / _PER_UNIT for i in range(int(_REACH * _PER_UNIT) + 2)]
    if scaled:
        values = [math.erfc(x) * math.exp(x * x) for x in points]
        slopes = [2.0 * x * v - _TWO_OVER_ROOT_PI for x, v in zip(points, values, strict=True)]
    else:
        values = [math.erf(x) for x in points]
        slopes = [_TWO_OVER_ROOT_PI * math.exp(-x * x) for x in points]
    value, slope = np.array(values), np.array(slopes) / _PER_UNIT
    here, rise, fall, step = value[:-1], slope[:-1], slope[1:], np.diff(value)
    return np.stack((here, rise, 3.0 * step - 2.0 * rise - fall, rise + fall - 2.0 * step), axis=1)


def _interpolate(magnitude: Array, scaled: bool) -> Array:
    """Return erf or the scaled erfc of non-negative float64 values; NaN gives anything."""
    place = np.minimum(magnitude, _REACH)
    place *= _PER_UNIT
    rows = np.take(_cubics(scaled), place.astype(np.intp), axis=0, mode="clip")
    place -= np.floor(place)
    result: Array = rows[..., 3] * place
    result += rows[..., 2]
    for power in (1, 0):
        result *= place
        result += rows[..., power]
    return result


def _erf64(wide: Array) -> Array:
    result = np.copysign(_interpolate(np.abs(wide), False), wide)
    np.copyto(result, wide, where=np.isnan(wide))
    return result


def _normal_cdf(x: Array) -> Array:
    """Return the standard normal distribution function in float64, relatively exact in the lower tail."""
    z = np.abs(x) * _ROOT_HALF
    tail = 0.5 * np.exp(-z * z) * _interpolate(z, True)
    result = np.where(x < 0, tail, 1.0 - tail)
    np.copyto(result, x, where=np.isnan(x))
    return result


def _sigmoid64(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _softplus64(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _wide(function: Callable[[Array], Array]) -> Activation:
    """Return an activation that computes in float64 and rounds once, few partitions at a time to stay in cache."""

    def call(x: Array, out: Array, immediate: float) -> None:
        for first in range(0, x.shape[0], _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            np.copyto(out[part], function(x[part].astype(np.float64)), casting="unsafe")

    return call


def _plain(ufunc: np.ufunc) -> Activation:
    def call(x: Array, out: Array, immediate: float) -> None:
        ufunc(x, out)

    return call


def _identity(x: Array, out: Array, immediate: float) -> None:
    if out is not x:
        np.copyto(out, x)


def _copy(x: Array, out: Array, immediate: float) -> None:
    if out is not x:
        np.copyto(out, x)


# Told apart from identity by executors: it takes neither scale nor bias.
COPY: Activation = _copy


def _relu(x: Array, out: Array, immediate: float) -> None:
    np.maximum(x, 0.0, out=out)


def _leaky_relu(x: Array, out: Array, immediate: float) -> None:
    np.copyto(out, np.where(x > 0, x, x * np.float32(immediate)))


def _ones(x: Array, out: Array, immediate: float) -> None:
    out.fill(1.0)


def _zeros(x: Array, out: Array, immediate: float) -> None:
    out.fill(0.0)


def _derivative_relu(x: Array, out: Array, immediate: float) -> None:
    np.greater(x, 0.0, out)


def _derivative_leaky_relu(x: Array, out: Array, immediate: float) -> None:
    np.copyto(out, np.where(x > 0, np.float32(1.0), np.float32(immediate)))


def _sine(x: Array, out: Array, immediate: float) -> None:
    """Return the sine in -pi to pi; outside, the cubics that meet it there go on, as documented (nki.api.shared)."""
    if not np.greater_equal(np.abs(x), _BEYOND_PI).any():
        np.sin(x, out)
        return
    beyond = np.abs(x).astype(np.float64) - math.pi
    outside = beyond > 0
    with np.errstate(over="ignore"):
        cubic = np.sign(x) * beyond * (beyond * beyond / 6.0 - 1.0)
        np.copyto(out, np.where(outside, cubic, np.sin(x)), casting="unsafe")


def _is_finite(x: Array, out: Array, immediate: float) -> None:
    np.isfinite(x, out)


def _square(x: Array, out: Array, immediate: float) -> None:
    np.multiply(x, x, out)


def _rsqrt(x: Array, out: Array, immediate: float) -> None:
    np.copyto(out, 1.0 / np.sqrt(x.astype(np.float64)), casting="unsafe")


def _sigmoid(x: Array, out: Array, immediate: float) -> None:
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1.0, out)
    np.reciprocal(out, out)


def _silu64(x: Array) -> Array:
    return x * _sigmoid64(x)


def _silu_dx64(x: Array) -> Array:
    s = _sigmoid64(x)
    return s * (1.0 + x * (1.0 - s))


def _gelu64(x: Array) -> Array:
    return x * _normal_cdf(x)


def _gelu_dx64(x: Array) -> Array:
    density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return _normal_cdf(x) + x * density


def _gelu_tanh64(x: Array) -> Array:
    # 0.5 * (1 + tanh(u)) is sigmoid(2u), which keeps the lower tail.
    return x * _sigmoid64(2.0 * _ROOT_TWO_OVER_PI * (x + _GELU_CUBIC * x * x * x))


def _gelu_sigmoid64(x: Array) -> Array:
    return x * _sigmoid64(_GELU_SLOPE * x)


def _gelu_sigmoid_dx64(x: Array) -> Array:
    s = _sigmoid64(_GELU_SLOPE * x)
    return s * (1.0 + _GELU_SLOPE * x * (1.0 - s))


def _mish64(x: Array) -> Array:
    return x * np.tanh(_softplus64(x))


def _erf_dx64(x: Array) -> Array:
    slope: Array = _TWO_OVER_ROOT_PI * np.exp(-x * x)
    return slope


FUNCTIONS: dict[str, Activation] = {
    "identity": _identity,
    "copy": COPY,
    "memset_zero": _zeros,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "parametric_relu": _leaky_relu,
    "derivative_identity": _ones,
    "derivative_relu": _derivative_relu,
    "derivative_leaky_relu": _derivative_leaky_relu,
    "tanh": _plain(np.tanh),
    "exp": _plain(np.exp),
    "log": _plain(np.log),
    "sqrt": _plain(np.sqrt),
    "rsqrt": _rsqrt,
    "reciprocal": _plain(np.reciprocal),
    "square": _square,
    "sign": _plain(np.sign),
    "abs": _plain(np.abs),
    "is_finite": _is_finite,
    "sigmoid": _sigmoid,
    "silu": _wide(_silu64),
    "silu_dx": _wide(_silu_dx64),
    "gelu": _wide(_gelu64),
    "gelu_dx": _wide(_gelu_dx64),
    "gelu_apprx_tanh": _wide(_gelu_tanh64),
    "gelu_apprx_sigmoid": _wide(_gelu_sigmoid64),
    "gelu_apprx_sigmoid_dx": _wide(_gelu_sigmoid_dx64),
    "softplus": _wide(_softplus64),
    "mish": _wide(_mish64),
    "erf": _wide(_erf64),
    "erf_dx": _wide(_erf_dx64),
    "sin": _sine,
    "cos": _plain(np.cos),
    "tan": _plain(np.tan),
    "arctan": _plain(np.arctan),
    "floor": _plain(np.floor),
    "ceil": _plain(np.ceil),
    "trunc": _plain(np.trunc),
}


def bind(name: Any) -> Activation:
    """Return the function of a name as function tables and `nl` spell it, whatever its case; unknown is unsupported."""
    found = FUNCTIONS.get(str(name).lower())
    if found is None:
        raise UnsupportedError(f"activation function {name!r} is not modelled")
    return found
