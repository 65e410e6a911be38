"""Bind a transfer to memory: views made and bounds checked at the trigger, bytes moved at completion."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

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
from emulator.dma.transfer import Dims, Limit, Part, Side, Transfer
from emulator.dma.views import Bytes, Geometry, sbuf_geometry, strided
from emulator.extents import Extent
from emulator.faults import FaultError, Place, fault_error
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.context import CoreContext, DeviceContext
    from emulator.memory import Allocation

__all__ = ["Bound", "bind", "place_of"]

Array = npt.NDArray[Any]
Move = Callable[[], None]
_SIDES = 1 << 14  # sides in SBUF that a core remembers


def bind(device: DeviceContext, transfer: Transfer) -> Move:
    """Return the function that moves a transfer's bytes, notes what was written and warns of sources never written.

    Raises FaultError of kind "oob" where a side leaves its variable or its memory, UnsupportedError for an operation
    that is not modelled.
    """
    if device.hbm.paged:
        return _bind_paged(device, transfer)
    if len(transfer.parts) == 1:
        return _bind_part(device, transfer, transfer.parts[0])
    moves = [_bind_part(device, transfer, part) for part in transfer.parts]

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


class _Form(NamedTuple):
    """What sides that differ in where they lie have in common: how far they reach, and how NumPy walks them."""

    low: int
    high: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(1 << 12)
def _form(dims: Dims, run: int, dtype: Dtype) -> _Form:
    element = element_dtype(dtype)
    low, high = Side("HBM", 0, 0, dims, run, dtype).span
    shape = (*[count for _, count in dims], run // element.itemsize)
    return _Form(low, high, element, shape, (*[step for step, _ in dims], element.itemsize))


def _find(device: DeviceContext, transfer: Transfer, side: Side, operand: str) -> tuple[Array, Extent | None] | None:
    """Return the elements of a side, and which of its bytes are written, as `Bound` does; None where that has to say.

    `Extent` is None where every byte is known to be written for good.
    """
    if side.space == "SBUF":
        if side.core >= len(device.cores):
            return None
        memory = device.cores[side.core].memory
        # Loops and tiles that share a place come back to it.
        place = side.address, side.dims, side.run, side.dtype
        found = memory.tiles.get(place)
        if found is None:
            bound = Bound(device, transfer, side, operand)
            found = bound.view(element_dtype(side.dtype)), bound.written()
            if bound.extent is not None:  # which the memory itself forgets
                if len(memory.tiles) >= _SIDES:
                    memory.tiles.clear()
                memory.tiles[place] = found
        return found
    limit = side.limit
    if limit is None:
        return None
    address = side.address
    form = _form(side.dims, side.run, side.dtype)
    start = limit.address
    if address + form.low < start or address + form.high > start + limit.nbytes:
        return None
    allocation = device.hbm.allocations.get(start)
    if allocation is None or allocation.nbytes < limit.nbytes:
        return None
    offset = address - start
    view: Array = np.ndarray(form.shape, form.dtype, _bytes_of(allocation, operand), offset, form.strides)
    return view, None if allocation.whole else allocation.extent(offset, side.dims, side.run)


def _bytes_of(allocation: Allocation, operand: str) -> Bytes:
    """Return the bytes of an allocation for a side that reads or writes them."""
    return allocation.writable if operand == "dst" and allocation.pages is not None else allocation.data


class Bound:
    """Hold one side in memory: the array that holds it, where it lies there, and which of its bytes are written."""

    __slots__ = ("_allocation", "_core", "extent", "geometry", "memory", "side")

    def __init__(self, device: DeviceContext, transfer: Transfer, side: Side, operand: str) -> None:
        self.side = side
        self.memory: Bytes
        self.extent: Extent | None = None
        self._core: CoreContext | None = None
        self._allocation: Allocation | None = None
        if side.space == "SBUF":
            if side.core >= len(device.cores):
                raise _out_of_bounds(transfer, side, operand, *side.span, f"cores 0 to {len(device.cores) - 1}")
            core = device.cores[side.core]
            self._core, self.memory = core, core.memory.bound("SBUF")
            # Loops come back to the same tiles.
            known, place = core.memory.sides, (side.address, side.dims, side.run)
            placed = known.get(place)
            if placed is None:
                placed = self._place(core, transfer, operand)
                if len(known) >= _SIDES:
                    known.clear()
                known[place] = placed
            self.geometry: Geometry
            self.geometry, self.extent = placed
            return
        low, high = side.span
        limit = side.limit
        if limit is not None and low >= limit.address and high <= limit.address + limit.nbytes:
            found = device.hbm.allocations.get(limit.address)
            if found is not None and found.nbytes >= limit.nbytes:
                self._lie_in(found, operand)
                return
        if limit is None:
            # An absolute address: the allocation it points into is all it may touch.
            found = device.hbm.find(side.address)
            if found is None:
                raise _out_of_bounds(transfer, side, operand, low, high, "no allocation holds the address")
            limit = Limit(found.name, found.address, found.nbytes)
            self.side = side = side._replace(limit=limit)
        if low < limit.address or high > limit.address + limit.nbytes:
            raise _out_of_bounds(
                transfer, side, operand, low, high, f"variable {limit.name!r} has {limit.nbytes} bytes"
            )
        self._lie_in(device.hbm.holding(low, high - low), operand)

    def _lie_in(self, found: Allocation, operand: str) -> None:
        """Note the allocation that holds the side."""
        side = self.side
        self.memory, self._allocation = _bytes_of(found, operand), found
        self.geometry = side.address - found.address, tuple([step for step, _ in side.dims])

    def _place(self, core: CoreContext, transfer: Transfer, operand: str) -> tuple[Geometry, Extent | None]:
        """Return where the side lies in SBUF, and the written plane under it where that is one region."""
        side = self.side
        partitions, width = self.memory.shape
        if len(side.dims) == 1 and side.dims[0][0] == SBUF_PARTITION_STRIDE:  # a row of partitions, the usual shape
            first, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
            count = side.dims[0][1]
            if 0 <= first <= partitions - count and byte + side.run <= width:
                place = ("SBUF", core.index, first, count, byte, side.run, None)
                return (first * width + byte, (width,)), core.memory.extent_of(place)

        def refuse(low: int, high: int, allowed: str) -> NoReturn:
            raise _out_of_bounds(transfer, side, operand, low, high, f"SBUF of core {side.core} has {allowed}")

        geometry = sbuf_geometry(side, width, partitions, refuse)
        # One run in each of a row of partitions: the core remembers which of them are written.
        offset, steps = geometry
        if steps and steps != (width,):
            return geometry, None
        first, byte = divmod(offset, width)
        region = Region("SBUF", core.index, first, side.dims[0][1] if steps else 1, byte, side.run)
        return geometry, core.memory.extent(region)

    def view(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the elements of the side."""
        return strided(self.memory, self.geometry, self.side, dtype)

    def written(self) -> Extent | None:
        """Return the written plane under the side; None where every byte is known to be written for good."""
        if self.extent is not None:
            return self.extent
        side, (offset, steps) = self.side, self.geometry
        dims = tuple([(step, count) for step, (_, count) in zip(steps, side.dims, strict=True)])
        if self._core is not None:
            return self._core.memory.strided_extent(offset, dims, side.run)
        found = self._allocation
        return None if found is None or found.whole else found.extent(offset, dims, side.run)


def _bind_part(device: DeviceContext, transfer: Transfer, part: Part) -> Move:
    if (part.op == "copy" or part.op == "cast") and len(part.copies) == 1 and not part.shape:
        ((src, dst),) = part.copies
        # In this order: of two sides that leave their memories the source is told of.
        data = _find(device, transfer, src, "src")
        into = None if data is None else _find(device, transfer, dst, "dst")
        if data is not None and into is not None:
            return _copy(device, transfer, src, dst, *data, *into)
    check_operation(part.op, len(part.copies) if part.op in COMBINING else 1, part.shape)
    sources = [Bound(device, transfer, source, "src") for source, _ in part.copies]
    target = Bound(device, transfer, part.copies[0][1], "dst")
    work = _work(part, sources, target)
    reads = [(source, extent) for source in sources if (extent := source.written()) is not None]
    written = target.written()

    def move() -> None:
        for source, extent in reads:
            if not extent.full and device.checking and (missing := extent.missing()):
                device.warn_unwritten(place_of(device, transfer), f"src {_range(source.side)}", missing, extent.size)
        work()
        if written is not None and not written.full:
            written.mark()

    return move


def _copy(
    device: DeviceContext, transfer: Transfer, source: Side, target: Side, data: Array, read: Extent | None,
    into: Array, written: Extent | None,
) -> Move:  # fmt: skip
    """Return the move of one copy, or of one that casts."""
    work: Move | None = None
    if source.dtype != target.dtype:
        work = cast_move(data, source.dtype, into, target.dtype)
    elif data.shape != into.shape:
        work = copy_move(data, into)

    def move() -> None:
        if read is not None and not read.full and device.checking and (missing := read.missing()):
            device.warn_unwritten(place_of(device, transfer), f"src {_range(source)}", missing, read.size)
        if work is None:
            into[...] = data
        else:
            work()
        if written is not None and not written.full:
            written.mark()

    return move


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


def _range(side: Side) -> str:
    """Return the range a side covers, by variable where that is known."""
    low, high = side.span
    if side.limit is not None:
        return f"{side.limit.name!r}[{low - side.limit.address:#x}:{high - side.limit.address:#x}]"
    return f"{side.space} {low:#x} to {high - 1:#x}"


def _out_of_bounds(transfer: Transfer, side: Side, operand: str, low: int, high: int, allowed: str) -> FaultError:
    """Return the fault of a side that leaves what it may touch."""
    name = side.limit.name if side.limit is not None else f"{side.space} of core {side.core}"
    start = side.limit.address if side.limit is not None else 0
    message = (
        f"DMA on {transfer.queue} {'reads' if operand == 'src' else 'writes'} {name!r} out of bounds: bytes "
        f"{low - start:#x} to {high - start - 1:#x}"
    )
    got = f"{side.rows} runs of {side.run} bytes from {side.address - start:#x}"
    if side.chosen is not None:
        value, row, step = side.chosen
        got = f"index {value} in row {row}: {got}"
        if side.limit is not None and step > 0:
            allowed += f": indices 0 to {max(0, (side.limit.nbytes - side.run) // step)}"
    return fault_error(
        "oob",
        message,
        operand=operand,
        space=side.space,
        address=(low, high),
        expected=allowed,
        got=got,
        tensor=None if side.limit is None else side.limit.name,
    )
