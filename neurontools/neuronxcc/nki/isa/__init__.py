"""`nisa` of the first generation: calls that return tiles, with `mask=` and `dtype=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurontools.neuronxcc.nki.affine import Index, Mask, refuse_unknown, unsupported
from neurontools.neuronxcc.nki.isa import constants
from neurontools.neuronxcc.nki.masks import Box, is_empty, masked_box, product_boxes, squares, whole_box
from neurontools.neuronxcc.nki.tile import Cut, Product, Tile, boxed, copy_into, materialize, unwrap
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of, promote
from neurontools.nki.isa.constants import dge_mode, engine, oob_mode, reduce_cmd
from neurontools.nki.tracer import tracer
from neurontools.nki.views import complain
from neurontools.trace import Space

tensor_engine, vector_engine, scalar_engine, gpsimd_engine, unknown_engine = (
    isa.tensor_engine, isa.vector_engine, isa.scalar_engine, isa.gpsimd_engine, isa.unknown_engine)  # fmt: skip
get_nc_version, nc_version = isa.get_nc_version, isa.nc_version


def _op(value: Any) -> Any:
    """Return an operator as the present generation names it; NumPy functions stand for operators too."""
    return getattr(value, "plain", value)


def _chip(value: Tile) -> Tile:
    """Return an operand in SBUF or PSUM."""
    return Tile(nl.load(value.tensor)) if value.tensor.space is Space.HBM else value


def _in_sbuf(value: Tile) -> Tile:
    """Return an operand in SBUF, for engines that do not reach PSUM."""
    return Tile(nl.copy(value.tensor)) if value.tensor.space is Space.PSUM else _chip(value)


def _free(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    axes = axis if isinstance(axis, (list, tuple, range)) else (axis,)
    kept = {one % len(shape) for one in axes}
    return tuple(one for place, one in enumerate(shape) if place not in kept)


def tensor_tensor(data1: Tile, data2: Tile, op: Any, *, dtype: Any = None, mask: Any = None,
                  engine: Any = unknown_engine, **unused: Any) -> Tile:
    """Return data1 op data2."""
    data1, data2 = _chip(data1), _chip(data2)
    if data1.shape != data2.shape and len(data1.shape) == len(data2.shape):
        shape = np.broadcast_shapes(data1.shape, data2.shape)
        data1, data2 = data1.broadcast_to(shape), data2.broadcast_to(shape)
    return materialize(data1.shape, dtype or promote(data1.dtype, data2.dtype), mask,
                       lambda dst, a, b: isa.tensor_tensor(dst, a, b, _op(op), engine=engine), data1, data2)


def tensor_scalar(data: Tile, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None,
                  reverse1: bool = False, *, dtype: Any = None, mask: Any = None, engine: Any = unknown_engine,
                  **unused: Any) -> Tile:
    """Return (data op0 operand0) op1 operand1."""
    second = {} if op1 is None else {"op1": _op(op1)}

    def emit(dst: Any, source: Any, first: Any, other: Any) -> None:
        extra = second if not second else {**second, "operand1": other, "reverse1": reverse1}
        isa.tensor_scalar(dst, source, _op(op0), first, reverse0, engine=engine, **extra)

    data = _chip(data)
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, operand0, operand1)


def scalar_tensor_tensor(*, data: Tile, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False,
                         reverse1: bool = False, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return (data op0 operand0) op1 operand1 with a tile as the last operand."""
    def emit(dst: Any, source: Any, first: Any, other: Any) -> None:
        isa.scalar_tensor_tensor(dst, source, _op(op0), first, _op(op1), other, reverse0, reverse1)

    return materialize(data.shape, dtype or data.dtype, mask, emit, data, operand0, operand1)


def tensor_reduce(op: Any, data: Tile, axis: Any, *, mask: Any = None, dtype: Any = None, negate: bool = False,
                  keepdims: bool = False, **unused: Any) -> Tile:
    """Return data reduced over free axes; without keepdims a result keeps one free dimension."""
    data = _chip(data)
    axes = [one % len(data.shape) for one in (axis if isinstance(axis, (list, tuple, range)) else (axis,))]
    shape = tuple(1 if place in axes else one for place, one in enumerate(data.shape))
    if not keepdims:
        left = _free(data.shape, axes)
        shape = left if len(left) > 1 else (data.shape[0], 1)
    box = masked_box(mask, data.shape)
    full = nl.ndarray(shape, dtype or data.dtype, nl.sbuf)
    if box is None or all(high > low for low, high in box):
        rows = full if box is None else full[box[0][0] : box[0][1]]
        isa.tensor_reduce(rows, _op(op), boxed(data, box, data.shape), axis=axes, negate=negate, keepdims=keepdims)
    reduced = Tile(full)
    reduced.valid = None if box is None else (box[0], *((0, one) for one in shape[1:]))
    return reduced


def tensor_partition_reduce(op: Any, data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return data reduced over its partitions."""
    box = masked_box(mask, data.shape)
    source = boxed(data, box, data.shape)
    return materialize((1, *source.shape[1:]), dtype or data.dtype, None,
                       lambda dst: isa.tensor_partition_reduce(dst, _op(op), source))


def activation(op: Any, data: Tile, *, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None,
               reduce_res: Any = None, reduce_cmd: Any = constants.reduce_cmd.idle, dtype: Any = None, mask: Any = None,
               **unused: Any) -> Tile:
    """Return op(data * scale + bias)."""
    def emit(dst: Any, source: Any, offset: Any, factor: Any) -> None:
        isa.activation(dst, _op(op), source, offset, factor, _op(reduce_op), unwrap(reduce_res), reduce_cmd)

    data = _chip(data)
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, bias, scale)


def activation_reduce(op: Any, data: Tile, *, reduce_op: Any, reduce_res: Any = None, bias: Any = None,
                      scale: Any = 1.0, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return op(data * scale + bias), and its reduction in reduce_res."""
    def emit(dst: Any, source: Any, offset: Any, factor: Any, result: Any) -> None:
        isa.activation_reduce(dst, _op(op), source, _op(reduce_op), result, offset, factor)

    data = _chip(data)
    result = reduce_res if reduce_res is not None else Tile(nl.ndarray((data.shape[0], 1), nl.float32, nl.sbuf))
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, bias, scale, result)


def reciprocal(data: Tile, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return 1 / data."""
    return materialize(data.shape, dtype or data.dtype, mask, isa.reciprocal, _chip(data))


def tensor_copy(src: Tile, *, dtype: Any = None, mask: Any = None, engine: Any = unknown_engine, **unused: Any) -> Tile:
    """Return a copy."""
    return materialize(src.shape, dtype or src.dtype, mask, lambda dst, a: isa.tensor_copy(dst, a, engine=engine), src)


def tensor_copy_predicated(*, src: Any, dst: Tile, predicate: Tile, mask: Any = None, reverse_pred: bool = False,
                           **unused: Any) -> None:
    """Copy src into dst where the predicate holds."""
    box = masked_box(mask, dst.shape)
    isa.tensor_copy_predicated(boxed(dst, box, dst.shape), boxed(src, box, dst.shape),
                               boxed(predicate, box, dst.shape), reverse_pred)


def tensor_tensor_scan(data0: Tile, data1: Tile, initial: Any, op0: Any, op1: Any, reverse0: bool = False,
                       reverse1: bool = False, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return the scan (result op0 data0) op1 data1 along the free axis."""
    def emit(dst: Any, a: Any, b: Any, start: Any) -> None:
        isa.tensor_tensor_scan(dst, a, b, start, _op(op0), _op(op1), reverse0, reverse1)

    return materialize(data1.shape, dtype or promote(data0.dtype, data1.dtype), mask, emit, data0, data1, initial)


def tensor_scalar_reduce(*, data: Tile, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Tile,
                         reverse0: bool = False, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return data op0 operand0, and its reduction in reduce_res."""
    def emit(dst: Any, source: Any, operand: Any, result: Any) -> None:
        isa.tensor_scalar_reduce(dst, source, _op(op0), operand, _op(reduce_op), result, reverse0)

    return materialize(data.shape, dtype or data.dtype, mask, emit, data, operand0, reduce_res)


def tensor_scalar_cumulative(*, src: Tile, dst: Tile, op0: Any, op1: Any, imm0: Any, imm1: Any = None,
                             reduce_cmd: Any = reduce_cmd.reset_reduce, mask: Any = None, **unused: Any) -> None:
    """Scan src into dst."""
    box = masked_box(mask, dst.shape)
    isa.tensor_scalar_cumulative(boxed(dst, box, dst.shape), boxed(src, box, dst.shape), _op(op0), _op(op1),
                                 unwrap(imm0), unwrap(imm1), reduce_cmd)


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = unknown_engine, **unused: Any
) -> Tile:
    """Return a tile of one value."""
    return materialize(shape, dtype, mask, lambda dst: isa.memset(dst, value, engine))


def _pattern(expression: Index) -> tuple[list[list[int]], int]:
    """Return steps and counts of the free axes, and the factor of the partition."""
    axes = [expression.axes.get(axis, (0, 1)) for axis in range(expression.ndim)]
    return [[coefficient, extent] for coefficient, extent in axes[1:]] or [[0, 1]], axes[0][0]


def iota(expr: Index, dtype: Any, *, mask: Any = None, **unused: Any) -> Tile:
    """Return the values of an index expression."""
    pattern, partition = _pattern(expr)
    return materialize(expr.shape, dtype, mask, lambda dst: isa.iota(dst, pattern, expr.const, partition))


def affine_select(pred: Mask, on_true_tile: Tile, on_false_value: Any, *, mask: Any = None, dtype: Any = None,
                  **unused: Any) -> Tile:
    """Return the tile where a comparison of index expressions holds, else the value."""
    if not isinstance(pred, Mask):
        raise complain("affine_select: pred must be a comparison of index expressions")
    source = _in_sbuf(on_true_tile)
    for condition in pred.conditions:
        wide = Index({axis: (condition.axes.get(axis, (0, 1))[0], extent) for axis, extent in enumerate(source.shape)},
                     condition.const, len(source.shape))  # fmt: skip
        pattern, partition = _pattern(wide)
        source = materialize(
            source.shape, dtype or source.dtype, mask,
            lambda dst, tile, pattern=pattern, partition=partition, offset=wide.const: isa.affine_select(
                dst, pattern, partition, tile, on_false_value, nl.greater_equal, offset), source)  # fmt: skip
    return source


_PERF_MODES = {
    "none": constants.matmul_perf_mode.none,
    "double_row": constants.matmul_perf_mode.double_row,
    "double_row_gen3": constants.matmul_perf_mode.double_row,
}


def nc_matmul(stationary: Tile, moving: Tile, *, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
              is_transpose: bool = False, tile_position: Any = (), tile_size: Any = (), mask: Any = None,
              perf_mode: Any = None, **unused: Any) -> Product:
    """Return stationary.T @ moving."""
    mode = getattr(perf_mode, "value", perf_mode) or "none"
    if mode not in _PERF_MODES:
        raise unsupported(f"nc_matmul with perf_mode={perf_mode!r}")
    (whole_left, mine), (whole_right, theirs) = _cut(stationary), _cut(moving)
    left, right = _in_sbuf(whole_left).tensor, _in_sbuf(whole_right).tensor
    rows = 1 if _PERF_MODES[mode] is constants.matmul_perf_mode.none else 2
    columns, width = int(np.prod(left.shape[1:])) // rows, int(np.prod(right.shape[1:])) // rows
    mine, theirs = product_boxes(mask, (mine, theirs), left.shape, right.shape)
    valid: Box | None = None
    if is_empty(mine) or is_empty(theirs):
        valid = (0, 0), (0, 0)
    elif mine != whole_box(left.shape) or theirs != whole_box(right.shape):
        if rows > 1 or len(left.shape) > 2 or len(right.shape) > 2:
            raise unsupported("nc_matmul of a part of more than two dimensions")
        valid = mine[1], theirs[1]
        left, right = boxed(left, mine, left.shape), boxed(right, theirs, right.shape)

    def emit(dst: Any) -> None:
        if valid is not None and is_empty(valid):
            return
        if valid is not None and dst.shape != (columns, width):
            raise unsupported(f"a part of a product of {(columns, width)} in a tile of {dst.shape}")
        isa.nc_matmul(boxed(dst, valid, dst.shape), left, right, is_stationary_onezero, is_moving_onezero, is_transpose,
                      tile_position=tile_position, tile_size=tile_size, perf_mode=_PERF_MODES[mode])

    exact = is_transpose and tracer().limits.transpose_exact
    product = Product((columns, width), emit, left.dtype if exact else nl.float32)
    product.valid = valid
    return product


def _cut(operand: Tile) -> tuple[Tile, Box]:
    """Return an operand of a product, and the box of it that takes part."""
    if isinstance(operand, Cut):
        return operand.whole, operand.box
    return operand, whole_box(operand.shape)


def nc_transpose(
    data: Tile, *, engine: Any = unknown_engine, dtype: Any = None, mask: Any = None, **unused: Any
) -> Tile:
    """Return a 2-D tile transposed: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    tensor = data.tensor
    rows, columns = tensor.shape[0], int(np.prod(tensor.shape[1:]))
    vector = engine is vector_engine or (engine is unknown_engine and max(rows, columns) <= 32)
    where = nl.sbuf if vector else nl.psum
    wanted = dtype_of(dtype) if dtype is not None else tensor.dtype
    direct = wanted is tensor.dtype or (wanted is nl.float32 and not vector)
    dst = nl.ndarray((columns, rows), wanted if direct else tensor.dtype, where)
    box = masked_box(mask, tensor.shape)
    if box is None or all(high > low for low, high in box):
        part = boxed(dst, None if box is None else (box[1], box[0]), dst.shape)
        source = boxed(tensor, box, tensor.shape)
        for into, piece in squares(part, source) if vector else ((part, source),):
            isa.nc_transpose(into, piece, engine=vector_engine if vector else tensor_engine)
        if not direct:      # the engine keeps the type: a copy casts
            whole, dst = dst, nl.ndarray((columns, rows), wanted, where)
            isa.tensor_copy(boxed(dst, None if box is None else (box[1], box[0]), dst.shape),
                            whole if box is None else part)
    turned = Tile(dst)
    turned.valid = None if box is None else (box[1], box[0])
    return turned


def bn_stats(data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return counts, means and squared distances of each partition."""
    box = masked_box(mask, data.shape)
    source = boxed(data, box, data.shape)
    return materialize((source.shape[0], 6), dtype or nl.float32, None, lambda dst: isa.bn_stats(dst, source))


def bn_aggr(data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return mean and variance of each partition."""
    box = masked_box(mask, data.shape)
    source = boxed(data, box, data.shape)
    return materialize((source.shape[0], 2), dtype or nl.float32, None, lambda dst: isa.bn_aggr(dst, source))


def max8(*, src: Tile, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return the eight largest values of each partition."""
    box = masked_box(mask, src.shape)
    source = boxed(src, box, src.shape)
    return materialize((source.shape[0], 8), dtype or src.dtype, None, lambda dst: isa.max8(dst, source))


def nc_find_index8(*, data: Tile, vals: Tile, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return the places of eight values in each partition."""
    box = masked_box(mask, data.shape)
    source = boxed(data, box, data.shape)
    return materialize((source.shape[0], 8), dtype or nl.uint32, None,
                       lambda dst: isa.nc_find_index8(dst, source, vals.tensor))


def nc_match_replace8(*, data: Tile, vals: Tile, imm: Any, dst_idx: Any = None, mask: Any = None, dtype: Any = None,
                      **unused: Any) -> Tile:
    """Return data with the first place of each of eight values replaced."""
    return materialize(data.shape, dtype or data.dtype, mask, lambda dst, source: isa.nc_match_replace8(
        dst, source, vals.tensor, imm, None if dst_idx is None else dst_idx.tensor), data)


def nc_stream_shuffle(src: Tile, dst: Tile, shuffle_mask: Any, *, mask: Any = None, **unused: Any) -> None:
    """Move partitions of each group of 32."""
    isa.nc_stream_shuffle(dst.tensor, src.tensor, shuffle_mask)


def local_gather(src_buffer: Tile, index: Tile, num_elem_per_idx: int = 1, num_valid_indices: int | None = None,
                 *, mask: Any = None, **unused: Any) -> Tile:
    """Return elements of each partition by the indices of its group of 16."""
    count = 16 * int(np.prod(index.shape[1:])) if num_valid_indices is None else num_valid_indices
    shape = (src_buffer.shape[0], count * num_elem_per_idx)
    if count == 16 * int(np.prod(index.shape[1:])):
        inner = () if num_elem_per_idx == 1 else (num_elem_per_idx,)
        shape = (src_buffer.shape[0], *index.shape[1:], 16, *inner)
    return materialize(shape, src_buffer.dtype, None, lambda dst: isa.local_gather(
        dst, src_buffer.tensor, index.tensor, num_elem_per_idx, num_valid_indices))


def range_select(*, on_true_tile: Tile, comp_op0: Any, comp_op1: Any, bound0: Tile, bound1: Tile,
                 reduce_cmd: Any = reduce_cmd.reset_reduce, reduce_res: Any = None, reduce_op: Any = np.max,
                 range_start: Any = 0, on_false_value: Any = None, dtype: Any = None, mask: Any = None,
                 **unused: Any) -> Tile:
    """Return the tile where its place lies between the bounds."""
    data = on_true_tile
    return materialize(data.shape, dtype or data.dtype, mask, lambda dst, source: isa.range_select(
        dst, source, _op(comp_op0), _op(comp_op1), unwrap(bound0), unwrap(bound1), reduce_cmd, unwrap(reduce_res),
        _op(reduce_op), range_start, float(np.finfo(np.float32).min)), data)


def select_reduce(*, dst: Tile, predicate: Tile, on_true: Tile, on_false: Any, reduce_res: Any = None,
                  reduce_cmd: Any = reduce_cmd.idle, reduce_op: Any = np.max, reverse_pred: bool = False,
                  mask: Any = None, **unused: Any) -> None:
    """Select by a predicate into dst."""
    isa.select_reduce(dst.tensor, predicate.tensor, on_true.tensor, unwrap(on_false), unwrap(reduce_res), reduce_cmd,
                      _op(reduce_op), reverse_pred)


def sequence_bounds(segment_ids: Tile, *, dtype: Any = None, **unused: Any) -> Tile:
    """Return first and last + 1 place of each element's segment."""
    shape = (segment_ids.shape[0], 2, *segment_ids.shape[1:])
    return materialize(shape, dtype or segment_ids.dtype, None,
                       lambda dst: isa.sequence_bounds(dst, segment_ids.tensor))


def dropout(data: Tile, prob: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return data with elements zeroed at random."""
    return materialize(data.shape, dtype or data.dtype, mask, lambda dst, a, p: isa.dropout(dst, a, p), data, prob)


def dma_copy(*, dst: Tile, src: Tile, mask: Any = None, dst_rmw_op: Any = None, oob_mode: Any = oob_mode.error,
             dge_mode: Any = dge_mode.unknown, **unused: Any) -> None:
    """Copy by DMA."""
    target, source = dst.tensor, src.tensor
    box = masked_box(mask, target.shape)
    into, out_of = boxed(dst, box, target.shape), boxed(src, box, source.shape)
    if dst_rmw_op is None:
        isa.dma_copy(into, out_of, oob_mode=oob_mode, dge_mode=dge_mode)
    else:
        isa.dma_compute(into, [into, out_of], _op(dst_rmw_op), oob_mode=oob_mode)


def dma_transpose(src: Tile, *, axes: Any = None, dge_mode: Any = dge_mode.unknown, oob_mode: Any = oob_mode.error,
                  dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return a tile transposed by DMA; all axes turn round unless `axes` says otherwise."""
    tensor = src.tensor
    order = tuple(axes) if axes is not None else tuple(reversed(range(len(tensor.shape))))
    dst = nl.ndarray(tuple(tensor.shape[one] for one in order), dtype or tensor.dtype, nl.sbuf)
    isa.dma_transpose(dst, tensor, axes=order, dge_mode=dge_mode, oob_mode=oob_mode)
    return Tile(dst)


refuse_unknown(globals())
__all__ = [  # noqa: PLE0604
    *[name for name, one in list(globals().items()) if callable(one) and getattr(one, "__module__", "") == __name__
      and not name.startswith("_")], "constants", "copy_into", "dge_mode", "engine", "oob_mode", "reduce_cmd",
]  # fmt: skip
