"""Products: the contraction on partitions, up to 128 x 128 stationary and 128 x 512 moving, sums in PSUM."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import ml_dtypes
import numpy as np

from formats.dtypes import Dtype
from formats.isa import AluOp
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_FP32
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array
from neurontools.compiler.element_types import element_type, is_float
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.epilogues import Finished, Finisher
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.kernels import Splat
from neurontools.compiler.lowering import Lowering, finishes, lowers

__all__ = ["Side", "loads_first", "loads_left_once", "multiply", "span", "strips_of"]

_ROWS, _COLUMNS, _MOVING = PARTITIONS, PARTITIONS, PSUM_FP32
_NS_PRODUCT = 1 / (PARTITIONS * PARTITIONS * 1.4)  # of bf16, by the clock and the array
_BLOCK = 2048  # elements of a strip, a multiple of 128: rows of a transfer are long then
_STRIP_BYTES = 48 << 10  # of a partition, for the strips of one operand


class Sink(NamedTuple):
    """Where a product goes: arrays of (batch, rows, columns) by value, and what finishes each tile, if anything does.

    `place` is where these arrays begin in the whole product.
    """

    arrays: dict[Value, Array]
    dtype: Dtype
    shape: tuple[int, ...]
    finisher: Finisher | None = None
    place: tuple[int, ...] = (0, 0, 0)

    def sliced(self, starts: Sequence[int], shape: Sequence[int]) -> Sink:
        """Return a part."""
        arrays = {value: one.sliced(starts, shape) for value, one in self.arrays.items()}
        place = tuple(one + other for one, other in zip(self.place, starts, strict=True))
        return self._replace(arrays=arrays, shape=tuple(shape), place=place)

    def put(self, e: Emitter, made: View, row: int, column: int) -> None:
        """Finish a tile and store it."""
        found = dict.fromkeys(self.arrays, made)
        if self.finisher is not None:
            batch, first, left = self.place
            found = self.finisher.finish(made, (batch, first + row, left + column))
        (width,) = (count for _, count in made.dims)
        for value, one in self.arrays.items():
            e.copy(one.sliced((0, row, column), (1, made.partitions, width)), found[value])


@lowers("dot")
def _dot(self: Lowering, node: Node) -> None:
    out = self.result(node)
    if out.size:
        _product(self, node, {node.result: out}, None)


@finishes("dot")
def _finished_dot(self: Lowering, step: Finished) -> None:
    """Lower a product whose tiles go through a kernel before they are stored."""
    inputs: dict[Value, Array | Splat] = {}
    for value in step.group.inputs:
        if value is not step.result:
            splat = self.splats.get(value)
            kind = element_type(value.dtype).storage
            inputs[value] = self.array(value) if splat is None else Splat(kind, splat)
    outputs = {value: self.result(value.node) for value in step.group.outputs}
    finisher = Finisher(self.emitter, step, inputs, outputs)
    _product(self, step.product, outputs, finisher)
    self.parts.update(finisher.parts)


def _product(self: Lowering, node: Node, outputs: dict[Value, Array], finisher: Finisher | None) -> None:
    attrs = node.attrs
    left, right = (self.array(one) for one in node.operands)
    lhs = _matrices(self, left, attrs["lhs_batch"], attrs["lhs_contracting"], contracting_last=True)
    rhs = _matrices(self, right, attrs["rhs_batch"], attrs["rhs_contracting"], contracting_last=False)
    batch, rows, inner = lhs.shape
    columns = rhs.shape[2]
    if not inner:
        (out,) = outputs.values()
        zero = self.emitter.constant(np.zeros((), out.dtype.numpy_name), out.dtype)
        self.copy(out, zero._replace(shape=out.shape, strides=(0,) * len(out.shape)))
        return
    shape = batch, rows, columns
    arrays = {value: self.reshaped(one, shape) for value, one in outputs.items()}
    result = Sink(arrays, element_type(node.result.dtype).storage, shape, finisher)
    if finisher is not None:
        finisher.shape = shape
        finisher.inputs = {
            value: self.reshaped(one, shape) if isinstance(one, Array) else one
            for value, one in finisher.inputs.items()
        }
    dtype = _operand_type(node)
    work = batch * rows * inner * columns * _NS_PRODUCT * (4 if dtype is Dtype.FLOAT32 else 1)
    if batch > 1:
        for begin, end in self.portions(batch, work):
            many = end - begin
            left, right = (one.sliced((begin, 0, 0), (many, *one.shape[1:])) for one in (lhs, rhs))
            multiply(self, left, right, result.sliced((begin, 0, 0), (many, rows, columns)), dtype)
        return
    # Whole tiles, so that the words are those of one core, and sums the same to the bit.
    by_rows = rows > _COLUMNS and (rows >= columns or columns <= _MOVING)
    for begin, end in self.portions(rows, work, _COLUMNS) if by_rows else self.portions(columns, work, _MOVING):
        many = end - begin
        if by_rows:
            left, right = lhs.sliced((0, begin, 0), (1, many, inner)), rhs
            part = result.sliced((0, begin, 0), (1, many, columns))
        else:
            left, right = lhs, rhs.sliced((0, 0, begin), (1, inner, many))
            part = result.sliced((0, 0, begin), (1, rows, many))
        multiply(self, left, right, part, dtype)


def _block_of(inner: int, dtype: Dtype) -> int:
    """Return how many rows or columns strips of a contraction may have; less than 128 where it is too long."""
    depth = -(-inner // _ROWS)
    return min(_BLOCK, _STRIP_BYTES // (max(depth, 1) * dtype.size) // _ROWS * _ROWS)


def loads_first(node: Node) -> bool:
    """Return whether a product has loaded both operands before it stores anything."""
    batch, rows, inner, columns = _extents(node)
    return batch == 1 and max(rows, columns) <= _block_of(inner, _operand_type(node))


def loads_left_once(node: Node) -> bool:
    """Return whether the left operand is loaded once, as the right one is unless both are loaded by the tile."""
    _, rows, inner, columns = _extents(node)
    dtype = _operand_type(node)
    block = _block_of(inner, dtype)
    return block >= _ROWS and (columns <= block or _kept(rows, inner, dtype))


def _extents(node: Node) -> tuple[int, int, int, int]:
    """Return the extents of a product: batch, rows, contracted, columns."""
    attrs = node.attrs
    left, right = (one.shape for one in node.operands)
    inner = prod(left[axis] for axis in attrs["lhs_contracting"])
    batch = prod(left[axis] for axis in attrs["lhs_batch"])
    rows, columns = (prod(one) // max(inner * batch, 1) for one in (left, right))
    return batch, rows, inner, columns


def _kept(rows: int, inner: int, dtype: Dtype) -> bool:
    """Return whether there is room for all strips of the left operand at once."""
    return -(-inner // _ROWS) * rows * dtype.size <= _STRIP_BYTES


def _operand_type(node: Node) -> Dtype:
    """Return the type in which the operands are multiplied: their own where the array has it, else one holding both.

    A product that rounds its operands says to which type.
    """
    kinds = [node.attrs.get("rounded", one.dtype) for one in node.operands]
    if all(is_float(one) for one in kinds):
        return element_type(kinds[0]).storage if kinds[0] == kinds[1] and kinds[0] != "f8e3m4" else Dtype.FLOAT32
    # 8-bit integers are exact in bfloat16.
    return Dtype.BFLOAT16 if all(element_type(one).bits <= 8 for one in kinds) else Dtype.FLOAT32


def _matrices(
    self: Lowering, array: Array, batch: Sequence[int], contracting: Sequence[int], *, contracting_last: bool
) -> Array:
    """Return an operand as (batch, rows, contracted) or (batch, contracted, columns)."""
    free = [axis for axis in range(len(array.shape)) if axis not in batch and axis not in contracting]
    groups = [list(batch), free, list(contracting)] if contracting_last else [list(batch), list(contracting), free]
    turned = array.permuted([axis for group in groups for axis in group])
    shape = tuple(prod(array.shape[axis] for axis in group) for group in groups)
    return self.reshaped(turned, shape)


class Side(NamedTuple):
    """One operand, (batch, contracted, other), and the type it is multiplied in."""

    array: Array
    dtype: Dtype


def multiply(self: Lowering, lhs: Array, rhs: Array, out: Sink, dtype: Dtype) -> None:
    """Append out[b] = lhs[b] @ rhs[b] for three-dimensional arrays.

    Strips of both operands lie in SBUF with the contraction on partitions. Those of the right one are loaded once a
    block of columns, those of the left one once where there is room for all of them.
    """
    batch, rows, inner = lhs.shape
    left, right = Side(lhs.permuted((0, 2, 1)), dtype), Side(rhs, dtype)
    block = _block_of(inner, dtype)
    if block < _ROWS:
        for b in range(batch):
            _multiply_deep(self, left, right, out, b)
        return
    keep = _kept(rows, inner, dtype)
    for b in range(batch):
        kept: dict[int, list[View]] = {}
        for column in range(0, rhs.shape[2], block):
            width = min(block, rhs.shape[2] - column)
            moving = strips_of(self.emitter, right, b, column, width)
            for row in range(0, rows, block):
                height = min(block, rows - row)
                weights = kept.get(row) or strips_of(self.emitter, left, b, row, height)
                if keep:
                    kept[row] = weights
                _multiply_block(self.emitter, weights, moving, out.sliced((b, row, column), (1, height, width)))


def _multiply_block(e: Emitter, weights: list[View], moving: list[View], out: Sink) -> None:
    """Append the products of strips that are in SBUF, and store them."""
    _, rows, columns = out.shape
    for row in range(0, rows, _COLUMNS):
        height = min(_COLUMNS, rows - row)
        made = e.tile(out.dtype, height, (columns,)) if out.finisher is None else None
        for column in range(0, columns, _MOVING):
            width = min(_MOVING, columns - column)
            total = e.tile(Dtype.FLOAT32, height, (width,), psum=True)
            for number, (one, other) in enumerate(zip(weights, moving, strict=True)):
                e.matmul(total, span(one, row, height), span(other, column, width), number > 0)
            part = span(made, column, width) if made is not None else e.tile(out.dtype, height, (width,))
            e.evict(part, total)  # integers here are small enough not to saturate (expand_dots)
            if made is None:
                out.put(e, part, row, column)
        if made is not None:
            out.put(e, made, row, 0)


def span(view: View, start: int, count: int) -> View:
    """Return part of a tile's one free dimension."""
    return view._replace(offset=view.offset + start * view.dtype.size, dims=((1, count),))


def strips_of(e: Emitter, side: Side, b: int, first: int, width: int) -> list[View]:
    """Return part of an operand with the contraction on partitions, a strip for each 128 of it."""
    inner = side.array.shape[1]
    part = side.array.sliced((b, 0, first), (1, inner, width))
    part = part._replace(shape=part.shape[1:], strides=part.strides[1:])
    steps = [(step, min(_ROWS, inner - step)) for step in range(0, inner, _ROWS)]
    if not _is_turned(part):
        out = []
        for step, depth in steps:
            loaded = e.tile(part.dtype, depth, (width,))
            e.copy(loaded, part.sliced((step, 0), (depth, width)))
            out.append(_as_type(e, loaded, side.dtype))
        return out
    # Rows lie side by side in memory: long pieces of them are loaded as they lie, and turned by the array.
    strips = [e.tile(side.dtype, depth, (width,)) for _, depth in steps]
    for begin in range(0, width, _ROWS):
        count = min(_ROWS, width - begin)
        for start in range(0, inner, _BLOCK):
            length = min(_BLOCK, inner - start)
            loaded = e.tile(part.dtype, count, (length,))
            e.copy(loaded, part.sliced((start, begin), (length, count)).permuted((1, 0)))
            lines = _as_type(e, loaded, side.dtype)
            for step, depth in steps[start // _ROWS : -(-(start + length) // _ROWS)]:
                turn(e, span(lines, step - start, depth), span(strips[step // _ROWS], begin, count))
    return strips


def _is_turned(part: Array) -> bool:
    """Return whether the contracted elements lie side by side in memory, and not the others."""
    return part.strides[0] in (1, -1) and part.strides[1] not in (1, -1) and min(part.shape) > 1


def _multiply_deep(self: Lowering, left: Side, right: Side, out: Sink, b: int) -> None:
    """Append a product whose contraction is too long for strips: each tile is loaded when it is used."""
    e = self.emitter
    _, rows, columns = out.shape
    inner = left.array.shape[1]
    for row in range(0, rows, _COLUMNS):
        height = min(_COLUMNS, rows - row)
        for column in range(0, columns, _MOVING):
            width = min(_MOVING, columns - column)
            total = e.tile(Dtype.FLOAT32, height, (width,), psum=True)
            for step in range(0, inner, _BLOCK):
                depth = min(_BLOCK, inner - step)
                part = [
                    strips_of(e, _deep_part(side, step, depth, last), b, first, count)
                    for side, last, first, count in (
                        (left, rows, row, height), (right, columns, column, width)
                    )
                ]  # fmt: skip
                for number, (one, other) in enumerate(zip(*part, strict=True)):
                    e.matmul(total, one, other, step + number > 0)
            made = e.tile(out.dtype, height, (width,))
            e.evict(made, total)
            out.sliced((b, 0, 0), (1, rows, columns)).put(e, made, row, column)


def _deep_part(side: Side, step: int, depth: int, last: int) -> Side:
    return side._replace(array=side.array.sliced((0, step, 0), (side.array.shape[0], depth, last)))


def turn(e: Emitter, tile: View, out: View) -> None:
    """Write the transpose of a tile of at most 128 x 128, by way of PSUM."""
    rows, columns = tile.partitions, tile.dims[0][1]
    exact = e.limits.transpose_exact
    if e.saturate and not exact:
        tile = saturated(e, tile)
    middle = e.tile(tile.dtype if exact else Dtype.FLOAT32, columns, (rows,), psum=True)
    ones = e.identity(tile.dtype)
    e.matmul(middle, tile, ones._replace(partitions=rows, dims=((1, rows),)), False, middle.dtype is tile.dtype)
    e.evict(out, middle)


def saturated(e: Emitter, tile: View) -> View:
    """Return a tile with the largest numbers in the place of infinities, which times zero are no numbers."""
    most = float(ml_dtypes.finfo(tile.dtype.numpy_name).max)  # type: ignore[no-untyped-call]  # it has no types
    made = e.like(tile, tile.dtype)
    e.tensor_scalar(made, tile, AluOp.MIN, most, AluOp.MAX, -most)
    return made


def _as_type(e: Emitter, tile: View, dtype: Dtype) -> View:
    if tile.dtype is dtype:
        return tile
    made = e.like(tile, dtype)
    e.cast(made, tile)
    return made
