"""Types in which sums, products and functions are computed before they are rounded to the type of a value.

Every result is rounded once: functions of numbers of at most 32 bits are computed in 64, so this reference is nearer
to the exact value than any device. What a device may differ by is for the comparison to say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neurontools.hlo_interpreter.registry import Array

__all__ = ["exact", "is_float", "is_small_integer", "rounded", "wide"]

_STANDARD_FLOATS = frozenset(("float16", "float32", "float64"))
_SMALL = frozenset(("int1", "int2", "int4", "uint1", "uint2", "uint4"))


def is_float(kind: np.dtype[Any]) -> bool:
    """Return whether values are real floating point numbers, of NumPy or ml_dtypes."""
    return kind.name in _STANDARD_FLOATS or kind.name.startswith(("bfloat", "float"))


def is_small_integer(kind: np.dtype[Any]) -> bool:
    """Return whether values are integers below eight bits."""
    return kind.name in _SMALL


def wide(values: Array) -> Array:
    """Return values in a type that NumPy computes in: what it does not know becomes float32 or int8."""
    if values.dtype.name in _SMALL:
        return values.astype(np.int8 if values.dtype.name.startswith("int") else np.uint8)
    if is_float(values.dtype) and values.dtype.name not in ("float32", "float64"):
        return values.astype(np.float32)
    return values


def exact(values: Array) -> Array:
    """Return real numbers as float64, complex ones as complex128; integers as they are."""
    if is_float(values.dtype):
        return values.astype(np.float64)
    if values.dtype == np.complex64:
        return values.astype(np.complex128)
    return wide(values)


def rounded(values: Array, kind: np.dtype[Any]) -> Array:
    """Return values in the type of a result, rounded to nearest even; integers wrap."""
    values = np.asarray(values)
    if values.dtype == kind:
        return values
    if is_small_integer(kind):
        return _wrapped(values, kind)
    # ml_dtypes goes from float64 by way of float32, which rounds twice; NumPy's own types are converted directly.
    if values.dtype == np.float64 and is_float(kind) and kind.name not in ("float32", "float16"):
        return _by_odd(values).astype(kind)
    return values.astype(kind)


def _by_odd(values: Array) -> Array:
    """Return float64 as float32 such that rounding it again to a shorter type is rounding once.

    Where bits are lost the last bit is made odd: no tie of a shorter type is met by accident (rounding to odd).
    """
    short = values.astype(np.float32)
    inexact = (short.astype(np.float64) != values) & np.isfinite(values) & np.isfinite(short)
    if not inexact.any():
        return short
    toward_zero = np.where(np.abs(short.astype(np.float64)) > np.abs(values), np.nextafter(short, np.float32(0)), short)
    odd = (toward_zero.view(np.uint32) | np.uint32(1)).view(np.float32)
    return np.where(inexact, odd, short)


def _wrapped(values: Array, kind: np.dtype[Any]) -> Array:
    bits = int(kind.name.removeprefix("u").removeprefix("int"))
    whole = values.astype(np.int64) & ((1 << bits) - 1)
    if kind.name.startswith("int"):
        # The sign's bit counts down: minus two to the width where it is set.
        whole = whole - ((whole >> (bits - 1)) << bits)
    return whole.astype(np.int8).astype(kind)
