"""Instructions that choose elements by place, by value or by index."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from neurontools.neuronxcc.nki.affine import Index, Mask
from neurontools.neuronxcc.nki.isa.operands import by_rows, in_sbuf, rows_of, token
from neurontools.neuronxcc.nki.masks import held, is_empty, masked_box
from neurontools.neuronxcc.nki.partitions import operand, written
from neurontools.neuronxcc.nki.refusals import refuse_unknown, unsupported
from neurontools.neuronxcc.nki.tile import Tile, boxed, materialize, whole_under
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.isa.constants import reduce_cmd
from neurontools.nki.views import complain

__all__ = [
    "affine_select",
    "iota",
    "local_gather",
    "max8",
    "nc_find_index8",
    "nc_match_replace8",
    "range_select",
    "select_reduce",
    "sequence_bounds",
]


def _pattern(expression: Index) -> tuple[list[list[int]], int]:
    """Return steps and counts of the free axes, and the factor of the partition."""
    axes = [expression.axes.get(axis, (0, 1)) for axis in range(expression.ndim)]
    return [[coefficient, extent] for coefficient, extent in axes[1:]] or [[0, 1]], axes[0][0]


def iota(expr: Index, dtype: Any, *, mask: Any = None, **unused: Any) -> Tile:
    """Return the values of an index expression."""
    pattern, partition = _pattern(expr)
    return whole_under(expr.shape, dtype, mask, lambda dst: isa.iota(dst, pattern, expr.const, partition))


def affine_select(
    pred: Mask, on_true_tile: Tile, on_false_value: Any, *, mask: Any = None, dtype: Any = None, **unused: Any
) -> Tile:
    """Return the tile where a comparison of index expressions holds, else the value."""
    if not isinstance(pred, Mask):
        raise complain("affine_select: pred must be a comparison of index expressions")
    source = in_sbuf(on_true_tile)
    if len(pred.terms) > 1:  # the word has one comparison: either of two is a choice by a tile of truth values

        def choose(dst: Any, tile: Any) -> None:
            holds = nl.load(nl.shared_constant(held(pred, source.shape)))
            isa.tensor_copy(dst, nl.where(holds, tile, on_false_value))

        return whole_under(source.shape, dtype or source.dtype, mask, choose, source)
    if not pred.conditions:  # it always holds
        return materialize(source.shape, dtype or source.dtype, mask, isa.tensor_copy, source, apart=True)
    for one in pred.conditions:
        if one.ndim > len(source.shape) or any(step and extent != source.shape[axis]
                                               for axis, (step, extent) in one.axes.items()):  # fmt: skip
            raise complain(f"affine_select: a comparison over {one.shape} places for a tile of {source.shape}")
        wide = Index({axis: (one.axes.get(axis, (0, 1))[0], extent) for axis, extent in enumerate(source.shape)},
                     one.const, len(source.shape))  # fmt: skip
        pattern, partition = _pattern(wide)
        source = whole_under(
            source.shape, dtype or source.dtype, mask,
            lambda dst, tile, pattern=pattern, partition=partition, offset=wide.const: isa.affine_select(
                dst, pattern, partition, tile, on_false_value, nl.greater_equal, offset), source)  # fmt: skip
    return source


def max8(*, src: Tile, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return the eight largest values of each partition."""
    return by_rows(src, 8, dtype or src.dtype, mask, isa.max8)


def nc_find_index8(*, data: Tile, vals: Tile, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return the places of eight values in each partition."""
    return by_rows(data, 8, dtype or nl.uint32, mask, isa.nc_find_index8, vals)


def nc_match_replace8(
    *, data: Tile, vals: Tile, imm: Any, dst_idx: Any = None, mask: Any = None, dtype: Any = None, **unused: Any
) -> Tile:
    """Return data with the first place of each of eight values replaced."""
    box = masked_box(mask, data.shape)
    known, places = rows_of(vals, box), None if dst_idx is None else rows_of(dst_idx, box)
    return materialize(
        data.shape,
        dtype or data.dtype,
        mask,
        lambda dst, source: isa.nc_match_replace8(dst, source, operand(known), imm, places),
        data,
    )


def local_gather(
    src_buffer: Tile,
    index: Tile,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return elements of each partition by the indices of its group of 16."""
    count = 16 * int(np.prod(index.shape[1:])) if num_valid_indices is None else num_valid_indices
    shape = (src_buffer.shape[0], count * num_elem_per_idx)
    if count == 16 * int(np.prod(index.shape[1:])):
        inner = () if num_elem_per_idx == 1 else (num_elem_per_idx,)
        shape = (src_buffer.shape[0], *index.shape[1:], 16, *inner)
    return whole_under(  # each element is from anywhere, so that a mask decides about results only
        shape,
        src_buffer.dtype,
        mask,
        lambda dst: isa.local_gather(dst, src_buffer.tensor, index.tensor, num_elem_per_idx, num_valid_indices),
    )


def range_select(
    *,
    on_true_tile: Tile,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Tile,
    bound1: Tile,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    reduce_res: Any = None,
    reduce_op: Any = np.max,
    range_start: Any = 0,
    on_false_value: Any = ...,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return the tile where its place lies between the bounds."""
    data = on_true_tile
    box = masked_box(mask, data.shape)
    if box is not None and not is_empty(box) and any(low for low, _ in box[1:]):
        if len(box) != 2:
            raise unsupported("range_select with a mask that leaves out the first places of several free dimensions")
        range_start += box[1][0]  # the engine counts from where it begins to read

    def emit(dst: Any, source: Any, result: Any = None) -> None:
        low, high = (operand(rows_of(one, box)) for one in (bound0, bound1))
        isa.range_select(dst, source, token(comp_op0), token(comp_op1), low, high, reduce_cmd, result,
                         token(reduce_op), range_start, on_false_value)  # fmt: skip

    return materialize(data.shape, dtype or data.dtype, mask, emit, data, folded=reduce_res)


def select_reduce(
    *,
    dst: Tile,
    predicate: Tile,
    on_true: Tile,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = reduce_cmd.idle,
    reduce_op: Any = np.max,
    reverse_pred: bool = False,
    mask: Any = None,
    **unused: Any,
) -> None:
    """Select by a predicate into dst."""
    box = masked_box(mask, dst.shape)
    if box is not None and is_empty(box):
        return
    where, chosen = (operand(boxed(one, box, dst.shape)) for one in (predicate, on_true))
    other = operand(rows_of(on_false, box)) if isinstance(on_false, Tile) else on_false
    folded = nullcontext() if reduce_res is None else written(rows_of(reduce_res, box))
    with written(boxed(dst, box, dst.shape)) as into, folded as result:
        isa.select_reduce(into, where, chosen, other, result, reduce_cmd, token(reduce_op), reverse_pred)


def sequence_bounds(segment_ids: Tile, *, dtype: Any = None, **unused: Any) -> Tile:
    """Return first and last + 1 place of each element's segment."""
    shape = (segment_ids.shape[0], 2, *segment_ids.shape[1:])
    return materialize(
        shape, dtype or segment_ids.dtype, None, lambda dst: isa.sequence_bounds(dst, segment_ids.tensor)
    )


refuse_unknown(globals())
