"""Who wrote which byte last, as a number for every byte of a memory, kept once for bytes that nobody told apart.

Accesses begin and end at multiples of large powers of two, in bytes and mostly in partitions, so that a block of some
bytes in some partitions has one writer. A plane has a number for each block; an access that begins or ends within
blocks has them cut first, down to single bytes where it must be.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.device import Device
from formats.regions import Region

__all__ = ["Numbers", "Writers"]

_LARGEST = 1 << 16  # bytes of a block at most: larger ones are only cut again

Numbers = npt.NDArray[np.int32]
_NUMBER = np.dtype(np.int32)
_NOBODY: Numbers = np.zeros(0, _NUMBER)


class _Plane:
    """The numbers of one memory of so many partitions and bytes in each."""

    __slots__ = ("_bytes", "_high", "_low", "_numbers", "_partitions", "_rows")

    def __init__(self, partitions: int, nbytes: int) -> None:
        self._partitions = partitions  # of a block, as its bytes
        # Blocks of several partitions lie below one another; in one partition nothing has to come out even.
        self._bytes = gcd(nbytes, _LARGEST) if partitions > 1 else _LARGEST
        self._rows = partitions, nbytes
        self._numbers: Numbers = np.zeros((1, -(-nbytes // self._bytes)), _NUMBER)
        self._low, self._high = nbytes, 0  # bytes that were written lie between these

    def at(self, region: Region) -> Numbers:
        """Return the numbers of the blocks of a region, a view."""
        _, _, first, partitions, byte, nbytes, pattern = region
        steps, run = ((), nbytes) if pattern is None else pattern
        block = gcd(self._bytes, byte, run, *[step for step, count in steps if count > 1])
        lanes = gcd(self._partitions, first, partitions)
        if block != self._bytes or lanes != self._partitions:
            self._cut(lanes, block)
        size, width = _NUMBER.itemsize, self._numbers.shape[1]
        row = width * size
        return np.ndarray(
            (partitions // lanes, *[count for _, count in steps], run // block),
            _NUMBER,
            self._numbers,
            first // lanes * row + byte // block * size,
            (row, *[step // block * size for step, _ in steps], size),
        )

    def write(self, region: Region, number: int) -> None:
        """Give all bytes of a region a number."""
        self.at(region)[...] = number
        self._low, self._high = min(self._low, region.byte), max(self._high, region.end)

    def _cut(self, lanes: int, block: int) -> None:
        """Make blocks smaller, so that so many partitions and bytes are whole numbers of them."""
        partitions, nbytes = self._rows
        old, before = self._numbers, self._bytes
        self._numbers = np.zeros((partitions // lanes, -(-nbytes // block)), _NUMBER)
        low, high = self._low // before, -(-self._high // before)
        if low < high:  # what is not written is 0 already
            kept: Any = np.repeat(np.repeat(old[:, low:high], self._partitions // lanes, 0), before // block, 1)
            first = low * before // block
            self._numbers[:, first : first + kept.shape[1]] = kept[:, : self._numbers.shape[1] - first]
        self._partitions, self._bytes = lanes, block


class Writers:
    """The numbers of all memories of a device; 0 is nobody."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._planes: dict[tuple[str, int], _Plane] = {}

    def of(self, region: Region) -> Numbers:
        """Return the numbers of the writers of a region's bytes, each at least once; none where no byte has one."""
        key, region = self._place(region)
        plane = self._planes.get(key)
        return _NOBODY if plane is None else plane.at(region)

    def write(self, region: Region, number: int) -> None:
        """Give a region a writer."""
        key, placed = self._place(region)
        plane = self._planes.get(key)
        if plane is None:
            if region.space == "HBM":
                allocation = self._device.hbm.find(region.byte)
                assert allocation is not None, "the transfer was bound, so its bytes exist"
                size = 1, allocation.nbytes
            else:
                size = self._device.cores[region.core].memory.array(region.space).shape
            plane = self._planes[key] = _Plane(*size)
        plane.write(placed, number)

    def _place(self, region: Region) -> tuple[tuple[str, int], Region]:
        """Return the key of a region's plane, and where it lies there."""
        if region.space != "HBM":
            return (region.space, region.core), region
        found = self._device.hbm.find(region.byte)
        assert found is not None, "the transfer was bound, so its bytes exist"
        return (region.space, found.address), region._replace(byte=region.byte - found.address)
