"""Bytes, written planes and latched tiles as they were before something overwrote them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from emulator.device_memory import Allocation
from emulator.dtypes import Array
from emulator.engines.pe_state import Latch
from emulator.memory import FRESH, ChipMemory
from formats import isa
from formats.isa import Fp32Pass

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.device import Device
    from formats.regions import Region

__all__ = ["ChipBytes", "DeviceBytes", "Pool", "Saved", "Tile", "save_region", "save_tile"]

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]
# A pattern that touches less of its range than this share is saved element by element.
_SPARSE = 4
_LARGE = 1 << 16  # bytes from which a buffer is worth keeping


class Pool:
    """Large buffers that records gave back: fresh memory costs more than the copy into it."""

    def __init__(self, limit: int) -> None:
        self._free: dict[int, list[Bytes]] = {}
        self._limit, self._held = limit, 0

    def copy(self, array: Bytes) -> Bytes:
        """Return a copy of an array."""
        free = self._free.get(array.size)
        if not free:
            return array.copy()
        buffer = free.pop()
        self._held -= buffer.size
        kept = buffer.reshape(array.shape)
        np.copyto(kept, array)
        return kept

    def give(self, array: Bytes) -> None:
        """Take back a copy that nobody uses any more."""
        if array.size >= _LARGE and self._held + array.size <= self._limit:
            self._held += array.size
            self._free.setdefault(array.size, []).append(array.reshape(-1))


class Saved(Protocol):
    """Something that can be put back."""

    nbytes: int

    def restore(self) -> None:
        """Put it back."""
        ...


class ChipBytes:
    """Part of SBUF or PSUM; where nothing was written before there is nothing to keep."""

    __slots__ = ("_array", "_data", "_memory", "_plane", "_written", "nbytes")

    def __init__(self, memory: ChipMemory, region: Region, pool: Pool) -> None:
        array, plane = memory.array(region.space), memory.written(region.space)
        offset, shape, strides = (region if _sparse(region) else region._replace(pattern=None)).walk(array.shape[1])
        self._array: Bytes = np.ndarray(shape, np.uint8, array, offset, strides)
        self._plane: Plane = np.ndarray(shape, np.bool_, plane, offset, strides)
        self._memory = memory
        self._written: Plane | bool
        if region.pattern is None and memory.known_written(region):
            self._written = True
        else:
            self._written = _summary(self._plane)
        # What nothing has written is FRESH, but for regions that the file sets apart.
        self._data = pool.copy(self._array) if self._written is not False or memory.set_apart else None
        self.nbytes = _size(self._data, self._written)

    def release(self, pool: Pool) -> None:
        """Give the buffer back; `restore` cannot be called any more."""
        if self._data is not None:
            pool.give(self._data)

    @property
    def memory(self) -> ChipMemory | None:
        """Return the memory whose written planes `restore` changes, None where it changes none."""
        return None if self._written is True else self._memory

    def restore(self) -> None:
        """Put bytes and plane back."""
        if self._data is None:
            self._array.fill(FRESH)
        else:
            np.copyto(self._array, self._data)
        if self._written is not True:
            self._memory.notes.settle()
            self._plane[...] = self._written


class DeviceBytes:
    """A range of one allocation in HBM, or all of it; of a sparse pattern only what it touches."""

    __slots__ = ("_allocation", "_data", "_offset", "_pattern", "_size", "_whole", "_written", "nbytes")

    def __init__(self, allocation: Allocation, offset: int, size: int, pattern: Any = None) -> None:
        self._allocation, self._offset, self._size, self._pattern = allocation, offset, size, pattern
        self._whole = allocation.whole
        self._data: Bytes | None = None
        self._written: Plane | bool = False
        if allocation.whole:
            self._written = True
        elif allocation.touched:
            self._written = _summary(self._part(allocation.written))
        if allocation.touched and self._written is not False:
            self._data = self._part(allocation.data).copy()
        self.nbytes = _size(self._data, self._written)

    def _part(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._pattern is None:
            return array[self._offset : self._offset + self._size]
        dims, run = self._pattern
        shape, strides = (*(count for _, count in dims), run), (*(step for step, _ in dims), 1)
        return np.ndarray(shape, array.dtype, array, self._offset, strides)

    def restore(self) -> None:
        """Put bytes and plane back."""
        allocation = self._allocation
        if allocation.touched:
            if self._data is None:
                self._part(allocation.writable)[...] = self._part(allocation.fresh()) if allocation.set_apart else FRESH
            else:
                np.copyto(self._part(allocation.writable), self._data)
        if allocation.whole and not self._whole:
            allocation.doubt()
        if not self._whole:
            self._part(allocation.written)[...] = self._written


class Tile:
    """One array of a Tensor engine's latch, with what else the latch knows."""

    __slots__ = ("_array", "_data", "_facts", "_latch", "nbytes")

    def __init__(self, latch: Latch, array: Array) -> None:
        self._latch, self._array, self._data = latch, array, array.copy()
        self._facts = latch.facts()
        self.nbytes: int = self._data.nbytes

    def restore(self) -> None:
        """Put the tile back."""
        np.copyto(self._array, self._data)
        self._latch.restore_facts(self._facts)


def save_region(device: Device, region: Region, pool: Pool) -> ChipBytes | DeviceBytes | None:
    """Save what is in a region; None where it lies in no memory that is modelled."""
    if region.space != "HBM":
        return ChipBytes(device.cores[region.core].memory, region, pool)
    found = device.hbm.find(region.byte)
    if found is None:
        return None
    offset = region.byte - found.address
    pattern = region.pattern if _sparse(region) else None
    return DeviceBytes(found, offset, min(region.nbytes, found.nbytes - offset), pattern)


def save_tile(core: Core, word: isa.LoadWeights) -> Tile:
    """Save the latch that a word loads."""
    transposed = bool(word.transpose_mode)
    latch = core.pe.low if int(word.fp32_mode) == Fp32Pass.LOW and not transposed else core.pe.high
    return Tile(latch, latch.bits if transposed else latch.weights)


def _sparse(region: Region) -> bool:
    if region.pattern is None:
        return False
    steps, run = region.pattern
    return prod(count for _, count in steps) * run * _SPARSE < region.nbytes


def _summary(plane: Plane) -> Plane | bool:
    """Return True or False for a plane that is all the same, else a copy."""
    if plane.all():
        return True
    return plane.copy() if plane.any() else False


def _size(data: Bytes | None, written: Plane | bool) -> int:
    return (0 if data is None else data.nbytes) + (0 if isinstance(written, bool) else written.nbytes)
