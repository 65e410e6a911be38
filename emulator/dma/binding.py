"""Bind a transfer to memory: views made and bounds checked at the trigger, bytes moved at completion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dma.moves import (
    COMBINING,
    cast_move,
    check_operation,
    combine_move,
    copy_move,
    element_dtype,
    transpose_move,
)
from emulator.dma.row_moves import bind_rows
from emulator.dma.rows import RowsRequest
from emulator.dma.sides import Bound, Planned, find_side, look_up, plan_side, range_of
from emulator.dma.transfer import Dims, Part, Side, Transfer
from emulator.extents import Extent
from emulator.faults import Place
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.context import DeviceContext

__all__ = ["Copy", "bind", "bind_parts", "bytes_of", "copy_of", "place_of", "written_by"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Move = Callable[[], None]


def bind(device: DeviceContext, transfer: Transfer) -> Move:
    """Return the function that moves a transfer's bytes, notes what was written and warns of sources never written.

    Raises FaultError of kind "oob" where a side leaves its variable or its memory, UnsupportedError for an operation
    that is not modelled.
    """
    if device.hbm.paged:
        return _bind_paged(device, transfer)
    request = transfer.request
    if isinstance(request, RowsRequest):
        one_by_one = partial(bind_parts, device, transfer)
        return bind_rows(device, transfer, request.rows, one_by_one) or one_by_one()
    copied = request.copied
    if copied is None:
        copied = request.copied = _plan_copy(request.parts)
    if copied:
        src, source, target = copied
        found, into = look_up(device, source, "src"), look_up(device, target, "dst")
        if found is not None and into is not None and found[0].shape == into[0].shape:
            return _copy(device, transfer, src, *found, *into)
    return bind_parts(device, transfer)


def bind_parts(device: DeviceContext, transfer: Transfer) -> Move:
    """Return the function that moves a transfer's bytes part by part, as `bind` does."""
    parts = transfer.parts
    if len(parts) == 1:
        return _bind_part(device, transfer, parts[0])
    moves = [_bind_part(device, transfer, part) for part in parts]

    def move() -> None:
        for each in moves:
            each()

    return move


def _bind_paged(device: DeviceContext, transfer: Transfer) -> Move:
    """Return the move of a transfer where tensors lie in files: what has been read there is counted."""
    moves = [_bind_part(device, transfer, part) for part in transfer.parts]
    sources = [source for part in transfer.parts for source, _ in part.copies if source.space == "HBM"]
    found = [(device.hbm.find(source.address), source) for source in sources]
    counted = [(allocation, source.rows, source.run) for allocation, source in found if allocation is not None]

    def move() -> None:
        for each in moves:
            each()
        for allocation, rows, run in counted:
            if allocation.pages is not None:
                allocation.pages.looked_at(rows, run)

    return move


class _Work(NamedTuple):
    """What a part of a transfer does to bytes: the extents of what it reads, by side, and of what it writes.

    What is known to be written for good has none.
    """

    move: Move
    reads: tuple[tuple[Side, Extent], ...]
    writes: Extent | None


def _bind_part(device: DeviceContext, transfer: Transfer, part: Part) -> Move:
    found = _copied(device, transfer, part)
    if found is not None:
        ((src, dst),) = part.copies
        if src.dtype == dst.dtype and found[0].shape == found[2].shape:
            return _copy(device, transfer, src, *found)
    work, reads, writes = _work_of(device, transfer, part)

    def move() -> None:
        for source, extent in reads:
            if not extent.full and device.checking and (missing := extent.missing()):
                _warn(device, transfer, source, missing, extent)
        work()
        if writes is not None and not writes.full:
            writes.mark()

    return move


def _copy(
    device: DeviceContext,
    transfer: Transfer,
    source: Side,
    data: Array,
    read: Extent | None,
    into: Array,
    written: Extent | None,
) -> Move:
    """Return the move of most transfers, in one function."""

    def copy() -> None:
        if read is not None and not read.full and device.checking and (missing := read.missing()):
            _warn(device, transfer, source, missing, read)
        into[...] = data
        if written is not None and not written.full:
            written.mark()

    return copy


def _plan_copy(parts: tuple[Part, ...]) -> tuple[Side, Planned, Planned] | tuple[()]:
    """Return the source and both sides of what only copies, as they are looked up on any device; () for all else."""
    if len(parts) != 1 or parts[0].op not in ("copy", "cast") or len(parts[0].copies) != 1 or parts[0].shape:
        return ()
    ((src, dst),) = parts[0].copies
    if src.dtype != dst.dtype:
        return ()
    dtype = _unit_type(src, dst)
    source, target = plan_side(src, dtype), plan_side(dst, dtype)
    return () if source is None or target is None else (src, source, target)


def _unit_type(src: Side, dst: Side) -> Dtype | None:
    """Return the element type of a copy that changes none, None where it moves whole runs."""
    return None if src.run == dst.run and _are_alike(src.dims, dst.dims) else src.dtype


def _warn(device: DeviceContext, transfer: Transfer, source: Side, missing: int, extent: Extent) -> None:
    device.warn_unwritten(place_of(device, transfer), f"src {range_of(source)}", missing, extent.size)


def _copied(
    device: DeviceContext, transfer: Transfer, part: Part
) -> tuple[Array, Extent | None, Array, Extent | None] | None:
    """Return both sides of one copy, or of one that casts, as `_find` does; None for all else."""
    if (part.op != "copy" and part.op != "cast") or len(part.copies) != 1 or part.shape:
        return None
    ((src, dst),) = part.copies
    # In this order: of two sides that leave their memories the source is told of.
    same = src.dtype == dst.dtype
    data = find_side(device, transfer, src, "src", _unit_type(src, dst) if same else src.dtype)
    into = (
        None if data is None else find_side(device, transfer, dst, "dst", _unit_type(src, dst) if same else dst.dtype)
    )
    return None if data is None or into is None else (*data, *into)


def _are_alike(dims: Dims, other: Dims) -> bool:
    """Return whether the dimensions of two sides of as many bytes count the same runs."""
    return len(dims) == len(other) and (len(dims) < 2 or [count for _, count in dims] == [count for _, count in other])


def _work_of(device: DeviceContext, transfer: Transfer, part: Part) -> _Work:
    found = _copied(device, transfer, part)
    if found is not None:
        data, read, into, written = found
        ((src, dst),) = part.copies
        if src.dtype == dst.dtype:
            move = copy_move(data, into)
        else:
            move = cast_move(data, src.dtype, into, dst.dtype)
        return _Work(move, () if read is None else ((src, read),), written)
    check_operation(part.op, len(part.copies) if part.op in COMBINING else 1, part.shape)
    sources = [Bound(device, transfer, source, "src") for source, _ in part.copies]
    target = Bound(device, transfer, part.copies[0][1], "dst")
    work = _work(part, sources, target)
    reads = tuple([(source.side, extent) for source in sources if (extent := source.written()) is not None])
    return _Work(work, reads, target.written())


def bytes_of(device: DeviceContext, transfer: Transfer) -> Move:
    """Return the function that moves a transfer's bytes, and neither notes nor looks at what was written."""
    moves = [_work_of(device, transfer, part).move for part in transfer.parts]
    if len(moves) == 1:
        return moves[0]

    def move() -> None:
        for each in moves:
            each()

    return move


class Copy(NamedTuple):
    """A copy between a tile, which stays where it is, and a part of a tensor, whose bytes lie elsewhere each time."""

    tile: Array
    loads: bool
    tensor: int
    shape: tuple[int, ...]
    element: np.dtype[Any]
    offset: int
    strides: tuple[int, ...]

    def move(self, data: Bytes) -> Callable[[], object]:
        """Return what moves the bytes, for the bytes of the tensor."""
        part: Array = np.ndarray(self.shape, self.element, data, self.offset, self.strides)
        return partial(setitem, self.tile, ..., part) if self.loads else partial(setitem, part, ..., self.tile)


def copy_of(device: DeviceContext, transfer: Transfer) -> Copy | None:
    """Return what a transfer does that copies between a tile and a tensor, None for all others."""
    copied = _plan_copy(transfer.parts)
    if not copied:
        return None
    _, source, target = copied
    found, into = look_up(device, source, "src"), look_up(device, target, "dst")
    leaves, arrives = len(source) == 2, len(target) == 2  # a side in SBUF
    if found is None or into is None or found[0].shape != into[0].shape or leaves == arrives:
        return None
    tile, tensor = (found[0], target) if leaves else (into[0], source)
    start, _, offset, _, _, _, element, shape, strides = tensor
    return Copy(tile, tensor is source, start, shape, element, offset, strides)


def written_by(device: DeviceContext, transfer: Transfer) -> list[Extent]:
    """Return the extents of what a transfer writes, but for what is known to be written for good."""
    works = [_work_of(device, transfer, part) for part in transfer.parts]
    return [work.writes for work in works if work.writes is not None]


def _work(part: Part, sources: list[Bound], target: Bound) -> Move:
    first, side = sources[0].side, target.side
    if part.op in COMBINING:
        return combine_move(
            part.op,
            [(s.view(element_dtype(s.side.dtype)), s.side.dtype) for s in sources],
            target.view(element_dtype(side.dtype)),
            side.dtype,
            part.constant,
            part.scale,
        )
    if part.shape:
        raw = np.dtype(np.uint8)
        return transpose_move(sources[0].view(raw), target.view(raw), part.shape, part.element)
    if first.dtype == side.dtype:
        dtype = element_dtype(side.dtype)
        return copy_move(sources[0].view(dtype), target.view(dtype))
    return cast_move(
        sources[0].view(element_dtype(first.dtype)), first.dtype, target.view(element_dtype(side.dtype)), side.dtype
    )


def place_of(device: DeviceContext, transfer: Transfer) -> Place:
    """Return where in the program a transfer was triggered."""
    text = transfer.text if transfer.instruction is None else transfer.instruction.text
    source = device.cores[transfer.core].source_of(transfer.engine, transfer.pc)
    return Place(transfer.core, transfer.engine, transfer.pc, text, source)
