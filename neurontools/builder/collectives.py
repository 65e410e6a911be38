"""From one collective to its word: both sides walked in the order of its elements."""

from __future__ import annotations

import struct

from formats.isa import Collective, CollectiveKind, DmaPattern
from formats.isa.extension_collective import STREAMS
from neurontools.builder.dims import Dims, merge
from neurontools.builder.encode import refuse
from neurontools.builder.trace import CollectiveOp, Space
from neurontools.builder.transfers import Side, byte_dims

__all__ = ["collective_word"]

_DIMS = 4
_PLACES = {name: Collective.FIELDS[name].offset for name in ("src", "dst", "groups", "counts")}
_GATHERS = CollectiveKind.ALL_GATHER


def collective_word(
    op: CollectiveOp, src: Side, dst: Side, groups: Side, counts: Side | None, semaphore: int
) -> bytearray:
    """Return the word of a collective.

    Raises BuildError, with the kernel line, for tensors in PSUM and for views that its patterns cannot hold.
    """
    if not 0 <= op.stream < STREAMS:
        raise refuse(op, f"is on stream {op.stream}, there are {STREAMS}")
    for view in (op.src, op.dst):
        if view.allocation.space is Space.PSUM:
            raise refuse(op, f"touches {view.allocation.name} in PSUM, which CC-cores do not reach")
    target = byte_dims(op.dst)
    if op.kind == _GATHERS and op.axis:
        target = _outermost(op, target)
    src_run, src_pattern = _walk(op, byte_dims(op.src), op.src.dtype.size)
    dst_run, dst_pattern = _walk(op, target, op.dst.dtype.size)
    word = bytearray(
        Collective(
            semaphore=semaphore,
            dtype=op.src.dtype,
            kind=op.kind,
            reduce=op.reduce,
            stream=op.stream,
            channel=op.channel,
            turn=op.turn,
            keeps_counts=op.keeps_counts,
            has_places=op.has_places,
            groups_rows=op.rows,
            groups_columns=op.columns,
            src_element_size=src_run,
            dst_element_size=dst_run,
            src_pattern=src_pattern,
            dst_pattern=dst_pattern,
        ).raw
    )
    for name, side in (("src", src), ("dst", dst), ("groups", groups), ("counts", counts)):
        if side is not None:
            struct.pack_into("<II", word, _PLACES[name], side.offset, side.code)
    return word


def _outermost(op: CollectiveOp, dims: Dims) -> Dims:
    """Return dimensions of a destination with the one of ranks first: it is cut out of dimension `axis`."""
    step, count = dims[op.axis]
    if count % op.columns:
        raise refuse(op, f"has {count} elements along dimension {op.axis} for {op.columns} ranks")
    each = count // op.columns
    return ((step * each, op.columns), *dims[: op.axis], (step, each), *dims[op.axis + 1 :])


def _walk(op: CollectiveOp, dims: Dims, size: int) -> tuple[int, DmaPattern]:
    """Return the contiguous bytes and the pattern of a side."""
    dims, run = merge(dims), size
    # an innermost dimension without gaps is one contiguous run
    if dims and (dims[-1][0] == size or dims[-1][1] == 1):
        run, dims = size * dims[-1][1], dims[:-1]
    if len(dims) > _DIMS:
        raise refuse(op, f"walks {len(dims)} dimensions, a word has {_DIMS}")
    padded = (*((1, 1),) * (_DIMS - len(dims)), *dims)
    return run, DmaPattern(
        tuple(step for step, _ in reversed(padded)),  # type: ignore[arg-type]
        tuple(count for _, count in reversed(padded)),  # type: ignore[arg-type]
    )
