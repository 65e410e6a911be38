"""Undefined bytes and where they came from: planes beside the memories, made only once something is undefined.

A byte is undefined if nothing wrote it, or if it was computed from an undefined one. For the latter the plane holds the
number of the read where the undefined byte entered; 0 is defined.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.core import Core
from emulator.device import Device
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side
from emulator.dma.views import sbuf_geometry
from emulator.memory import Allocation
from formats.regions import Region

__all__ = ["Marks", "Planes", "unwritten_in"]

Marks = npt.NDArray[np.int16]
_MARK = np.dtype(np.int16)


class Planes:
    """The marks of every memory of a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._chip: dict[tuple[int, str], Marks] = {}
        self._hbm: dict[int, Marks] = {}

    @property
    def any_touched(self) -> bool:
        """Return whether anything on any core's memory ever was computed from undefined bytes."""
        return bool(self._chip)

    def touched(self, core: int, space: str) -> bool:
        """Return whether anything on a core's memory ever was computed from undefined bytes."""
        return (core, space) in self._chip

    def of_output(self, allocation: Allocation) -> Marks | None:
        """Return the marks of an allocation, None where all is as it was written."""
        return self._hbm.get(allocation.address)

    # --- operands of words: one mark per element, shape (partitions, elements) ---------------------------------------

    def read(self, core: Core, operand: Operand, number: int) -> Marks | None:
        """Return the marks of an operand; what nothing ever wrote gets `number`. None where all is defined."""
        if not operand.regions:
            return None
        space = operand.regions[0].space
        marks: Marks | None = None
        view = operand.view
        if any(extent.missing() for extent in operand.extents):
            unwritten = ~_beside(core, space, core.memory.written(space), view)
            marks = np.where(unwritten.any(-1), np.int16(number), np.int16(0)).astype(_MARK)
        plane = self._chip.get((core.index, space))
        if plane is not None:
            derived = _beside(core, space, plane, view).max(-1)
            if derived.any():
                marks = derived if marks is None else np.maximum(marks, derived)
        if marks is None:
            return None
        marks = marks.reshape(view.shape[0], -1)
        lanes = _lanes(core, operand)
        return marks if lanes is None else np.where(lanes[:, None], marks, np.int16(0))

    def write(self, core: Core, operand: Operand, marks: Marks | None) -> None:
        """Give an operand marks, None for "all defined"."""
        if not operand.regions:
            return
        space = operand.regions[0].space
        plane = self._chip.get((core.index, space))
        none = marks is None or not marks.any()
        if none and plane is None:
            return
        lanes: Any = _lanes(core, operand)
        if lanes is None:
            lanes = ...
        if marks is None or none:
            if plane is not None:
                _beside(core, space, plane, operand.view)[lanes] = 0
            return
        if plane is None:
            plane = self._chip[core.index, space] = np.zeros(core.memory.array(space).shape, _MARK)
        _beside(core, space, plane, operand.view)[lanes] = marks.reshape(operand.view.shape)[..., None][lanes]

    # --- sides of transfers: one mark per byte, flat -----------------------------------------------------------------

    def is_defined(self, side: Side) -> bool:
        """Return whether every byte of a side is known to be defined, which takes no look at the bytes."""
        if side.space == "SBUF":
            core = self._device.cores[side.core]
            if (side.core, "SBUF") in self._chip:
                return False
            regions = side_regions(side, self._device.arch.sbuf_bytes.whole)
            return all(core.memory.known_written(region) for region in regions)
        allocation = self._allocation(side)
        return allocation.whole and allocation.address not in self._hbm

    def read_side(self, side: Side, number: int) -> Marks | None:
        """Return the marks of a side in the order of its walk."""
        written = _walk(self._written(side), side, self._offset(side))
        marks: Marks | None = None
        if not written.all():
            marks = np.where(written, np.int16(0), np.int16(number)).astype(_MARK).reshape(-1)
        plane = self._marks(side, False)
        if plane is not None:
            derived = _walk(plane, side, self._offset(side)).reshape(-1)
            if derived.any():
                marks = derived if marks is None else np.maximum(marks, derived)
        return marks

    def write_side(self, side: Side, marks: Marks | None) -> None:
        """Give a side marks, None for "all defined"."""
        some = marks is not None and bool(marks.any())
        plane = self._marks(side, some)
        if plane is not None:
            view = _walk(plane, side, self._offset(side))
            view[...] = marks.reshape(view.shape) if marks is not None and some else 0

    def mark(self, allocation: Allocation, which: npt.NDArray[np.bool_], number: int) -> None:
        """Give bytes of an allocation a number."""
        plane = self._hbm.setdefault(allocation.address, np.zeros(allocation.nbytes, _MARK))
        plane[: which.size][which] = number

    def values(self, side: Side) -> npt.NDArray[np.uint8]:
        """Return the bytes of a side in the order of its walk."""
        data = self._device.cores[side.core].sbuf if side.space == "SBUF" else self._allocation(side).data
        return np.ascontiguousarray(_walk(data, side, self._offset(side))).reshape(-1)

    def _allocation(self, side: Side) -> Allocation:
        found = self._device.hbm.find(side.span[0])
        assert found is not None, "the transfer was bound, so its bytes exist"
        return found

    def _offset(self, side: Side) -> tuple[int, tuple[int, ...]]:
        """Return offset and strides of a side in the array of its memory, in bytes of that memory."""
        if side.space == "SBUF":
            memory = self._device.cores[side.core].sbuf
            return sbuf_geometry(side, memory.shape[1], memory.shape[0], lambda low, high, allowed: None)
        return side.address - self._allocation(side).address, tuple(step for step, _ in side.dims)

    def _written(self, side: Side) -> npt.NDArray[np.bool_]:
        return self._device.cores[side.core].sbuf_written if side.space == "SBUF" else self._allocation(side).written

    def _marks(self, side: Side, make: bool) -> Marks | None:
        if side.space == "SBUF":
            found = self._chip.get((side.core, "SBUF"))
            if found is None and make:
                found = self._chip[side.core, "SBUF"] = np.zeros(self._device.cores[side.core].sbuf.shape, _MARK)
            return found
        allocation = self._allocation(side)
        found = self._hbm.get(allocation.address)
        if found is None and make:
            found = self._hbm[allocation.address] = np.zeros(allocation.nbytes, _MARK)
        return found


def unwritten_in(device: Device, region: Region) -> tuple[Region, int] | None:
    """Return the box around the bytes of a region that nothing wrote, and how many they are; None where all were."""
    if region.space == "HBM":
        allocation = device.hbm.find(region.byte)
        if allocation is None or allocation.whole:
            return None
        start = region.byte - allocation.address
        plane = allocation.written[start : start + region.nbytes][None, :]
    else:
        rows = device.cores[region.core].memory.written(region.space)
        plane = rows[region.first : region.behind, region.byte : region.end]
    missing = ~plane
    if region.pattern is not None:
        touched = np.zeros(region.nbytes, np.bool_)
        steps, run = region.pattern
        np.ndarray((*(count for _, count in steps), run), np.bool_, touched, 0, (*(step for step, _ in steps), 1))[
            ...
        ] = True
        missing &= touched
    lanes, columns = np.flatnonzero(missing.any(1)), np.flatnonzero(missing.any(0))
    if not lanes.size:
        return None
    first, low = int(lanes[0]), int(columns[0])
    box = Region(
        region.space,
        region.core,
        region.first + first,
        int(lanes[-1]) + 1 - first,
        region.byte + low,
        int(columns[-1]) + 1 - low,
    )
    return box, int(np.count_nonzero(missing))


def _lanes(core: Core, operand: Operand) -> npt.NDArray[np.bool_] | None:
    """Return which partitions of an operand its word touches, None for all of them."""
    partitions, regions = operand.view.shape[0], operand.regions
    if sum(region.partitions for region in regions) == partitions:
        return None
    memory = core.memory.array(regions[0].space)
    first = (operand.view.ctypes.data - memory.ctypes.data) // memory.shape[1]
    lanes = np.zeros(partitions, np.bool_)
    for region in regions:
        start = region.first - first
        lanes[start : start + region.partitions] = True
    return lanes


def _beside(core: Core, space: str, plane: npt.NDArray[Any], view: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the part of a plane that lies beside a view of memory, with the bytes of an element as last axis."""
    offset = view.ctypes.data - core.memory.array(space).ctypes.data
    size = plane.itemsize
    return np.ndarray(
        (*view.shape, view.itemsize),
        plane.dtype,
        plane,
        offset * size,
        (*(stride * size for stride in view.strides), size),
    )


def _walk(plane: npt.NDArray[Any], side: Side, geometry: tuple[int, tuple[int, ...]]) -> npt.NDArray[Any]:
    offset, steps = geometry
    size = plane.itemsize
    shape = (*(count for _, count in side.dims), side.run)
    assert prod(shape), "a side holds bytes"
    return np.ndarray(shape, plane.dtype, plane, offset * size, (*(step * size for step in steps), size))
