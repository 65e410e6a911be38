"""Reads and writes at places that only the run knows: dynamic slices, gathers, scatters.

The engine works out where each window begins, in elements, as 32-bit integers; DMA by index moves the windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from formats.dtypes import Dtype
from formats.isa import AluOp
from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array, row_major
from neurontools.compiler.elementwise import evaluate
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.graph import Graph, Node
from neurontools.compiler.kernels import tile_elements
from neurontools.compiler.loading import load, part_of, store
from neurontools.compiler.lowering import Lowering, lowers
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import tiles

__all__ = ["Step", "offsets_of"]

_S32, _U32 = Dtype.INT32, Dtype.UINT32
_WINDOW = 2048  # elements of a window that one tile holds in a partition


class Step:
    """One dimension in which windows begin at run-time numbers: those, how far one reaches, the last legal start."""

    __slots__ = ("last", "numbers", "reach")

    def __init__(self, numbers: Array, reach: int, last: int) -> None:
        self.numbers, self.reach, self.last = numbers, reach, last


def offsets_of(self: Lowering, steps: Sequence[Step], shape: Sequence[int], *, missing: int | None = None) -> Array:
    """Return where windows begin, in elements, as a tensor of `shape`.

    Numbers are brought into range; with `missing`, windows of which one is out of range begin there instead.
    """
    e = self.emitter
    out = e.tensor(_S32, tuple(shape) or (1,))
    flat = out._replace(shape=(prod(shape),), strides=(1,))
    lines = [self.dense(one.numbers)._replace(shape=flat.shape, strides=(1,)) for one in steps]
    for tile in tiles(flat.shape, tile_elements(len(steps) + 8)):
        like = e.tile(_S32, tile.partitions, tile.free or (1,))
        e.fill(like, 0)
        total, wrong = like, None
        for step, line in zip(steps, lines, strict=True):
            given = load(e, part_of(line, line.strides, tile), tile)
            number = _in_range(e, given, step.last)
            if missing is not None:
                off = _differ(e, given, number)
                wrong = off if wrong is None else _combined(e, wrong, off)
            reach, part, grown = constant_like(e, like, _S32, step.reach), e.like(like, _S32), e.like(like, _S32)
            e.tensor_tensor(part, number, reach, AluOp.MULTIPLY, "Pool")
            e.tensor_tensor(grown, total, part, AluOp.ADD, "Pool")
            total = grown
        if missing is not None and wrong is not None:
            e.choose(total, wrong, constant_like(e, like, _S32, missing))
        store(e, part_of(flat, flat.strides, tile), total)
    return out


def _in_range(e: Emitter, given: View, last: int) -> View:
    """Return numbers between 0 and `last` as 32-bit integers; unsigned ones above 2**31 are large."""
    number = given
    if number.dtype.size < 4:
        number = e.like(given, _S32)
        e.cast(number, given)
    if number.dtype is _U32:
        small = e.like(number, _U32)
        e.tensor_tensor(small, number, constant_like(e, number, _U32, last), AluOp.MIN, "Pool")
        return small._replace(dtype=_S32)
    low, high = e.like(number, _S32), e.like(number, _S32)
    e.tensor_tensor(low, number, constant_like(e, number, _S32, last), AluOp.MIN, "Pool")
    e.tensor_tensor(high, low, constant_like(e, number, _S32, 0), AluOp.MAX, "Pool")
    return high


def _differ(e: Emitter, given: View, number: View) -> View:
    out = e.like(number, _S32)
    if given.dtype.size < 4:
        wide = e.like(given, _S32)
        e.cast(wide, given)
        given = wide
    e.tensor_tensor(out, given._replace(dtype=_S32), number, AluOp.NOT_EQUAL, "Pool")
    return out


def _combined(e: Emitter, a: View, b: View) -> View:
    out = e.like(a, _S32)
    e.tensor_tensor(out, a, b, AluOp.BITWISE_OR)
    return out


def _index_tile(self: Lowering, offsets: Array, first: int, count: int) -> View:
    """Load offsets of windows, one a partition."""
    index = self.emitter.tile(_S32, count)
    line = offsets._replace(offset=offsets.offset + first, shape=(count,), strides=(1,))
    self.emitter.copy(index, line)
    return index


def _gather_windows(self: Lowering, source: Array, window: Sequence[int], offsets: Array, into: Array) -> None:
    """Copy windows of a dense tensor to rows of `into`, (windows, elements of one)."""
    count, size = into.shape
    e = self.emitter
    for first in range(0, count, PARTITIONS):
        rows = min(PARTITIONS, count - first)
        index = _index_tile(self, offsets, first, rows)
        src = source._replace(shape=(rows, *window), strides=(0, *source.strides))
        dst = into.sliced((first, 0), (rows, size))
        e.indirect(dst.view(), src.view(), index, source.dtype.size, rows, scatter=False)


def _scatter_windows(
    self: Lowering, target: Array, window: Sequence[int], offsets: Array, source: Array, first: int, rows: int
) -> None:
    """Copy rows of `source` to windows of a dense tensor; those out of range are left out."""
    index = _index_tile(self, offsets, first, rows)
    dst = target._replace(shape=(rows, *window), strides=(0, *target.strides))
    src = source.sliced((first, 0), (rows, source.shape[1]))
    self.emitter.indirect(dst.view(), src.view(), index, target.dtype.size, rows, scatter=True, skip=True)


@lowers("dynamic-slice")
def _dynamic_slice(self: Lowering, node: Node) -> None:
    out, source = self.result(node), self.dense(self.array(node.operands[0]))
    if not out.size:
        return
    steps = [
        Step(self.array(index), stride, extent - size)
        for index, stride, extent, size in zip(
            node.operands[1:], row_major(source.shape), source.shape, out.shape, strict=True
        )
    ]
    if not steps:
        self.copy(out, source)
        return
    offsets = offsets_of(self, steps, (1,))
    _gather_windows(self, source, out.shape, offsets, out._replace(shape=(1, out.size), strides=(out.size, 1)))


@lowers("dynamic-update-slice")
def _dynamic_update_slice(self: Lowering, node: Node) -> None:
    out = self.result(node)
    source, update = self.array(node.operands[0]), self.dense(self.array(node.operands[1]))
    self.copy(out, source)
    if not update.size:
        return
    steps = [
        Step(self.array(index), stride, extent - size)
        for index, stride, extent, size in zip(
            node.operands[2:], row_major(out.shape), out.shape, update.shape, strict=True
        )
    ]
    if not steps:
        self.copy(out, update)
        return
    offsets = offsets_of(self, steps, (1,))
    line = update._replace(shape=(1, update.size), strides=(update.size, 1))
    _scatter_windows(self, out, update.shape, offsets, line, 0, 1)


def _components(indices: Array, vector: int) -> tuple[list[Array], tuple[int, ...]]:
    """Return the numbers of each index dimension, and the shape of the batch of windows."""
    batch = tuple(extent for axis, extent in enumerate(indices.shape) if axis != vector)
    if vector == len(indices.shape):
        return [indices], batch
    parts = []
    for number in range(indices.shape[vector]):
        starts = [number if axis == vector else 0 for axis in range(len(indices.shape))]
        extents = [1 if axis == vector else extent for axis, extent in enumerate(indices.shape)]
        part = indices.sliced(starts, extents)
        strides = tuple(stride for axis, stride in enumerate(part.strides) if axis != vector)
        parts.append(part._replace(shape=batch, strides=strides))
    return parts, batch


def _batch_steps(
    self: Lowering, shape: Sequence[int], batch: Sequence[int], operand_axes: Sequence[int],
    index_axes: Sequence[int], vector: int,
) -> list[Step]:  # fmt: skip
    """Return steps for dimensions in which windows lie in the part of the batch they belong to."""
    steps = []
    for axis, place in zip(operand_axes, index_axes, strict=True):
        line = self.emitter.constant(np.arange(shape[axis], dtype=np.int32), _S32)
        where = place - (place > vector)
        steps.append(Step(line.broadcast(batch, (where,)), row_major(shape)[axis], shape[axis] - 1))
    return steps


@lowers("gather")
def _gather(self: Lowering, node: Node) -> None:
    value, numbers, sizes = node.result, node.attrs["numbers"], node.attrs["slice_sizes"]
    source = self.dense(self.array(node.operands[0]))
    indices = self.array(node.operands[1])
    parts, batch = _components(indices, numbers.index_vector_dim)
    strides = row_major(source.shape)
    steps = [
        Step(part, strides[axis], source.shape[axis] - sizes[axis])
        for axis, part in zip(numbers.start_index_map, parts, strict=False)
    ]
    steps += _batch_steps(self, source.shape, batch, numbers.operand_batching_dims,
                          numbers.start_indices_batching_dims, numbers.index_vector_dim)  # fmt: skip
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [size for axis, size in enumerate(sizes) if axis not in dropped]
    made = self.emitter.tensor(source.dtype, (*batch, *window))
    if made.size:
        offsets = offsets_of(self, steps, batch)
        _gather_windows(self, source, sizes, offsets, made._replace(
            shape=(prod(batch), prod(window)), strides=(prod(window), 1)
        ))  # fmt: skip
    order = []
    outer, inner = iter(range(len(batch))), iter(range(len(batch), len(batch) + len(window)))
    for axis in range(len(value.shape)):
        order.append(next(inner) if axis in numbers.offset_dims else next(outer))
    self.values[value] = made.permuted(order)


@lowers("scatter")
def _scatter(self: Lowering, node: Node) -> None:
    numbers, body = node.attrs["numbers"], node.attrs["body"]
    many = (len(node.operands) - 1) // 2
    outs = [self.result(node, i) for i in range(many)]
    for out, operand in zip(outs, node.operands[:many], strict=True):
        self.copy(out, self.array(operand))
    indices = self.array(node.operands[many])
    updates = [self.array(one) for one in node.operands[many + 1 :]]
    if not updates[0].size or not outs[0].size:
        return
    shape = outs[0].shape
    parts, batch = _components(indices, numbers.index_vector_dim)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    extents = iter(updates[0].shape[axis] for axis in numbers.update_window_dims)
    window = [1 if axis in dropped else next(extents) for axis in range(len(shape))]
    strides = row_major(shape)
    steps = [
        Step(part, strides[axis], shape[axis] - window[axis])
        for axis, part in zip(numbers.scatter_dims_to_operand_dims, parts, strict=False)
    ]
    if any(step.last < 0 for step in steps):
        return  # a window larger than the operand never fits
    steps += _batch_steps(self, shape, batch, numbers.input_batching_dims, numbers.scatter_indices_batching_dims,
                          numbers.index_vector_dim)  # fmt: skip
    offsets = offsets_of(self, steps, batch, missing=prod(shape))
    outer = [axis for axis in range(len(updates[0].shape)) if axis not in numbers.update_window_dims]
    order = [*outer, *numbers.update_window_dims]
    count, size = prod(batch), prod(window)
    rows = [self.reshaped(self.dense(one.permuted(order)), (count, size)) for one in updates]
    if many == 1 and body.roots[0] is body.parameters[1]:
        for first in range(0, count, PARTITIONS):
            _scatter_windows(self, outs[0], window, offsets, rows[0], first, min(PARTITIONS, count - first))
        return
    together = PARTITIONS if node.attrs["unique"] else 1
    for first in range(0, count, together):
        _combine(self, body, outs, window, offsets, rows, first, min(together, count - first))


def _combine(
    self: Lowering, body: Graph, outs: Sequence[Array], window: Sequence[int], offsets: Array, rows: Sequence[Array],
    first: int, count: int,
) -> None:  # fmt: skip
    """Read windows, combine them with their updates, write them back; no two of them share an element."""
    e = self.emitter
    size = prod(window)
    if size > _WINDOW:
        _combine_large(self, body, outs, window, offsets, rows, first, count)
        return
    index = _index_tile(self, offsets, first, count)
    held, given = [], []
    for out, update in zip(outs, rows, strict=True):
        tile = e.tile(out.dtype, count, (size,))
        e.fill(tile, 0)
        src = out._replace(shape=(count, *window), strides=(0, *out.strides))
        e.indirect(tile, src.view(), index, out.dtype.size, count, scatter=False, skip=True)
        held.append(tile)
        new = e.tile(update.dtype, count, (size,))
        e.copy(new, update.sliced((first, 0), (count, size)))
        given.append(new)
    made = evaluate(e, body, [*held, *given])
    for out, tile in zip(outs, made, strict=True):
        dst = out._replace(shape=(count, *window), strides=(0, *out.strides))
        e.indirect(dst.view(), tile, index, out.dtype.size, count, scatter=True, skip=True)


def _combine_large(
    self: Lowering, body: Graph, outs: Sequence[Array], window: Sequence[int], offsets: Array, rows: Sequence[Array],
    first: int, count: int,
) -> None:  # fmt: skip
    """Combine windows one by one, through device memory, with as many partitions as they fill."""
    e = self.emitter
    size = prod(window)
    for place in range(first, first + count):
        index = _index_tile(self, offsets, place, 1)
        held = []
        for out in outs:
            copy = e.tensor(out.dtype, (size,))
            src = out._replace(shape=(1, *window), strides=(0, *out.strides))
            if size:
                zero = constant_tensor(self, out.dtype)
                self.copy(copy, zero._replace(shape=copy.shape, strides=(0,)))
            e.indirect(copy._replace(shape=(1, size), strides=(size, 1)).view(), src.view(), index, out.dtype.size, 1,
                       scatter=False, skip=True)  # fmt: skip
            held.append(copy)
        lines = [one.sliced((place, 0), (1, size))._replace(shape=(size,), strides=(1,)) for one in rows]
        for tile in tiles((size,), tile_elements(len(body.nodes) + 4)):
            loaded = [load(e, part_of(one, one.strides, tile), tile) for one in (*held, *lines)]
            for copy, made in zip(held, evaluate(e, body, loaded), strict=True):
                store(e, part_of(copy, copy.strides, tile), made)
        for out, copy in zip(outs, held, strict=True):
            dst = out._replace(shape=(1, *window), strides=(0, *out.strides))
            line = copy._replace(shape=(1, size), strides=(size, 1))
            e.indirect(dst.view(), line.view(), index, out.dtype.size, 1, scatter=True, skip=True)


def constant_tensor(self: Lowering, dtype: Dtype) -> Array:
    """Return one zero in device memory."""
    return self.emitter.constant(np.zeros((), dtype.numpy_name), dtype)
