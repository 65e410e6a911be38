"""Element-wise HLO operations as instructions over tiles: floats.

A function takes the emitter, the result's type and the operands' tiles, and returns the tile of the result. Its values
are those of HLO; where the device computes something else (rounding casts, a sine of one period), it says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.builder.trace import View
from neurontools.compiler.element_types import element_type, is_float
from neurontools.compiler.emitter import Emitter

__all__ = ["FLOAT_BINARY", "FLOAT_UNARY", "TileFunction", "compare", "constant_like", "round_even", "select"]

TileFunction = Callable[[Emitter, str, list[View]], View]
_F32 = Dtype.FLOAT32
_TWO_PI = 2.0 * math.pi
_NO_FRACTION = 1.5 * 2.0**23  # for numbers of either sign up to 2**22
# 2 pi in three parts of few bits each, so that multiples of the first two are exact in fp32 (Cody and Waite).
_PERIOD = (6.28125, 0.0019350051879882812, 3.019916050627e-07)


def _new(e: Emitter, dtype: str, like: View) -> View:
    return e.like(like, element_type(dtype).storage)


def _wide(e: Emitter, like: View) -> View:
    return e.like(like, _F32)


def constant_like(e: Emitter, like: View, dtype: Dtype, value: float) -> View:
    """Return a number as a tile that every element of another tile can be combined with: one element a partition."""
    one = e.tile(dtype, like.partitions)
    e.fill(one, value)
    return one._replace(dims=tuple((0, count) for _, count in like.dims))


def _binary(op: AluOp) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        out = _new(e, dtype, tiles[0])
        e.tensor_tensor(out, tiles[0], tiles[1], op)
        return out

    return apply


def _function(name: str) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        out = _new(e, dtype, tiles[0])
        e.activation(out, tiles[0], name)
        return out

    return apply


def _scalar(op: AluOp, value: float = 0.0) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        out = _new(e, dtype, tiles[0])
        e.tensor_scalar(out, tiles[0], op, value)
        return out

    return apply


def _sine_of(e: Emitter, dtype: str, x: View, shift: float) -> View:
    """Return sin(x + shift pi/2) with x brought into one period first, since the function has one period.

    From about 10^6 on the result is that of a number within half an ulp of x. From 2^25 on an ulp is most of a period,
    and it is that of any number.
    """
    whole, left, part = _wide(e, x), _wide(e, x), _wide(e, x)
    e.tensor_scalar(whole, x, AluOp.MULTIPLY, 1.0 / _TWO_PI, AluOp.ADD, shift / 4)
    # Rounded by adding what leaves no bits for a fraction; by way of an integer, infinity would be a number.
    e.tensor_scalar(whole, whole, AluOp.ADD, _NO_FRACTION, AluOp.SUBTRACT, _NO_FRACTION)
    e.tensor_scalar(part, whole, AluOp.MULTIPLY, -_PERIOD[0])
    e.tensor_tensor(left, x, part, AluOp.ADD)
    for piece in _PERIOD[1:]:
        e.tensor_scalar(part, whole, AluOp.MULTIPLY, -piece)
        e.tensor_tensor(left, left, part, AluOp.ADD)
    if shift:
        e.tensor_scalar(left, left, AluOp.ADD, math.pi / 2)
    # What rounding leaves beyond half a period is no argument of the function.
    limit = float(np.nextafter(np.float32(math.pi), np.float32(0)))
    e.tensor_scalar(left, left, AluOp.MIN, limit, AluOp.MAX, -limit)
    out = _new(e, dtype, x)
    e.activation(out, left, "sin")
    return out


def _sine(e: Emitter, dtype: str, tiles: list[View]) -> View:
    return _sine_of(e, dtype, tiles[0], 0)


def _cosine(e: Emitter, dtype: str, tiles: list[View]) -> View:
    return _sine_of(e, dtype, tiles[0], 1)


def _expm1(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses nothing near 0."""
    x = tiles[0]
    half, grown, out = _wide(e, x), _wide(e, x), _new(e, dtype, x)
    e.activation(half, x, "tanh", 0.5)
    e.activation(grown, x, "exp")
    e.tensor_scalar(grown, grown, AluOp.ADD, 1.0)
    e.tensor_tensor(out, half, grown, AluOp.MULTIPLY)
    return out


def _log1p(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return log(1 + x) as log(u) * x / (u - 1) with u = 1 + x as rounded; x itself where u is 1, and infinity."""
    x = _as_f32(e, tiles[0])
    u, log, less = _wide(e, x), _wide(e, x), _wide(e, x)
    e.tensor_scalar(u, x, AluOp.ADD, 1.0)
    e.activation(log, u, "log")
    e.tensor_scalar(less, u, AluOp.SUBTRACT, 1.0)
    ratio, same, out = _wide(e, x), e.like(x, Dtype.UINT8), _wide(e, x)
    e.tensor_tensor(ratio, x, less, AluOp.DIVIDE)
    e.tensor_tensor(out, log, ratio, AluOp.MULTIPLY)
    e.tensor_scalar(same, less, AluOp.EQUAL, 0.0)
    e.choose(out, same, x)
    # infinity / infinity is no number
    e.tensor_scalar(same, x, AluOp.EQUAL, float("inf"))
    e.choose(out, same, x)
    return _to(e, dtype, out)


def _as_f32(e: Emitter, x: View) -> View:
    if x.dtype is _F32:
        return x
    wide = _wide(e, x)
    e.cast(wide, x)
    return wide


def _to(e: Emitter, dtype: str, x: View) -> View:
    if element_type(dtype).storage is x.dtype:
        return x
    out = _new(e, dtype, x)
    e.cast(out, x)
    return out


def _with_sign(e: Emitter, magnitude: View, signed: View) -> View:
    """Return a magnitude with the sign bit of another tile, both fp32."""
    raw, out = Dtype.UINT32, _wide(e, signed)
    bits = e.like(signed, raw)
    e.tensor_scalar(bits, signed._replace(dtype=raw), AluOp.BITWISE_AND, 0x80000000 - (1 << 32))
    e.tensor_tensor(out._replace(dtype=raw), magnitude._replace(dtype=raw), bits, AluOp.BITWISE_OR)
    return out


def _sign(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the sign; a zero and its sign stay, of which the engines' operator makes 0."""
    whole, out = _wide(e, tiles[0]), _new(e, dtype, tiles[0])
    # The smallest number there is times 2**149 is 1.
    e.tensor_scalar(whole, tiles[0], AluOp.MULTIPLY, 2.0**127, AluOp.MULTIPLY, 2.0**22)
    e.tensor_scalar(out, whole, AluOp.MIN, 1.0, AluOp.MAX, -1.0)
    return out


def round_even(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the nearest whole number, ties to even: adding 2**23 leaves no bits for a fraction."""
    x = _as_f32(e, tiles[0])
    size, rounded, large = _wide(e, x), _wide(e, x), e.like(x, Dtype.UINT8)
    e.tensor_scalar(size, x, AluOp.ABS)
    e.tensor_scalar(rounded, size, AluOp.ADD, 2.0**23, AluOp.SUBTRACT, 2.0**23)
    result = _with_sign(e, rounded, x)
    # Large is what is not less, so that a NaN is too, and stays.
    e.tensor_scalar(large, size, AluOp.LESS, 2.0**23, AluOp.LOGICAL_XOR, 1.0)
    e.choose(result, large, x)
    return _to(e, dtype, result)


def _round_away(e: Emitter, dtype: str, tiles: list[View]) -> View:
    x = _as_f32(e, tiles[0])
    size, whole, part = _wide(e, x), _wide(e, x), _wide(e, x)
    e.tensor_scalar(size, x, AluOp.ABS)
    e.activation(whole, size, "trunc")
    e.tensor_tensor(part, size, whole, AluOp.SUBTRACT)
    e.tensor_scalar(part, part, AluOp.GREATER_EQUAL, 0.5)
    e.tensor_tensor(whole, whole, part, AluOp.ADD)
    return _to(e, dtype, _with_sign(e, whole, x))


def _cbrt(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the cube root: exp(log|x| / 3), then one step of Newton's, with the sign of x; 0 and infinity stay."""
    x = _as_f32(e, tiles[0])
    size, guess, square = _wide(e, x), _wide(e, x), _wide(e, x)
    e.tensor_scalar(size, x, AluOp.ABS)
    e.activation(guess, size, "log")
    e.activation(guess, guess, "exp", 1.0 / 3.0)
    e.tensor_tensor(square, guess, guess, AluOp.MULTIPLY)
    better, plain = _wide(e, x), e.like(x, Dtype.UINT8)
    e.tensor_tensor(better, size, square, AluOp.DIVIDE)
    e.tensor_tensor(better, better, guess, AluOp.SUBTRACT)
    e.tensor_scalar(better, better, AluOp.MULTIPLY, 1.0 / 3.0)
    e.tensor_tensor(better, better, guess, AluOp.ADD)
    result = _with_sign(e, better, x)
    zero = _wide(e, x)
    e.tensor_scalar(zero, x, AluOp.MULTIPLY, 0.5)  # x / 2 is x for 0 and the infinities only
    e.tensor_tensor(plain, zero, x, AluOp.EQUAL)
    e.choose(result, plain, x)
    return _to(e, dtype, result)


def _atan2(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the angle of (x, y): arctan of the smaller over the larger magnitude, then the octant."""
    y, x = (_as_f32(e, one) for one in tiles)
    ay, ax, low, high = (_wide(e, x) for _ in range(4))
    e.tensor_scalar(ay, y, AluOp.ABS)
    e.tensor_scalar(ax, x, AluOp.ABS)
    e.tensor_tensor(low, ay, ax, AluOp.MIN)
    e.tensor_tensor(high, ay, ax, AluOp.MAX)
    ratio, test = _wide(e, x), e.like(x, Dtype.UINT8)
    e.tensor_tensor(ratio, low, high, AluOp.DIVIDE)
    e.tensor_tensor(test, low, high, AluOp.EQUAL)  # both infinite
    one = constant_like(e, x, _F32, 1.0)
    e.choose(ratio, test, one)
    e.tensor_scalar(test, high, AluOp.EQUAL, 0.0)  # both zero
    e.choose(ratio, test, constant_like(e, x, _F32, 0.0))
    angle, other = _wide(e, x), _wide(e, x)
    e.activation(angle, ratio, "arctan")
    e.tensor_scalar(other, angle, AluOp.SUBTRACT, math.pi / 2, reverse0=True)
    e.tensor_tensor(test, ay, ax, AluOp.GREATER)
    e.choose(angle, test, other)
    negative = e.like(x, Dtype.UINT32)  # the sign bit: -0 is on the other side of the circle than 0
    e.tensor_scalar(negative, x._replace(dtype=Dtype.UINT32), AluOp.RIGHT_SHIFT, 31)
    e.tensor_scalar(other, angle, AluOp.SUBTRACT, math.pi, reverse0=True)
    e.choose(angle, negative, other)
    return _to(e, dtype, _with_sign(e, angle, y))


def _power(e: Emitter, dtype: str, tiles: list[View]) -> View:
    out = _new(e, dtype, tiles[0])
    e.tensor_tensor(out, tiles[0], tiles[1], AluOp.POWER, "Pool")
    return out


def _is_finite(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return whether the exponent bits are not all ones; the size is below infinity, and a NaN is not."""
    size, out = _wide(e, tiles[0]), e.like(tiles[0], Dtype.UINT8)
    e.tensor_scalar(size, tiles[0], AluOp.ABS)
    e.tensor_scalar(out, size, AluOp.LESS, float("inf"))
    return out


_ALU = {
    "EQ": AluOp.EQUAL,
    "NE": AluOp.NOT_EQUAL,
    "LT": AluOp.LESS,
    "LE": AluOp.LESS_EQUAL,
    "GT": AluOp.GREATER,
    "GE": AluOp.GREATER_EQUAL,
}


def _in_order(e: Emitter, x: View) -> View:
    """Return integers in the total order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    # Of a negative float all bits but the sign are turned over: a larger size is a smaller number.
    bits = _as_f32(e, x)._replace(dtype=Dtype.INT32)
    mask, out = e.like(x, Dtype.INT32), e.like(x, Dtype.INT32)
    e.tensor_scalar(mask, bits, AluOp.LESS, 0.0, AluOp.MULTIPLY, -1.0)
    e.tensor_scalar(mask, mask, AluOp.BITWISE_AND, 0x7FFFFFFF)
    e.tensor_tensor(out, bits, mask, AluOp.BITWISE_XOR)
    return out


def compare(e: Emitter, dtype: str, tiles: list[View], direction: str, total: bool = False) -> View:
    """Return a comparison as 1 or 0; integers of 32 bits are compared exactly, by GpSimd."""
    left, right = tiles
    if total and is_float(dtype):
        left, right, dtype = _in_order(e, left), _in_order(e, right), "s32"
    if dtype in ("s32", "u32", "s64", "u64"):
        out = e.like(left, Dtype.INT32)
        e.tensor_tensor(out, left, right, _ALU[direction], "Pool")
        return out
    out = e.like(left, Dtype.UINT8)
    e.tensor_tensor(out, left, right, _ALU[direction])
    return out


def select(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the second operand where the first is true, else the third."""
    where, on_true, on_false = tiles
    out = _new(e, dtype, on_false)  # a copy: `choose` writes into what it keeps
    e.cast(out, on_false)
    e.choose(out, where, on_true)
    return out


def _clamp(e: Emitter, dtype: str, tiles: list[View]) -> View:
    low, x, high = tiles
    middle, out = _new(e, dtype, x), _new(e, dtype, x)
    e.tensor_tensor(middle, x, low, AluOp.MAX)
    e.tensor_tensor(out, middle, high, AluOp.MIN)
    return out


FLOAT_UNARY: dict[str, TileFunction] = {
    "abs": _scalar(AluOp.ABS),
    "cbrt": _cbrt,
    "ceil": _function("ceil"),
    "cosine": _cosine,
    "erf": _function("erf"),
    "exponential": _function("exp"),
    "exponential-minus-one": _expm1,
    "floor": _function("floor"),
    "is-finite": _is_finite,
    "log": _function("log"),
    "log-plus-one": _log1p,
    "logistic": _function("sigmoid"),
    "negate": _scalar(AluOp.MULTIPLY, -1.0),
    "round-nearest-afz": _round_away,
    "round-nearest-even": round_even,
    "rsqrt": _function("rsqrt"),
    "sign": _sign,
    "sine": _sine,
    "sqrt": _function("sqrt"),
    "tan": _function("tan"),
    "tanh": _function("tanh"),
}
FLOAT_BINARY: dict[str, TileFunction] = {
    "add": _binary(AluOp.ADD),
    "atan2": _atan2,
    "clamp": _clamp,
    "divide": _binary(AluOp.DIVIDE),
    "maximum": _binary(AluOp.MAX),
    "minimum": _binary(AluOp.MIN),
    "multiply": _binary(AluOp.MULTIPLY),
    "power": _power,
    "remainder": _binary(AluOp.FMOD),
    "subtract": _binary(AluOp.SUBTRACT),
}
