"""Copies, fills and DMA."""

from __future__ import annotations

from typing import Any

from neurontools.neuronxcc.nki.isa.operands import on_chip, token
from neurontools.neuronxcc.nki.masks import is_empty, masked_box, masked_boxes
from neurontools.neuronxcc.nki.partitions import moved, operand, reached
from neurontools.neuronxcc.nki.refusals import refuse_unknown, unsupported
from neurontools.neuronxcc.nki.tile import Tile, boxed, materialize
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.isa import unknown_engine
from neurontools.nki.isa.constants import dge_mode, oob_mode

__all__ = ["dma_copy", "dma_transpose", "memset", "nc_stream_shuffle", "tensor_copy", "tensor_copy_predicated"]


def tensor_copy(src: Tile, *, dtype: Any = None, mask: Any = None, engine: Any = unknown_engine, **unused: Any) -> Tile:
    """Return a copy."""
    tile = on_chip(src)
    return materialize(
        src.shape, dtype or src.dtype, mask, lambda dst, a: isa.tensor_copy(dst, a, engine=engine), tile, apart=True
    )


def tensor_copy_predicated(
    *, src: Any, dst: Tile, predicate: Tile, mask: Any = None, reverse_pred: bool = False, **unused: Any
) -> None:
    """Copy src into dst where the predicate holds."""
    boxes = masked_boxes(mask, dst.shape)
    for box in (None,) if boxes is None else boxes:
        part, source, where = (boxed(one, box, dst.shape) for one in (dst, src, predicate))
        inside = part if reached(part) else moved(part)
        isa.tensor_copy_predicated(inside, operand(source), operand(where), reverse_pred)
        if inside is not part:
            isa.dma_copy(part, inside)


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = unknown_engine, **unused: Any
) -> Tile:
    """Return a tile of one value."""
    return materialize(shape, dtype, mask, lambda dst: isa.memset(dst, value, engine), apart=True)


def nc_stream_shuffle(src: Tile, dst: Tile, shuffle_mask: Any, *, mask: Any = None, **unused: Any) -> None:
    """Move partitions of each group of 32."""
    box = masked_box(mask, dst.shape)
    if box is not None and is_empty(box):
        return
    if box is not None and box[0] != (0, dst.shape[0]):
        raise unsupported("nc_stream_shuffle with a mask over partitions, which moves whole groups of them,")
    isa.nc_stream_shuffle(boxed(dst, box, dst.shape), boxed(src, box, dst.shape), shuffle_mask)


def dma_copy(
    *,
    dst: Tile,
    src: Tile,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = oob_mode.error,
    dge_mode: Any = dge_mode.unknown,
    **unused: Any,
) -> None:
    """Copy by DMA."""
    target, source = dst.tensor, src.tensor
    boxes = masked_boxes(mask, target.shape, narrow=True)
    for box in (None,) if boxes is None else boxes:
        into, out_of = boxed(dst, box, target.shape), boxed(src, box, source.shape)
        if dst_rmw_op is None:
            isa.dma_copy(into, out_of, oob_mode=oob_mode, dge_mode=dge_mode)
        else:
            isa.dma_compute(into, [into, out_of], token(dst_rmw_op), oob_mode=oob_mode)


def dma_transpose(
    src: Tile,
    *,
    axes: Any = None,
    dge_mode: Any = dge_mode.unknown,
    oob_mode: Any = oob_mode.error,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return a tile transposed by DMA; all axes turn round unless `axes` says otherwise."""
    tensor = src.tensor
    order = tuple(axes) if axes is not None else tuple(reversed(range(len(tensor.shape))))
    dst = nl.ndarray(tuple(tensor.shape[one] for one in order), dtype or tensor.dtype, nl.sbuf)
    isa.dma_transpose(dst, tensor, axes=order, dge_mode=dge_mode, oob_mode=oob_mode)
    turned = Tile(dst)
    boxes = masked_boxes(mask, tensor.shape)
    turned.valid = None if boxes is None else tuple(tuple(box[one] for one in order) for box in boxes)
    return turned


refuse_unknown(globals())
