"""DMA by index to indirect words, and DMA with several sources to descriptors."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from formats.isa import DmaIndirect, DmaPattern
from formats.neff.transfers import Descriptor, Source
from neurontools.builder.dims import Dims, Limit, common, elements, merge, split
from neurontools.builder.encode import Place, limit_of, pad, refuse
from neurontools.builder.templates import keep, put_address
from neurontools.builder.trace import DmaComputeOp, IndirectDmaOp, Space, View
from neurontools.builder.transfers import DESCRIPTOR, MOST_DESCRIPTORS, Direct, Side, byte_dims, dtype_name

__all__ = ["combined", "indirect_words", "whole"]

_HBM = Space.HBM
_SRC, _DST = DmaIndirect.FIELDS["src"].offset, DmaIndirect.FIELDS["dst"].offset
_AT = DmaIndirect.OPERANDS["index"].offset
_put_side = struct.Struct("<II").pack_into
_STEPS = -(1 << 31), (1 << 31) - 1
_ROW = Limit(4, (1 << 31) - 1, *_STEPS)
_INDEX = limit_of(DmaIndirect.OPERANDS["index"])  # type: ignore[arg-type]
_encoded: dict[Any, list[Direct]] = {}  # by all of a copy but its addresses


def whole(view: View) -> View:
    """Return the view of all that an indirect side may touch: its tensor in HBM, its partitions on chip."""
    allocation = view.allocation
    size = view.dtype.size
    return view._replace(offset=0, dims=((1, allocation.partition_bytes // size),))


def indirect_words(op: IndirectDmaOp, src: Side, dst: Side, index: Place) -> list[bytearray]:
    """Return the words of an indirect copy, without semaphore.

    Raises BuildError, with the kernel line, for sides that cannot be paired.
    """
    one, other, at = op.src, op.dst, op.index
    key = (
        op.scatter, op.skip, op.accumulate, op.rows, op.step, op.order, one.allocation.space is _HBM, one.dtype,
        one.partitions, one.dims, other.allocation.space is _HBM, other.dtype, other.partitions, other.dims, at.dtype,
        at.partitions, at.dims,
    )  # fmt: skip
    known = _encoded.get(key)
    if known is None:
        known = _templates(op)
        keep(_encoded, key, known)
    words = []
    for raw, src_delta, dst_delta, _ in known:
        word = bytearray(raw)
        put_address(word, _AT, index.of(at))
        _put_side(word, _SRC, src.offset + src_delta, src.code)
        _put_side(word, _DST, dst.offset + dst_delta, dst.code)
        words.append(word)
    return words


def _templates(op: IndirectDmaOp) -> list[Direct]:
    """Return the words of an indirect copy without addresses, for every copy of its shape."""
    sides = [byte_dims(op.src), byte_dims(op.dst)]
    moving, fixed = (1, 0) if op.scatter else (0, 1)
    if op.order is not None:
        sides[fixed] = tuple(sides[fixed][axis] for axis in op.order)
    row_step = 0
    if op.rows:
        sides[moving] = sides[moving][1:] or ((1, 1),)
        row_step, sides[fixed] = _rows(op, sides[fixed])
    both = common(sides)
    if both is None or elements(sides[0]) != elements(sides[1]):
        raise refuse(op, f"pairs {sides[0]} with {sides[1]}, which do not nest")
    sizes = op.src.dtype.size, op.dst.dtype.size
    run = 1
    source, target = both
    if source[-1] == (1, 1) or (source[-1][0], target[-1][0]) == sizes:
        run = source[-1][1]
        source, target = source[:-1], target[:-1]
    pieces = split((source or ((1, 1),), target or ((1, 1),)), [_ROW, _ROW])
    words = []
    for piece in pieces:
        word = DmaIndirect(
            src_dtype=op.src.dtype,
            dst_dtype=op.dst.dtype,
            index_dtype=op.index.dtype,
            channels=op.index.partitions,
            scatter=op.scatter,
            skip=op.skip,
            accumulate=op.accumulate,
            rows=max(op.rows, 1),
            index_step=op.step,
            row_step=row_step,
            src_element_size=run * sizes[0],
            dst_element_size=run * sizes[1],
            index=pad(0, merge(op.index.dims), _INDEX.dims, 1),
            src_pattern=_pattern(piece.dims[0]),
            dst_pattern=_pattern(piece.dims[1]),
        )
        words.append(Direct(word.raw, piece.offsets[0], piece.offsets[1]))
    return words


def _rows(op: IndirectDmaOp, dims: Dims) -> tuple[int, Dims]:
    """Cut the dimension of rows off the side without indices: its step, and the dimensions inside a row."""
    # rows may be several dimensions of the other side, as long as one step leads from each to the next
    for count in range(1, len(dims) + 1):
        if prod(size for _, size in dims[:count]) == op.rows:
            outer = merge(dims[:count])
            if len(outer) == 1:
                return outer[0][0], dims[count:] or ((1, 1),)
    raise refuse(op, f"has {op.rows} rows, and the other side has dimensions {[size for _, size in dims]}")


def _pattern(dims: Dims) -> DmaPattern:
    padded = (*((1, 1),) * (_ROW.dims - len(dims)), *dims)
    return DmaPattern(
        tuple(step for step, _ in reversed(padded)),  # type: ignore[arg-type]
        tuple(count for _, count in reversed(padded)),  # type: ignore[arg-type]
    )


def combined(op: DmaComputeOp, sources: Sequence[Side], target: Side) -> list[Descriptor]:
    """Return the descriptors of a transfer that adds its sources.

    Raises BuildError, with the kernel line, for views that cannot be paired.
    """
    views = (*op.srcs, op.dst)
    both = common([byte_dims(view) for view in views])
    if both is None:
        raise refuse(op, "combines views whose dimensions do not nest; do it in parts")
    run = 1
    if all(dims[-1] == (1, 1) for dims in both) or all(
        dims[-1][0] == view.dtype.size for dims, view in zip(both, views, strict=True)
    ):
        run = both[0][-1][1]
        both = tuple(dims[:-1] or ((1, 1),) for dims in both)
    pieces = split(both, [DESCRIPTOR] * len(views))
    if len(pieces) > MOST_DESCRIPTORS:
        raise refuse(op, f"needs {len(pieces)} descriptors, at most {MOST_DESCRIPTORS} are written")
    out = []
    for piece in pieces:
        ends = []
        for side, view, offset, dims in zip((*sources, target), views, piece.offsets, piece.dims, strict=True):
            sizes = (run * view.dtype.size, *(count for _, count in reversed(dims)))
            steps = (1, *(step for step, _ in reversed(dims)))
            ends.append(Source(side.variable, dtype_name(view.dtype), side.offset + offset, sizes, steps))
        first, last = ends[0], ends[-1]
        out.append(
            Descriptor(
                first.variable,
                first.offset,
                first.sizes,
                first.steps,
                last.variable,
                last.offset,
                last.sizes,
                last.steps,
                "add",
                first.dtype,
                last.dtype,
                tuple(ends[:-1]),
            )
        )
    return out
