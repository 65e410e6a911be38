"""Undefined bytes and where they came from: planes beside the memories, made only once something is undefined.

A byte is undefined if nothing wrote it, or if it was computed from an undefined one. For the latter the plane holds the
number of the read where the undefined byte entered; 0 is defined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.buffers import blank
from emulator.core import Core
from emulator.device import Device
from emulator.device_memory import Allocation
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side
from emulator.dma.views import sbuf_geometry
from emulator.renewal import columns_of_runs, fill_columns
from formats.regions import Region, RegionParts

__all__ = [
    "NUMBERS",
    "REPEATED",
    "WORDS",
    "Marks",
    "Planes",
    "box_of_missing",
    "lanes_of",
    "of_elements",
    "unwritten_in",
    "walk_of",
]

Marks = npt.NDArray[np.int16]
_MARK = np.dtype(np.int16)
_BLOCK = 1 << 11  # columns whose marks take a page of a partition
_PAGE = _BLOCK * _MARK.itemsize
_MOST = 4  # planes of one shape that wait for another run, those of two cores
_waiting: dict[tuple[int, ...], deque[Marks]] = {}
# By bytes of an element: the number that holds a mark for each of them; by bytes of that: one mark in all its places.
NUMBERS: dict[int, np.dtype[Any]] = {1: _MARK, 2: np.dtype(np.int32), 4: np.dtype(np.int64)}
WORDS: dict[int, np.dtype[Any]] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
REPEATED = {2: 1, 4: 0x0001_0001, 8: 0x0001_0001_0001_0001}


class Planes:
    """The marks of every memory of a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._chip: dict[tuple[int, str], Marks] = {}
        self._blocks: dict[tuple[int, str], int] = {}  # which blocks of columns ever had a mark, as bits
        self._hbm: dict[int, Marks] = {}

    @property
    def are_blank(self) -> bool:
        """Return whether nothing in any memory ever was computed from undefined bytes."""
        return not self._chip and not self._hbm

    def may_have(self, core: int, region: RegionParts) -> bool:
        """Return whether anything near a region of a core's memory ever was computed from undefined bytes."""
        space, _, _, _, low, nbytes, _ = region
        return bool(self._blocks.get((core, space), 0) & _blocks(low, low + nbytes))

    def may_have_any(self, core: int, places: Iterable[RegionParts]) -> bool:
        """Return whether `may_have` is true of any of some regions."""
        return any(self.may_have(core, place) for place in places)

    def of_output(self, allocation: Allocation) -> Marks | None:
        """Return the marks of an allocation, None where all is as it was written."""
        return self._hbm.get(allocation.address)

    # --- operands of words: one mark per element, shape (partitions, elements) ---------------------------------------

    @staticmethod
    def is_missing(operand: Operand) -> bool:
        """Return whether nothing ever wrote some of the bytes of an operand."""
        return bool(operand.regions) and any(extent.missing() for extent in operand.extents)

    def read(self, core: Core, operand: Operand, number: int) -> Marks | None:
        """Return the marks of an operand; what nothing ever wrote gets `number`. None where all is defined."""
        if not operand.regions:
            return None
        space = operand.regions[0].space
        marks: Marks | None = None
        view = operand.view
        if number and self.is_missing(operand):
            core.memory.notes.settle()
            marks = np.multiply(_unwritten(core, space, view), np.int16(number), dtype=_MARK)
        plane = self._chip.get((core.index, space))
        if plane is not None and self._blocks[core.index, space] & _blocks_of(operand.regions):
            derived = _largest(core, space, plane, view)
            if derived is not None:
                marks = derived if marks is None else np.maximum(marks, derived)
        if marks is None:
            return None
        marks = marks.reshape(view.shape[0], -1)
        lanes = lanes_of(core, operand)
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
        lanes: Any = lanes_of(core, operand)
        if lanes is None:
            lanes = ...
        blocks = _blocks_of(operand.regions)
        if marks is None or none:
            if plane is not None and self._blocks[core.index, space] & blocks:
                _of_elements(core, space, plane, operand.view)[lanes] = 0
            return
        plane = self._marked(core, space, blocks)
        beside = _of_elements(core, space, plane, operand.view)
        shaped = marks.reshape(operand.view.shape)
        if beside.ndim == shaped.ndim:
            # the mark in each of the bytes of an element, which `beside` has as one number
            beside[lanes] = (shaped.astype(beside.dtype) * REPEATED[beside.itemsize])[lanes]
        else:
            beside[lanes] = shaped[..., None][lanes]

    def fill(self, core: Core, operand: Operand, number: int) -> None:
        """Give every element of an operand one number above 0."""
        if not operand.regions:
            return
        space, lanes = operand.regions[0].space, lanes_of(core, operand)
        plane = self._marked(core, space, _blocks_of(operand.regions))
        beside = _of_elements(core, space, plane, operand.view)
        whole = number * REPEATED[beside.itemsize]
        if lanes is None:
            beside.fill(whole)
        else:
            beside[lanes] = whole

    def _marked(self, core: Core, space: str, blocks: int) -> Marks:
        """Return the marks of a memory, some blocks of which are about to get some."""
        key = core.index, space
        plane = self._chip.get(key)
        if plane is None:
            plane = self._chip[key] = _unmarked(core.memory.bound(space).shape)
            self._blocks[key] = 0
        self._blocks[key] |= blocks
        return plane

    def release(self) -> None:
        """Leave the marks of the cores' memories to the next run, clean; nothing may be asked of this one then."""
        for key, plane in self._chip.items():
            columns = [(place * _PAGE, (place + 1) * _PAGE) for place in _set_bits(self._blocks[key])]
            fill_columns(plane, columns, 0)
            waiting = _waiting.setdefault(plane.shape, deque(maxlen=_MOST))
            waiting.append(plane)
        self._chip.clear()
        self._blocks.clear()

    # --- sides of transfers: one mark per byte, flat -----------------------------------------------------------------

    def is_defined(self, side: Side) -> bool:
        """Return whether every byte of a side is known to be defined, which takes no look at the bytes."""
        if side.space == "SBUF":
            core = self._device.cores[side.core]
            if (side.core, "SBUF") in self._chip:
                return False
            regions = side_regions(side, self._device.arch.sbuf_bytes.whole)
            return all(self._is_known(core, region) for region in regions)
        allocation = self._allocation(side)
        return allocation.whole and allocation.address not in self._hbm

    def read_side(self, side: Side, number: int) -> Marks | None:
        """Return the marks of a side in the order of its walk; with `number` 0 what nothing wrote has none."""
        marks: Marks | None = None
        if number:
            written = self._written(side)
            if not written.all():
                marks = np.where(written, np.int16(0), np.int16(number)).astype(_MARK).reshape(-1)
        plane = self._marks(side, False)
        if plane is not None and self._may_have(side):
            derived = walk_of(plane, side, self._offset(side)).reshape(-1)
            if derived.any():
                marks = derived if marks is None else np.maximum(marks, derived)
        return marks

    def write_side(self, side: Side, marks: Marks | None) -> None:
        """Give a side marks, None for "all defined"."""
        some = marks is not None and bool(marks.any())
        plane = self._marks(side, some)
        if plane is not None and (some or self._may_have(side)):
            view = walk_of(plane, side, self._offset(side))
            view[...] = marks.reshape(view.shape) if marks is not None and some else 0

    def mark(self, allocation: Allocation, which: npt.NDArray[np.bool_], number: int) -> None:
        """Give bytes of an allocation a number."""
        plane = self._hbm.setdefault(allocation.address, np.zeros(allocation.nbytes, _MARK))
        plane[: which.size][which] = number

    def values(self, side: Side) -> npt.NDArray[np.uint8]:
        """Return the bytes of a side in the order of its walk."""
        on_chip = side.space == "SBUF"
        data = self._device.cores[side.core].memory.bound("SBUF") if on_chip else self._allocation(side).data
        return np.ascontiguousarray(walk_of(data, side, self._offset(side))).reshape(-1)

    def _allocation(self, side: Side) -> Allocation:
        found = self._device.hbm.find(side.span[0])
        assert found is not None, "the transfer was bound, so its bytes exist"
        return found

    def _offset(self, side: Side) -> tuple[int, tuple[int, ...]]:
        """Return offset and strides of a side in the array of its memory, in bytes of that memory."""
        if side.space == "SBUF":
            memory = self._device.cores[side.core].memory.bound("SBUF")
            return sbuf_geometry(side, memory.shape[1], memory.shape[0], lambda low, high, allowed: None)
        return side.address - self._allocation(side).address, tuple(step for step, _ in side.dims)

    def _is_known(self, core: Core, region: Region) -> bool:
        """Return whether a region of a core's memory is known to be written."""
        return core.memory.known_written(region)

    def _written(self, side: Side) -> npt.NDArray[np.bool_]:
        """Return which bytes of a side are written, as it walks through them."""
        if side.space != "SBUF":
            plane = self._allocation(side).written
        else:
            memory = self._device.cores[side.core].memory
            memory.notes.settle()
            plane = memory.plane("SBUF")
        return walk_of(plane, side, self._offset(side))

    def _may_have(self, side: Side) -> bool:
        """Return whether any of the columns of a side may have a mark: a look would ask the host for their pages."""
        return side.space != "SBUF" or bool(self._blocks[side.core, "SBUF"] & self._side_blocks(side))

    def _side_blocks(self, side: Side) -> int:
        width = self._device.cores[side.core].memory.bound("SBUF").shape[1]
        offset, steps = self._offset(side)
        dims = tuple((step, count) for step, (_, count) in zip(steps, side.dims, strict=True))
        low, high = columns_of_runs(offset, dims, side.run, width) or (0, width)
        return _blocks(low, high)

    def _marks(self, side: Side, make: bool) -> Marks | None:
        if side.space == "SBUF":
            if make:
                return self._marked(self._device.cores[side.core], "SBUF", self._side_blocks(side))
            return self._chip.get((side.core, "SBUF"))
        allocation = self._allocation(side)
        found = self._hbm.get(allocation.address)
        if found is None and make:
            found = self._hbm[allocation.address] = np.zeros(allocation.nbytes, _MARK)
        return found


def _unmarked(shape: tuple[int, ...]) -> Marks:
    """Return marks of a memory; pages that the host gives cost more than all that is done with them."""
    try:
        return _waiting[shape].pop()
    except (KeyError, IndexError):  # nobody has left any: nearly all pages stay untouched, and are never given
        return blank(prod(shape) * _MARK.itemsize).view(_MARK).reshape(shape)


def _set_bits(number: int) -> list[int]:
    return [place for place in range(number.bit_length()) if number >> place & 1]


def _blocks(low: int, high: int) -> int:
    """Return the blocks that columns `low` to `high` - 1 lie in, as bits."""
    return (1 << -(-high // _BLOCK)) - (1 << low // _BLOCK)


def _blocks_of(regions: Iterable[Region]) -> int:
    found = 0
    for region in regions:
        found |= _blocks(region.byte, region.byte + region.nbytes)
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
        memory = device.cores[region.core].memory
        memory.notes.settle()
        plane = memory.plane(region.space)[region.first : region.behind, region.byte : region.end]
    missing = ~plane
    return box_of_missing(region, missing, np.arange(missing.shape[0]))


def box_of_missing(
    region: Region, missing: npt.NDArray[np.bool_], which: npt.NDArray[np.intp]
) -> tuple[Region, int] | None:
    """Return the box around missing bytes of a region, and how many they are; partition p has row `which[p]` of them.

    What the pattern of the region leaves out is not missing.
    """
    if region.pattern is not None:
        touched = np.zeros(region.nbytes, np.bool_)
        steps, run = region.pattern
        np.ndarray((*(count for _, count in steps), run), np.bool_, touched, 0, (*(step for step, _ in steps), 1))[
            ...
        ] = True
        missing = missing & touched
    counts = missing.sum(1)[which]
    lanes, columns = counts.nonzero()[0], np.logical_or.reduce(missing, 0).nonzero()[0]
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
    return box, int(counts.sum())


def lanes_of(core: Core, operand: Operand) -> npt.NDArray[np.bool_] | None:
    """Return which partitions of an operand its word touches, None for all of them."""
    partitions, regions = operand.view.shape[0], operand.regions
    if regions[0].partitions == partitions or sum(region.partitions for region in regions) == partitions:
        return None
    memory = core.memory.bound(regions[0].space)
    first = (operand.view.ctypes.data - memory.ctypes.data) // memory.shape[1]
    lanes = np.zeros(partitions, np.bool_)
    for region in regions:
        start = region.first - first
        lanes[start : start + region.partitions] = True
    return lanes


def _beside(core: Core, space: str, plane: npt.NDArray[Any], view: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the part of a plane that lies beside a view of memory, with the bytes of an element as last axis."""
    offset = view.ctypes.data - core.memory.bound(space).ctypes.data
    size = plane.itemsize
    return np.ndarray(
        (*view.shape, view.itemsize),
        plane.dtype,
        plane,
        offset * size,
        (*(stride * size for stride in view.strides), size),
    )


def _of_elements(core: Core, space: str, plane: Marks, view: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the marks beside a view, those of an element's bytes as one number; as `_beside` where none is so long."""
    kind = NUMBERS.get(view.itemsize)
    if kind is None:
        return _beside(core, space, plane, view)
    offset = view.ctypes.data - core.memory.bound(space).ctypes.data
    strides = tuple(stride * plane.itemsize for stride in view.strides)
    return np.ndarray(view.shape, kind, plane, offset * plane.itemsize, strides)


def _unwritten(core: Core, space: str, view: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which elements of a view of memory have a byte that nothing wrote."""
    plane, kind = core.memory.plane(space), WORDS.get(view.itemsize)
    if kind is None:
        return np.asarray(~_beside(core, space, plane, view).all(-1), np.bool_)
    offset = view.ctypes.data - core.memory.bound(space).ctypes.data
    written = np.ndarray(view.shape, kind, plane, offset, view.strides)  # of an element's bytes, as one number
    return np.asarray(written != kind.type(int.from_bytes(b"\1" * view.itemsize, "little")), np.bool_)


def _largest(core: Core, space: str, plane: Marks, view: npt.NDArray[Any]) -> Marks | None:
    """Return the largest mark of each element's bytes, None where there is none at all."""
    numbers = _of_elements(core, space, plane, view)
    if not numbers.any():
        return None
    if numbers.ndim > view.ndim:
        found: Marks = numbers.max(-1)
        return found
    if view.itemsize == 1:
        return numbers.copy()
    return of_elements(np.ascontiguousarray(numbers).view(_MARK), view.itemsize).reshape(view.shape)


def of_elements(marks: Marks, size: int) -> Marks:
    """Return the largest of the marks of each element's bytes, flat."""
    # NumPy folds an axis of four slowly, and four arrays of the same size quickly.
    bytewise = marks.reshape(-1, size)
    found = bytewise[:, 0]
    for byte in range(1, size):
        found = np.maximum(found, bytewise[:, byte])
    return found


def walk_of(plane: npt.NDArray[Any], side: Side, geometry: tuple[int, tuple[int, ...]]) -> npt.NDArray[Any]:
    """Return the walk of a side through a plane; the geometry is its offset and its strides there, in bytes."""
    offset, steps = geometry
    size = plane.itemsize
    shape = (*(count for _, count in side.dims), side.run)
    assert prod(shape), "a side holds bytes"
    return np.ndarray(shape, plane.dtype, plane, offset * size, (*(step * size for step in steps), size))
