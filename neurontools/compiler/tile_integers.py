"""Element-wise HLO operations as instructions over tiles: integers, truth values, conversions.

GpSimd adds, multiplies and compares integers of 32 bits exactly and wraps; the Vector engine does bit operations.
Narrower integers are widened, computed and cut to their width again, since casts of the device saturate.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.builder.trace import View
from neurontools.compiler.element_types import element_type, is_float, is_signed
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.tile_math import TileFunction, constant_like

__all__ = ["INTEGER", "LOGICAL", "convert", "cut", "widened"]

_ALL = -1  # AND with all bits keeps the bits that fit, where a cast would saturate


def _word(dtype: str) -> Dtype:
    return Dtype.INT32 if is_signed(dtype) else Dtype.UINT32


def widened(e: Emitter, dtype: str, tile: View) -> View:
    """Return integers of any width as 32-bit ones of the same sign."""
    if tile.dtype.size == 4:
        return tile
    out = e.like(tile, _word(dtype))
    e.tensor_scalar(out, tile, AluOp.BITWISE_AND, _ALL)
    return out


def cut(e: Emitter, dtype: str, tile: View) -> View:
    """Return the low bits of 32-bit integers in a type's own width."""
    storage = element_type(dtype).storage
    if storage.size == tile.dtype.size:
        return tile._replace(dtype=storage)
    out = e.like(tile, storage)
    e.tensor_scalar(out, tile, AluOp.BITWISE_AND, _ALL)
    return out


def _exact(op: AluOp) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        a, b = (widened(e, dtype, one) for one in tiles)
        out = e.like(a, _word(dtype))
        e.tensor_tensor(out, a, b, op, "Pool")  # the Vector engine would compute in fp32: 24 bits of 32
        return cut(e, dtype, out)

    return apply


def _bits(op: AluOp) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        out = e.like(tiles[0], element_type(dtype).storage)
        e.tensor_tensor(out, tiles[0], tiles[1], op)
        return out

    return apply


def _negate(e: Emitter, dtype: str, tiles: list[View]) -> View:
    zero = constant_like(e, tiles[0], tiles[0].dtype, 0)
    return INTEGER["subtract"](e, dtype, [zero, tiles[0]])


def _abs(e: Emitter, dtype: str, tiles: list[View]) -> View:
    if not is_signed(dtype):
        return tiles[0]
    wide = widened(e, dtype, tiles[0])
    zero, less, out = constant_like(e, wide, Dtype.INT32, 0), e.like(wide, Dtype.INT32), e.like(wide, Dtype.INT32)
    # Not ABS, which is one of fp32; the least number is its own size, as in HLO.
    e.tensor_tensor(less, zero, wide, AluOp.SUBTRACT, "Pool")
    e.tensor_tensor(out, wide, less, AluOp.MAX, "Pool")
    return cut(e, dtype, out)


def _sign(e: Emitter, dtype: str, tiles: list[View]) -> View:
    out = e.like(tiles[0], element_type(dtype).storage)
    e.tensor_scalar(out, tiles[0], AluOp.SIGN)  # in fp32, which rounds a size and keeps the sign
    return out


def _not(e: Emitter, dtype: str, tiles: list[View]) -> View:
    out = e.like(tiles[0], element_type(dtype).storage)
    e.tensor_scalar(out, tiles[0], AluOp.BITWISE_XOR, _ALL)
    return out


def _clamp(e: Emitter, dtype: str, tiles: list[View]) -> View:
    low, x, high = tiles
    return INTEGER["minimum"](e, dtype, [INTEGER["maximum"](e, dtype, [x, low]), high])


def _is_zero(e: Emitter, tile: View) -> View:
    """Return 1 where a 32-bit integer is 0; only 0 becomes 0.0."""
    out = e.like(tile, tile.dtype)
    e.tensor_scalar(out, tile, AluOp.EQUAL, 0.0)
    return out


def _guarded(e: Emitter, b: View) -> tuple[View, View]:
    """Return the divisor with 1 in the place of 0, and where that is."""
    zero, safe = _is_zero(e, b), e.like(b, b.dtype)
    e.tensor_tensor(safe, b, zero, AluOp.BITWISE_OR)
    return safe, zero


def _remainder(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the remainder with the sign of the dividend; the dividend where the divisor is 0, as XLA defines."""
    a, b = (widened(e, dtype, one) for one in tiles)
    safe, zero = _guarded(e, b)
    out = e.like(a, _word(dtype))
    e.tensor_tensor(out, a, safe, AluOp.FMOD, "Pool")
    e.choose(out, zero, a)
    return cut(e, dtype, out)


def _divide(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the quotient cut towards 0; all ones where the divisor is 0, as XLA defines.

    The device divides in fp32 only. What is left of an exact division shows by how much the first quotient is off;
    that is small enough for the second to be exact.
    """
    a, b = (widened(e, dtype, one) for one in tiles)
    safe, zero = _guarded(e, b)
    word = _word(dtype)
    left, total, product = e.like(a, word), e.like(a, word), e.like(a, word)
    e.tensor_tensor(left, a, safe, AluOp.FMOD, "Pool")
    e.tensor_tensor(left, a, left, AluOp.SUBTRACT, "Pool")  # a multiple of the divisor
    e.tensor_tensor(total, left, safe, AluOp.DIVIDE)
    e.tensor_tensor(product, total, safe, AluOp.MULTIPLY, "Pool")
    e.tensor_tensor(left, left, product, AluOp.SUBTRACT, "Pool")
    rest = e.like(a, Dtype.INT32)  # signed for unsigned numbers too: the first quotient may be too large
    e.tensor_tensor(rest, left._replace(dtype=Dtype.INT32), safe, AluOp.DIVIDE)
    out = e.like(a, word)
    e.tensor_tensor(out, total, rest._replace(dtype=word), AluOp.ADD, "Pool")
    ones = constant_like(e, a, Dtype.INT32, -1)
    e.choose(out, zero, ones._replace(dtype=word))
    return cut(e, dtype, out)


def _power(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return an integer power; with a negative exponent it is 1 for 1, 1 or -1 for -1, else 0."""
    a, b = (widened(e, dtype, one) for one in tiles)
    word = _word(dtype)
    out = e.like(a, word)
    if not is_signed(dtype):
        e.tensor_tensor(out, a, b, AluOp.POWER, "Pool")
        return cut(e, dtype, out)
    zero, one = constant_like(e, a, word, 0), constant_like(e, a, word, 1)
    exponent, size, negative, unit = e.like(a, word), e.like(a, word), e.like(a, word), e.like(a, word)
    e.tensor_tensor(negative, b, zero, AluOp.LESS, "Pool")
    e.tensor_tensor(exponent, b, zero, AluOp.MAX, "Pool")
    odd = e.like(a, word)
    e.tensor_scalar(odd, b, AluOp.BITWISE_AND, 1)
    e.choose(exponent, negative, odd)  # -1 to a negative power depends on whether that is odd
    e.tensor_tensor(out, a, exponent, AluOp.POWER, "Pool")
    e.tensor_tensor(size, zero, a, AluOp.SUBTRACT, "Pool")
    e.tensor_tensor(size, size, a, AluOp.MAX, "Pool")
    e.tensor_tensor(unit, size, one, AluOp.NOT_EQUAL, "Pool")
    e.tensor_tensor(negative, negative, unit, AluOp.BITWISE_AND)
    e.choose(out, negative, zero)
    return cut(e, dtype, out)


def _shift(op: AluOp) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        unsigned = _unsigned(tiles[0].dtype)  # or a shift to the right would be one that keeps the sign
        out = e.like(tiles[0], unsigned)
        a, b = (one._replace(dtype=unsigned) for one in tiles)
        e.tensor_tensor(out, a, b, op)
        return out._replace(dtype=element_type(dtype).storage)

    return apply


def _shift_arithmetic(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return a shift that keeps the sign: bits of negative numbers are turned over before and after."""
    a, b = tiles
    wide = widened(e, "s32", a._replace(dtype=_signed(a.dtype)))
    count = widened(e, "u32", b._replace(dtype=_unsigned(b.dtype)))
    mask, out = e.like(wide, Dtype.INT32), e.like(wide, Dtype.UINT32)
    e.tensor_scalar(mask, wide, AluOp.LESS, 0.0, AluOp.MULTIPLY, -1.0)  # all bits set where it is negative
    raw = mask._replace(dtype=Dtype.UINT32)
    e.tensor_tensor(out, wide._replace(dtype=Dtype.UINT32), raw, AluOp.BITWISE_XOR)
    e.tensor_tensor(out, out, count, AluOp.RIGHT_SHIFT)
    e.tensor_tensor(out, out, raw, AluOp.BITWISE_XOR)
    return cut(e, dtype, out)


def _signed(dtype: Dtype) -> Dtype:
    return {1: Dtype.INT8, 2: Dtype.INT16, 4: Dtype.INT32}[dtype.size]


def _unsigned(dtype: Dtype) -> Dtype:
    return {1: Dtype.UINT8, 2: Dtype.UINT16, 4: Dtype.UINT32}[dtype.size]


def _popcount(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the number of ones, by adding neighbours in ever larger fields."""
    x = widened(e, "u32", tiles[0]._replace(dtype=_unsigned(tiles[0].dtype)))
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        low, high, total = (e.like(x, Dtype.UINT32) for _ in range(3))
        e.tensor_scalar(low, x, AluOp.BITWISE_AND, mask)
        e.tensor_scalar(high, x, AluOp.RIGHT_SHIFT, shift, AluOp.BITWISE_AND, mask)
        e.tensor_tensor(total, low, high, AluOp.ADD, "Pool")
        x = total
    return cut(e, dtype, x)


def _leading_zeros(e: Emitter, dtype: str, tiles: list[View]) -> View:
    """Return the zeros in front of the first one: of the number with all bits behind that set, those left over."""
    x = widened(e, "u32", tiles[0]._replace(dtype=_unsigned(tiles[0].dtype)))
    for shift in (1, 2, 4, 8, 16):
        moved, both = e.like(x, Dtype.UINT32), e.like(x, Dtype.UINT32)
        e.tensor_scalar(moved, x, AluOp.RIGHT_SHIFT, shift)
        e.tensor_tensor(both, x, moved, AluOp.BITWISE_OR)
        x = both
    ones = _popcount(e, "u32", [x])
    bits, out = constant_like(e, x, Dtype.UINT32, element_type(dtype).bits), e.like(x, Dtype.UINT32)
    e.tensor_tensor(out, bits, ones, AluOp.SUBTRACT, "Pool")
    return cut(e, dtype, out)


INTEGER: dict[str, TileFunction] = {
    "abs": _abs,
    "add": _exact(AluOp.ADD),
    "and": _bits(AluOp.BITWISE_AND),
    "clamp": _clamp,
    "count-leading-zeros": _leading_zeros,
    "divide": _divide,
    "maximum": _exact(AluOp.MAX),
    "minimum": _exact(AluOp.MIN),
    "multiply": _exact(AluOp.MULTIPLY),
    "negate": _negate,
    "not": _not,
    "or": _bits(AluOp.BITWISE_OR),
    "popcnt": _popcount,
    "power": _power,
    "remainder": _remainder,
    "shift-left": _shift(AluOp.LEFT_SHIFT),
    "shift-right-arithmetic": _shift_arithmetic,
    "shift-right-logical": _shift(AluOp.RIGHT_SHIFT),
    "sign": _sign,
    "subtract": _exact(AluOp.SUBTRACT),
    "xor": _bits(AluOp.BITWISE_XOR),
}


def _logical(op: AluOp) -> TileFunction:
    def apply(e: Emitter, dtype: str, tiles: list[View]) -> View:
        out = e.like(tiles[0], Dtype.UINT8)
        e.tensor_tensor(out, tiles[0], tiles[1], op)
        return out

    return apply


def _logical_not(e: Emitter, dtype: str, tiles: list[View]) -> View:
    out = e.like(tiles[0], Dtype.UINT8)
    e.tensor_scalar(out, tiles[0], AluOp.EQUAL, 0.0)
    return out


def _truth_clamp(e: Emitter, dtype: str, tiles: list[View]) -> View:
    low, x, high = tiles
    return LOGICAL["minimum"](e, dtype, [LOGICAL["maximum"](e, dtype, [x, low]), high])


LOGICAL: dict[str, TileFunction] = {
    "add": _logical(AluOp.LOGICAL_OR),
    "and": _logical(AluOp.LOGICAL_AND),
    "clamp": _truth_clamp,
    "maximum": _logical(AluOp.LOGICAL_OR),
    "minimum": _logical(AluOp.LOGICAL_AND),
    "multiply": _logical(AluOp.LOGICAL_AND),
    "not": _logical_not,
    "or": _logical(AluOp.LOGICAL_OR),
    "xor": _logical(AluOp.LOGICAL_XOR),
}


def convert(e: Emitter, source: str, dtype: str, tile: View) -> View:
    """Return a tile in another type: floats round to nearest even, integers wrap, fractions are cut off."""
    storage = element_type(dtype).storage
    if dtype == "pred":  # a fraction is true, which a cast to an integer would make 0
        out = e.like(tile, Dtype.UINT8)
        e.tensor_scalar(out, tile, AluOp.NOT_EQUAL, 0.0)
        return out
    if source == "pred" or is_float(dtype):
        if storage is tile.dtype and source != "pred":
            return tile
        out = e.like(tile, storage)
        e.cast(out, tile)
        return out
    if is_float(source):
        whole, out = e.like(tile, Dtype.FLOAT32), e.like(tile, storage)
        e.activation(whole, tile, "trunc")  # a cast of the device rounds to nearest even, HLO's cuts off
        e.cast(out, whole)
        return out
    return cut(e, dtype, widened(e, source, tile))
