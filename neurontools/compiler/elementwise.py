"""Element-wise operations of a graph over tiles: which function an opcode is for which type, and whole bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.builder.trace import View
from neurontools.compiler.element_types import element_type, is_float
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.errors import no_lowering
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.tile_integers import INTEGER, LOGICAL, convert, cut
from neurontools.compiler.tile_math import FLOAT_BINARY, FLOAT_UNARY, compare, constant_like, select

__all__ = ["ELEMENTWISE", "apply", "as_stored", "evaluate", "stored_constant"]

ELEMENTWISE = frozenset(
    {*FLOAT_UNARY, *FLOAT_BINARY, *INTEGER, *LOGICAL, "compare", "select", "convert", "reduce-precision", "copy"}
)


def apply(e: Emitter, node: Node, tiles: list[View]) -> View:
    """Append an element-wise node over tiles and return the tile of its result."""
    opcode, dtype = node.opcode, node.result.dtype
    source = node.operands[0].dtype
    if opcode == "copy":
        return tiles[0]
    if opcode == "compare":
        return compare(e, source, tiles, node.attrs["direction"], node.attrs["type"] == "TOTALORDER")
    if opcode == "select":
        return select(e, dtype, [tiles[0], *(as_stored(e, dtype, one) for one in tiles[1:])])
    if opcode == "convert":
        return convert(e, source, dtype, tiles[0])
    if opcode == "bitcast-convert":
        return tiles[0]._replace(dtype=element_type(dtype).storage)
    if opcode == "reduce-precision":
        return _reduce_precision(e, dtype, tiles[0], node.attrs["exponent_bits"], node.attrs["mantissa_bits"])
    if is_float(source):
        function = FLOAT_UNARY.get(opcode) or FLOAT_BINARY.get(opcode)
    else:
        function = (LOGICAL if dtype == "pred" else INTEGER).get(opcode)
    if function is None:
        raise no_lowering(node, f"{opcode} of {source}")
    return function(e, dtype, tiles)


def as_stored(e: Emitter, dtype: str, tile: View) -> View:
    """Return a tile in the type that device memory has; truth values may be wider between instructions."""
    storage = element_type(dtype).storage
    if tile.dtype is storage:
        return tile
    if tile.dtype.size == storage.size and dtype != "pred":
        return tile._replace(dtype=storage)
    return convert(e, "pred", dtype, tile) if dtype == "pred" else cut(e, dtype, tile)


def _reduce_precision(e: Emitter, dtype: str, tile: View, exponent: int, mantissa: int) -> View:
    """Return floats rounded to fewer bits: a carry into the bits that stay, then the limits of the exponent."""
    f32, raw = Dtype.FLOAT32, Dtype.UINT32
    x = tile
    if tile.dtype is not f32:
        x = e.like(tile, f32)
        e.cast(x, tile)
    bits = x._replace(dtype=raw)
    out = e.like(x, f32)
    rounded = out._replace(dtype=raw)
    dropped = 23 - mantissa
    if dropped > 0:
        # Half less one, and one more where the last kept bit is odd: ties to even, and a carry grows the exponent.
        odd, carried = e.like(x, raw), e.like(x, raw)
        e.tensor_scalar(odd, bits, AluOp.RIGHT_SHIFT, dropped, AluOp.BITWISE_AND, 1)
        half = constant_like(e, x, raw, (1 << dropped - 1) - 1)
        e.tensor_tensor(carried, bits, half, AluOp.ADD, "Pool")
        e.tensor_tensor(carried, carried, odd, AluOp.ADD, "Pool")
        e.tensor_scalar(rounded, carried, AluOp.BITWISE_AND, -(1 << dropped))
    else:
        e.cast(out, x)
    if exponent < 8:
        reach = (1 << exponent - 1) - 1
        most = (2.0 - 2.0**-mantissa) * 2.0**reach
        size, test = e.like(x, f32), e.like(x, Dtype.UINT8)
        sign, limit = e.like(x, raw), e.like(x, raw)
        e.tensor_scalar(size, out, AluOp.ABS)
        e.tensor_scalar(sign, rounded, AluOp.BITWISE_AND, -(1 << 31))
        e.tensor_scalar(limit, sign, AluOp.BITWISE_OR, 0x7F800000)
        e.tensor_scalar(test, size, AluOp.GREATER, most)
        e.choose(rounded, test, limit)
        e.tensor_scalar(test, size, AluOp.LESS, 2.0 ** (1 - reach))
        e.choose(rounded, test, sign)
    # What is no number stays as it is: rounding its bits could make it infinite.
    number = e.like(x, Dtype.UINT8)
    e.tensor_tensor(number, x, x, AluOp.NOT_EQUAL)
    e.choose(out, number, x)
    if element_type(dtype).storage is f32:
        return out
    narrow = e.like(x, element_type(dtype).storage)
    e.cast(narrow, out)
    return narrow


def stored_constant(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Return the elements of a constant node in the type that the device holds them in."""
    kind = element_type(value.dtype)
    data = np.asarray(value.node.attrs["data"]).reshape(value.shape)
    if kind.kind in ("signed", "unsigned") and data.dtype.itemsize == 8:
        return data.astype(np.uint32 if kind.kind == "unsigned" else np.int32)
    return data.astype(np.uint8) if kind.kind == "pred" else data


def evaluate(e: Emitter, body: Graph, tiles: Sequence[View]) -> list[View]:
    """Append a body of scalar operations for all elements of tiles at once; return the tiles of its results."""
    values: dict[Value, View] = dict(zip(body.parameters, tiles, strict=True))
    like = tiles[0]
    for node in body.nodes:
        if node.opcode != "parameter":
            values[node.result] = _evaluate(e, node, values, like)
    return [as_stored(e, one.dtype, values[one]) for one in body.roots]


def _evaluate(e: Emitter, node: Node, values: Mapping[Value, View], like: View) -> View:
    if node.opcode == "constant":
        number = stored_constant(node.result).reshape(-1)[0]
        return constant_like(e, like, element_type(node.result.dtype).storage, number.item())
    if node.opcode in ("broadcast", "reshape"):
        return values[node.operands[0]]
    if node.opcode not in ELEMENTWISE and node.opcode != "bitcast-convert":
        raise no_lowering(node, f"{node.opcode} in the body of a reduction or a map")
    return apply(e, node, [values[one] for one in node.operands])
