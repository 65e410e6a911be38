"""What every ALU operator computes: in fp32, on 32-bit integers, on raw bits, and folded over a dimension.

Every function has the shape of a ufunc call, `op(a, b, out)`; `out` may be `a` or `b` itself; unary operators
ignore `b`. Source: names and engines hardware.md 7.5, semantics nki.md 0, 2 and the NumPy functions that the
public documentation names; what a comparison gives (1 or 0) and what operators do with NaN is NumPy's rule, inferred.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from emulator.dtypes import Array
from formats.errors import UnsupportedError
from formats.isa import AluOp

__all__ = ["BITWISE", "REDUCIBLE", "UNARY", "Binary", "alu_op", "bitwise", "float32", "int64"]

Binary = Callable[[Array, ArrayLike, Array], object]

BITWISE = frozenset(
    (AluOp.BITWISE_AND, AluOp.BITWISE_OR, AluOp.BITWISE_XOR, AluOp.INVERT, AluOp.LEFT_SHIFT, AluOp.RIGHT_SHIFT)
)
UNARY = frozenset(
    (
        AluOp.BYPASS,
        AluOp.LOGICAL_NOT,
        AluOp.INVERT,
        AluOp.RSQRT,
        AluOp.RECIPROCAL,
        AluOp.ABS,
        AluOp.SQUARE,
        AluOp.RELU,
        AluOp.SIGN,
        AluOp.NEGATIVE,
    )
)
# What the table of hardware.md 7.5 marks as usable in reductions, and abs_max and abs_min of the newer API.
REDUCIBLE = frozenset(
    (
        AluOp.ADD,
        AluOp.SUBTRACT,
        AluOp.MULTIPLY,
        AluOp.MAX,
        AluOp.MIN,
        AluOp.ABS_MAX,
        AluOp.ABS_MIN,
        AluOp.LOGICAL_AND,
        AluOp.LOGICAL_OR,
        AluOp.LOGICAL_XOR,
        AluOp.BITWISE_AND,
        AluOp.BITWISE_OR,
        AluOp.BITWISE_XOR,
    )
)


def alu_op(code: int) -> AluOp:
    """Return the operator of a code; a code without a public or own name is an UnsupportedError."""
    try:
        return AluOp(code)
    except ValueError:
        raise UnsupportedError(f"ALU operator {code:#x} is not known: only 0, 4, 6 and 8 have been seen") from None


def _bypass(a: Array, b: ArrayLike, out: Array) -> None:
    if out is not a:
        np.copyto(out, a)


def _maximum(a: Array, b: ArrayLike, out: Array) -> None:
    np.maximum(a, b, out=out)  # NumPy wants the keyword here


def _minimum(a: Array, b: ArrayLike, out: Array) -> None:
    np.minimum(a, b, out=out)


def _abs_max(a: Array, b: ArrayLike, out: Array) -> None:
    """Keep the operand of the larger magnitude with its sign; a tie gives `b`, and NaN stays as in `max`."""
    np.copyto(out, np.where((np.abs(a) > np.abs(b)) | (a != a), a, b))  # `b` is what a comparison with NaN gives


def _abs_min(a: Array, b: ArrayLike, out: Array) -> None:
    np.copyto(out, np.where((np.abs(a) < np.abs(b)) | (a != a), a, b))


def _rsqrt(a: Array, b: ArrayLike, out: Array) -> None:
    np.sqrt(a, out)
    np.reciprocal(out, out)


def _reciprocal(a: Array, b: ArrayLike, out: Array) -> None:
    np.reciprocal(a, out)


def _abs(a: Array, b: ArrayLike, out: Array) -> None:
    np.abs(a, out)


def _square(a: Array, b: ArrayLike, out: Array) -> None:
    np.multiply(a, a, out)


def _mod(a: Array, b: ArrayLike, out: Array) -> None:
    """Give the remainder with the sign of the divisor, bit for bit as `np.mod`, in a fifth of its time."""
    divisor = np.asarray(b, np.float32)
    rest = np.fmod(a, divisor)
    if np.isnan(rest).any():
        np.mod(a, b, out)
        return
    # Where signs differ the divisor is added; nothing is added to others.  A zero takes the divisor's sign, which all
    # others have by then.
    differs = np.not_equal(np.less(rest, 0), np.less(divisor, 0))
    differs &= np.not_equal(rest, 0)
    added = np.bitwise_and(np.negative(differs.astype(np.int32)), divisor.view(np.int32))
    np.add(rest, added.view(np.float32), rest)
    np.copysign(rest, divisor, out)


def _truths(ufunc: np.ufunc) -> Binary:
    """Return a logical operator that computes with truths, which NumPy does faster than with numbers."""

    def call(a: Array, b: ArrayLike, out: Array) -> None:
        np.copyto(out, ufunc(np.not_equal(a, 0), np.not_equal(b, 0)))  # either may be one number

    return call


def _relu(a: Array, b: ArrayLike, out: Array) -> None:
    np.maximum(a, 0, out=out)


def _sign(a: Array, b: ArrayLike, out: Array) -> None:
    np.sign(a, out)


def _negative(a: Array, b: ArrayLike, out: Array) -> None:
    np.negative(a, out)


def _logical_not(a: Array, b: ArrayLike, out: Array) -> None:
    np.equal(a, 0, out)


_SHARED: dict[AluOp, Binary] = {
    AluOp.BYPASS: _bypass,
    AluOp.ADD: np.add,
    AluOp.SUBTRACT: np.subtract,
    AluOp.MULTIPLY: np.multiply,
    AluOp.MAX: _maximum,
    AluOp.MIN: _minimum,
    AluOp.EQUAL: np.equal,
    AluOp.NOT_EQUAL: np.not_equal,
    AluOp.GREATER: np.greater,
    AluOp.GREATER_EQUAL: np.greater_equal,
    AluOp.LESS: np.less,
    AluOp.LESS_EQUAL: np.less_equal,
    AluOp.LOGICAL_AND: _truths(np.logical_and),
    AluOp.LOGICAL_OR: _truths(np.logical_or),
    AluOp.LOGICAL_XOR: _truths(np.logical_xor),
    AluOp.LOGICAL_NOT: _logical_not,
    AluOp.ABS_MAX: _abs_max,
    AluOp.ABS_MIN: _abs_min,
    AluOp.ABS: _abs,
    AluOp.SQUARE: _square,
    AluOp.RELU: _relu,
    AluOp.SIGN: _sign,
    AluOp.NEGATIVE: _negative,
}

_FLOAT: dict[AluOp, Binary] = {
    **_SHARED,
    AluOp.DIVIDE: np.divide,
    AluOp.POWER: np.power,
    AluOp.MOD: _mod,  # sign of the divisor
    AluOp.FMOD: np.fmod,  # sign of the dividend
    AluOp.RSQRT: _rsqrt,
    AluOp.RECIPROCAL: _reciprocal,
}


def float32(op: AluOp) -> Binary:
    """Return the operator on fp32 arrays, as DVE and ACT compute; bit-pattern operators are refused."""
    try:
        return _FLOAT[op]
    except KeyError:
        raise UnsupportedError(f"ALU operator {op.name} works on integer bit patterns, not on fp32") from None


def _no_zero(b: ArrayLike, what: str) -> None:
    if not np.all(b):
        raise UnsupportedError(f"integer {what} by zero on Pool is not modelled: the result is not public")


def _integer_mod(a: Array, b: ArrayLike, out: Array) -> None:
    _no_zero(b, "mod")
    np.mod(a, b, out)


def _integer_fmod(a: Array, b: ArrayLike, out: Array) -> None:
    _no_zero(b, "fmod")
    np.fmod(a, b, out)


def _integer_power(a: Array, b: ArrayLike, out: Array) -> None:
    if np.any(np.less(b, 0)):
        raise UnsupportedError("integer power with a negative exponent on Pool is not modelled")
    np.power(a, b, out)


_INTEGER: dict[AluOp, Binary] = {
    **_SHARED,
    AluOp.MOD: _integer_mod,
    AluOp.FMOD: _integer_fmod,
    AluOp.POWER: _integer_power,
}


def int64(op: AluOp) -> Binary | None:
    """Return the operator on int64 arrays that hold 32-bit integers, as Pool computes; None where it goes through fp32.

    The low 32 bits of the result are exact: sums, differences, products and powers wrap.
    """
    return _INTEGER.get(op)


def _invert(a: Array, b: ArrayLike, out: Array) -> None:
    np.invert(a, out)


_BITS: dict[AluOp, Binary] = {
    AluOp.BYPASS: _bypass,
    AluOp.BITWISE_AND: np.bitwise_and,
    AluOp.BITWISE_OR: np.bitwise_or,
    AluOp.BITWISE_XOR: np.bitwise_xor,
    AluOp.INVERT: _invert,
    # NumPy gives 0 for counts of the width and over; unsigned operands make the right shift logical (hardware.md 7.5).
    AluOp.LEFT_SHIFT: np.left_shift,
    AluOp.RIGHT_SHIFT: np.right_shift,
}


def bitwise(op: AluOp) -> Binary:
    """Return the operator on unsigned arrays of one width."""
    try:
        return _BITS[op]
    except KeyError:
        raise UnsupportedError(
            f"ALU operator {op.name} computes numbers and cannot be combined with bit-pattern "
            "operators in one instruction"
        ) from None
