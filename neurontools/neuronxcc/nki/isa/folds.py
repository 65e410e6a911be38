"""Reductions, scans and statistics."""

from __future__ import annotations

from typing import Any

from neurontools.neuronxcc.nki.isa.operands import by_rows, column, in_sbuf, on_chip, rows_of, token
from neurontools.neuronxcc.nki.masks import is_empty, masked_box
from neurontools.neuronxcc.nki.partitions import operand, written
from neurontools.neuronxcc.nki.reductions import reduced
from neurontools.neuronxcc.nki.refusals import refuse_unknown
from neurontools.neuronxcc.nki.tile import Tile, boxed, materialize
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.dtype import promote
from neurontools.nki.isa.constants import reduce_cmd

__all__ = [
    "bn_aggr",
    "bn_stats",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "tensor_tensor_scan",
]


def tensor_reduce(
    op: Any,
    data: Tile,
    axis: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
    **unused: Any,
) -> Tile:
    """Return data reduced over free axes; without keepdims a result keeps one free dimension."""

    def fold(source: Any, axes: list[int]) -> Any:
        dst = nl.ndarray(source.shape[: axes[0]] if axes[0] > 1 else (source.shape[0], 1), dtype or data.dtype, nl.sbuf)
        isa.tensor_reduce(dst, token(op), source, axis=axes, negate=negate)
        return dst

    return reduced(data, axis, keepdims, mask, dtype, fold)


def tensor_partition_reduce(op: Any, data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return data reduced over its partitions."""
    box = masked_box(mask, data.shape)
    source = operand(boxed(in_sbuf(data), box, data.shape))
    # partitions are folded, so that only the free axes of a mask say where results go
    into = None if box is None else ((0, 1), *box[1:])
    result = Tile(nl.ndarray((1, *data.shape[1:]), dtype or data.dtype, nl.sbuf))
    if box is None or not is_empty(box):
        isa.tensor_partition_reduce(boxed(result, into, result.shape), token(op), source)
    result.valid = None if box is None or into is None else () if is_empty(box) else (into,)
    return result


def tensor_tensor_scan(
    data0: Tile,
    data1: Tile,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return the scan (result op0 data0) op1 data1 along the free axis."""

    def emit(dst: Any, a: Any, b: Any, start: Any) -> None:
        isa.tensor_tensor_scan(dst, a, b, start, token(op0), token(op1), reverse0, reverse1)

    operands = on_chip(data0), on_chip(data1), column(initial)
    return materialize(data1.shape, dtype or promote(data0.dtype, data1.dtype), mask, emit, *operands)


def tensor_scalar_reduce(
    *,
    data: Tile,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Tile,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return data op0 operand0, and its reduction in reduce_res."""

    def emit(dst: Any, source: Any, operand: Any, result: Any) -> None:
        isa.tensor_scalar_reduce(dst, source, token(op0), operand, token(reduce_op), result, reverse0)

    return materialize(data.shape, dtype or data.dtype, mask, emit, on_chip(data), column(operand0), folded=reduce_res)


def tensor_scalar_cumulative(
    *,
    src: Tile,
    dst: Tile,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    mask: Any = None,
    **unused: Any,
) -> None:
    """Scan src into dst."""
    box = masked_box(mask, dst.shape)
    if box is not None and is_empty(box):
        return
    first, initial = (operand(rows_of(one, box)) if isinstance(one, Tile) else one for one in (imm0, imm1))
    with written(boxed(dst, box, dst.shape)) as into:
        source = operand(boxed(on_chip(src), box, dst.shape))
        isa.tensor_scalar_cumulative(into, source, token(op0), token(op1), first, initial, reduce_cmd)


def bn_stats(data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return counts, means and squared distances of each partition."""
    return by_rows(data, 6, dtype or nl.float32, mask, isa.bn_stats)


def bn_aggr(data: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return mean and variance of each partition."""
    return by_rows(data, 2, dtype or nl.float32, mask, isa.bn_aggr)


refuse_unknown(globals())
