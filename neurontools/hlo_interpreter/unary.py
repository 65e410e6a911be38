"""Functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from formats.hlo import Instruction, dtype_of, type_of
from neurontools.hlo_interpreter.numbers import exact, is_float, is_small_integer, rounded, wide
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, elementwise

__all__ = ["error_function"]


def _logistic(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _reciprocal_root(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


def _cube_root(x: Array) -> Array:
    return np.cbrt(x) if x.dtype.kind == "f" else np.power(x, 1 / 3)


def error_function(x: Array) -> Array:
    """Return erf of float64 numbers."""
    return np.asarray(_erf(x)) if x.size else x


_erf = np.vectorize(math.erf, otypes=[np.float64])

# fmt: off
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exponential": np.exp,  "exponential-minus-one": np.expm1,
    "log": np.log,          "log-plus-one": np.log1p,
    "logistic": _logistic,  "erf": error_function,
    "sqrt": np.sqrt,        "rsqrt": _reciprocal_root,  "cbrt": _cube_root,
    "sine": np.sin,         "cosine": np.cos,           "tan": np.tan,
    "tanh": np.tanh,        "sinh": np.sinh,            "cosh": np.cosh,
    "asin": np.arcsin,      "acos": np.arccos,
    "asinh": np.arcsinh,    "acosh": np.arccosh,        "atanh": np.arctanh,
}
# fmt: on


@elementwise(*_FUNCTIONS)
def function(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compute a transcendental function in float64 or complex128, and round once."""
    values = exact(operands[0])
    return rounded(np.asarray(_FUNCTIONS[instruction.opcode](values)), dtype(instruction))


def _negated(x: Array) -> Array:
    return np.negative(x)


def _signs(x: Array) -> Array:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    if x.dtype.kind == "f":
        return np.where((x == 0) | np.isnan(x), x, np.copysign(1, x))
    return np.sign(x)


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.asarray(np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0), x))


_EXACT: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "negate": _negated,
    "sign": _signs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round-nearest-afz": _half_away,
    "round-nearest-even": np.rint,
    "real": np.real,
    "imag": np.imag,
    "copy": np.asarray,
}


@elementwise(*_EXACT)
def exact_function(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compute a function whose results need no rounding."""
    if instruction.opcode == "copy":
        return operands[0]
    return rounded(np.asarray(_EXACT[instruction.opcode](wide(operands[0]))), dtype(instruction))


@elementwise("is-finite")
def is_finite(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Return whether elements are neither infinite nor NaN."""
    return np.isfinite(wide(operands[0]))


@elementwise("not")
def invert(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Turn over every bit."""
    return rounded(~wide(operands[0]), dtype(instruction))


def _unsigned(x: Array) -> Array:
    """Return the bits of integers as unsigned numbers."""
    whole = wide(x)
    bits = whole.view(np.dtype(f"u{whole.dtype.itemsize}")) if whole.dtype.kind == "i" else whole
    if is_small_integer(x.dtype):
        bits = bits & ((1 << int(x.dtype.name.removeprefix("u").removeprefix("int"))) - 1)
    return bits


@elementwise("popcnt")
def count_ones(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Count the bits that are set."""
    return rounded(np.bitwise_count(_unsigned(operands[0])), dtype(instruction))


@elementwise("count-leading-zeros")
def leading_zeros(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Count the zeros above the highest bit that is set."""
    bits = _unsigned(operands[0])
    width = instruction.operands[0].shape.element_type.bits
    left = np.full(bits.shape, width, np.int64)
    for position in range(width):
        left = np.where(bits >> np.array(position, bits.dtype) & np.array(1, bits.dtype), width - 1 - position, left)
    return rounded(left, dtype(instruction))


@elementwise("convert")
def convert(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Change the type: numbers too large for an integer become its largest, NaN becomes 0 (compiler.md 3.1)."""
    values, kind = operands[0], dtype(instruction)
    if values.dtype == kind:
        return values
    if kind == np.bool_:
        return wide(values) != 0
    if values.dtype.kind == "c" and kind.kind != "c":
        values = values.real
    if is_float(values.dtype) and not is_float(kind) and kind.kind != "c":
        return _whole(wide(values).astype(np.float64), kind.name)
    if is_float(kind) or kind.kind == "c":
        return _to_float(values, kind)
    return rounded(wide(values), kind)


def _to_float(values: Array, kind: np.dtype[np.generic]) -> Array:
    source = wide(values)
    if source.dtype.kind in "iub" and is_float(kind) and kind.name not in ("float16", "float32", "float64"):
        return rounded(source.astype(np.float64), kind)
    return source.astype(kind) if kind.kind == "c" else rounded(source, kind)


def _whole(values: Array, name: str) -> Array:
    facts = type_of(name)
    low = -(1 << (facts.bits - 1)) if facts.is_signed else 0
    high = (1 << (facts.bits - (1 if facts.is_signed else 0))) - 1
    whole = np.trunc(np.where(np.isnan(values), 0, values))
    inside = (whole >= low) & (whole <= high) & (whole < float(1 << 63) if facts.is_signed else whole < float(1 << 64))
    carrier = np.int64 if facts.is_signed else np.uint64
    found = np.where(inside, whole, 0).astype(carrier)
    found = np.where(inside, found, np.where(values < 0, np.array(low, carrier), np.array(high, carrier)))
    return rounded(found, dtype_of(facts))
