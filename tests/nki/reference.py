"""What instructions compute, written with NumPy alone and independently of the emulator's executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 and the 8-bit floats with NumPy
import numpy as np

Array = np.ndarray[Any, Any]
F32 = np.float32
MASK = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF}


def cast(values: Array, dtype: str) -> Array:
    """Return fp32 results in the output's type: rounded to nearest even, integers saturated."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        bounds = np.iinfo(kind)
        return np.clip(np.rint(values.astype(np.float64)), bounds.min, bounds.max).astype(kind)
    with np.errstate(all="ignore"):
        return values.astype(F32).astype(kind)


def _sign_of_dividend(a: Array, b: Array) -> Array:
    return np.fmod(a, b)


# Binary arithmetic operators of nki.language, in fp32; comparisons and logic give 1 or 0.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "maximum": lambda a, b: np.where(a > b, a, b),
    "minimum": lambda a, b: np.where(a < b, a, b),
    "mod": lambda a, b: a - np.floor(a.astype(np.float64) / b) * b,
    "fmod": _sign_of_dividend,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}
# Operators whose results for small multiples of 3/8 are exact in fp32, so that any correct order gives the same bits.
EXACT = sorted(set(BINARY) - {"divide"})


def binary(name: str, a: Any, b: Any) -> Array:
    """Return `a op b` of fp32 arrays in fp32."""
    with np.errstate(all="ignore"):
        return np.asarray(BINARY[name](np.asarray(a, F32), np.asarray(b, F32))).astype(F32)


UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "negative": lambda a: -a,
    "square": lambda a: a * a,
    "relu": lambda a: np.where(a > 0, a, F32(0)),
    "sign": lambda a: (a > 0).astype(F32) - (a < 0).astype(F32),
    "logical_not": lambda a: a == 0,
}


def unary(name: str, a: Array) -> Array:
    """Return an operator of one fp32 array."""
    return np.asarray(UNARY[name](a)).astype(F32)


def bits(name: str, a: Array, b: Any) -> Array:
    """Return a bit operator on integers of one width, element by element in Python's own integers."""
    width = a.dtype.itemsize
    unsigned = f"u{width}"
    others = np.broadcast_to(np.asarray(b), a.shape)
    out = np.empty(a.shape, unsigned)
    for place in np.ndindex(a.shape):
        x, y = int(a[place]) & MASK[width], int(others[place])
        if name == "bitwise_and":
            result = x & y
        elif name == "bitwise_or":
            result = x | y
        elif name == "bitwise_xor":
            result = x ^ y
        elif name == "left_shift":
            result = x << y
        elif name == "right_shift":
            result = x >> y
        else:
            assert name == "invert"
            result = ~x
        out[place] = result & MASK[width]
    return out.view(a.dtype)


BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
INTEGER = ("add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "greater_equal")


def wrapped(name: str, a: Array, b: Array, dtype: str) -> Array:
    """Return an operator on 32-bit integers, exact in Python's own integers and wrapped to `dtype`."""
    plain = {**BINARY, "maximum": max, "minimum": min}[name]
    out = np.empty(a.shape, np.uint32)
    for place in np.ndindex(a.shape):
        out[place] = int(plain(int(a[place]), int(b[place]))) & MASK[4]
    return out.view(dtype)


def folded(name: str, values: Array) -> Array:
    """Fold the last axis, left to right in fp32."""
    total = values[..., 0].astype(F32)
    for number in range(1, values.shape[-1]):
        total = binary(name, total, values[..., number])
    return total
