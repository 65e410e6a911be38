"""The sides of a transfer in memory: the arrays that hold them, which of their bytes are written, bounds checked."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from emulator.dma.moves import element_dtype, unit_of
from emulator.dma.transfer import Dims, Limit, Side, Transfer
from emulator.dma.views import Bytes, Geometry, sbuf_geometry, strided
from emulator.extents import Extent
from emulator.faults import FaultError, fault_error
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.context import CoreContext, DeviceContext
    from emulator.device_memory import Allocation

__all__ = ["Bound", "Planned", "bytes_of_allocation", "find_side", "look_up", "plan_side", "range_of"]

Array = npt.NDArray[Any]
# In SBUF a core and a place there; in device memory an allocation, an offset in it, and how NumPy walks it.
Planned = tuple[Any, ...]
_SIDES = 1 << 14  # sides in SBUF that a core remembers


class _Form(NamedTuple):
    """What sides that differ in where they lie have in common: how far they reach, and how NumPy walks them."""

    low: int
    high: int
    nbytes: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@lru_cache(1 << 12)
def _form(dims: Dims, run: int, dtype: Dtype | None) -> _Form:
    """Return the form of a side as elements of a type, or as whole runs, which NumPy copies faster."""
    side = Side("HBM", 0, 0, dims, run, Dtype.UNKNOWN)
    low, high = side.span
    counts, steps = tuple([count for _, count in dims]), tuple([step for step, _ in dims])
    if dtype is None:
        return _Form(low, high, side.nbytes, unit_of(run), counts, steps)
    element = element_dtype(dtype)
    size = element.itemsize
    return _Form(low, high, side.nbytes, element, (*counts, run // size), (*steps, size))


def plan_side(side: Side, dtype: Dtype | None) -> Planned | None:
    """Return what it takes to look a side up on any device, for `look_up`; None where `Bound` has to say.

    Without an element type its elements are whole runs.
    """
    space, core, address, dims, run, _, limit, *_ = side
    if space == "SBUF":
        return core, (address, dims, run, dtype)
    if limit is None:
        return None
    _, start, room = limit
    offset = address - start
    low, high, nbytes, element, shape, strides = _form(dims, run, dtype)
    if offset + low < 0 or offset + high > room:
        return None
    return start, room, offset, dims, run, nbytes, element, shape, strides


def look_up(device: DeviceContext, planned: Planned, operand: str) -> tuple[Array, Extent | None] | None:
    """Return the elements of a side, and which of its bytes are written, as `Bound` does; None where that has to say.

    `Extent` is None where every byte is known to be written for good.
    """
    if len(planned) == 2:
        core, place = planned
        # Loops and tiles that share a place come back to it.
        return device.cores[core].memory.tiles.get(place) if core < len(device.cores) else None
    start, room, offset, dims, run, nbytes, element, shape, strides = planned
    allocation = device.hbm.allocations.get(start)
    if allocation is None or allocation.nbytes < room:
        return None
    data = allocation.writable if allocation.pages is not None and operand == "dst" else allocation.laid
    view: Array = np.ndarray(shape, element, data, offset, strides)
    return view, None if allocation.whole else allocation.extent(offset, dims, run, nbytes)


def find_side(
    device: DeviceContext, transfer: Transfer, side: Side, operand: str, dtype: Dtype | None
) -> tuple[Array, Extent | None] | None:
    """Return what `look_up` does, also of a place in SBUF that is asked for for the first time."""
    planned = plan_side(side, dtype)
    found = None if planned is None else look_up(device, planned, operand)
    if found is None and side.space == "SBUF" and side.core < len(device.cores):
        tiles = device.cores[side.core].memory.tiles
        bound = Bound(device, transfer, side, operand)
        elements = bound.view(unit_of(side.run) if dtype is None else element_dtype(dtype))
        found = elements[..., 0] if dtype is None else elements, bound.written()
        if len(tiles) >= _SIDES:
            tiles.clear()
        tiles[side.address, side.dims, side.run, dtype] = found
    return found


def bytes_of_allocation(allocation: Allocation, operand: str) -> Bytes:
    """Return the bytes of an allocation for a side that reads or writes them."""
    return allocation.writable if operand == "dst" and allocation.pages is not None else allocation.laid


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
            self._core, self.memory = core, core.memory.laid("SBUF")
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
        self.memory, self._allocation = bytes_of_allocation(found, operand), found
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


def range_of(side: Side) -> str:
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
