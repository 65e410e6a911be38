"""Functions of two and three elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from formats.hlo import Instruction
from neurontools.hlo_interpreter.numbers import exact, is_float, rounded, wide
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, elementwise

__all__ = ["total_order"]


def _divided(a: Array, b: Array) -> Array:
    """Divide; integers toward zero, by zero to -1 (all bits), the lowest by -1 to itself."""
    if a.dtype.kind in "fc":
        return np.divide(a, b)
    signed = a.dtype.kind == "i"
    # NumPy has no answer of its own for these that is the same on every processor; 1 stands in for the divisor.
    unsafe = (b == 0) | ((b == -1) if signed else False)
    safe = np.where(unsafe, 1, b).astype(b.dtype)
    quotient = a // safe
    if signed:
        # `//` rounds down: one more where that is away from zero.
        quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
        quotient = np.where(b == -1, np.negative(a), quotient)
    return np.where(b == 0, np.array(-1).astype(a.dtype), quotient).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    """Return what a division toward zero leaves: of a division by zero, the dividend."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    safe = np.where((b == 0) | ((b == -1) if a.dtype.kind == "i" else False), 1, b).astype(b.dtype)
    return np.where(b == 0, a, np.fmod(a, safe)).astype(a.dtype)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "fc":
        return np.power(a, b)
    # By squaring, wrapping; negative exponents leave 1 and -1, and 0 of everything else.
    result, base, left = np.ones_like(a), a, np.where(b < 0, 0, b).astype(np.uint64)
    while left.any():
        result = np.where(left & np.uint64(1), result * base, result)
        base, left = base * base, left >> np.uint64(1)
    odd = (b & np.array(1, b.dtype)) != 0
    negative = np.where(a == 1, 1, np.where(a == np.array(-1).astype(a.dtype), np.where(odd, -1, 1), 0))
    return np.where(b < 0, negative, result).astype(a.dtype) if b.dtype.kind == "i" else result


def _maximum(a: Array, b: Array) -> Array:
    return np.logical_or(a, b) if a.dtype == np.bool_ else np.maximum(a, b)


def _minimum(a: Array, b: Array) -> Array:
    return np.logical_and(a, b) if a.dtype == np.bool_ else np.minimum(a, b)


# fmt: off
_FUNCTIONS: dict[str, Callable[[Array, Array], Any]] = {
    "add": np.add,          "multiply": np.multiply,  "divide": _divided,    "remainder": _remainder,
    "maximum": _maximum,    "minimum": _minimum,
    "and": np.bitwise_and,  "or": np.bitwise_or,      "xor": np.bitwise_xor,
}
# fmt: on


@elementwise(*_FUNCTIONS, "subtract")
def arithmetic(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compute in the type itself, in float32 where NumPy does not have it: which rounds as the type would."""
    a, b = wide(operands[0]), wide(operands[1])
    if instruction.opcode == "subtract":
        values = a ^ b if a.dtype == np.bool_ else a - b
    else:
        values = _FUNCTIONS[instruction.opcode](a, b)
    return rounded(np.asarray(values), dtype(instruction))


@elementwise("power", "atan2")
def two_functions(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compute a function of two elements in float64, and round once."""
    a, b = exact(operands[0]), exact(operands[1])
    if instruction.opcode == "power":
        values = _power(a, b)
    elif a.dtype.kind == "c":
        values = -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b))
    else:
        values = np.arctan2(a, b)
    return rounded(np.asarray(values), dtype(instruction))


@elementwise("complex")
def complex_numbers(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Put real and imaginary parts together; infinite parts stay apart."""
    real, imaginary = np.broadcast_arrays(operands[0], operands[1])
    values = np.empty(real.shape, dtype(instruction))
    values.real, values.imag = real, imaginary
    return values


@elementwise("shift-left", "shift-right-logical", "shift-right-arithmetic")
def shift(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Shift bits; by the width or more, all are gone, or are the sign's."""
    width = instruction.shape.element_type.bits
    a, by = wide(operands[0]), wide(operands[1])
    signed = np.dtype(f"i{a.dtype.itemsize}")
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    count = by.astype(unsigned)
    gone = count >= width
    safe = np.where(gone, 0, count).astype(unsigned)
    bits = a.view(unsigned) if a.dtype.kind == "i" else a
    if width < 8:
        bits = bits & np.array((1 << width) - 1, unsigned)
    if instruction.opcode == "shift-left":
        values = np.where(gone, 0, bits << safe).astype(unsigned)
    elif instruction.opcode == "shift-right-logical":
        values = np.where(gone, 0, bits >> safe).astype(unsigned)
    else:
        top = np.array(8 * a.dtype.itemsize - width, unsigned)
        signs = (bits << top).astype(unsigned).view(signed) >> top.view(signed)
        values = signs >> np.where(gone, width - 1, safe).astype(signed)
    return rounded(values.astype(unsigned).view(signed) if a.dtype.kind == "i" else values.astype(unsigned),
                   dtype(instruction))  # fmt: skip


def total_order(values: Array) -> Array:
    """Return integers that are ordered as IEEE's total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(np.dtype(f"i{size}")).reshape(values.shape)
    return np.where(bits < 0, bits ^ np.array((1 << (8 * size - 1)) - 1, bits.dtype), bits)


_COMPARISONS = {
    "EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less,
}  # fmt: skip


@elementwise("compare")
def compare(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compare; floating point numbers by value unless the total order is asked for."""
    a, b = operands
    if instruction.comparison_type == "TOTALORDER" and is_float(a.dtype):
        a, b = total_order(a), total_order(b)
    else:
        a, b = wide(a), wide(b)
    return np.asarray(_COMPARISONS[instruction.comparison_direction](a, b))


@elementwise("select")
def select(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Take elements of the second operand where the first is true, else of the third."""
    if isinstance(operands[1], tuple):
        return operands[1] if bool(operands[0]) else operands[2]
    return np.where(operands[0], operands[1], operands[2])


@elementwise("clamp")
def clamp(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the middle operand, no less than the first and no more than the last."""
    low, values, high = (wide(each) for each in operands)
    return rounded(np.minimum(np.maximum(low, values), high), dtype(instruction))
