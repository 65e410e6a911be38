"""How much of SBUF and PSUM holds something that is still needed, over time.

A byte is in use from its first write to its last read before it is written anew. Bytes are counted in blocks of 32
bytes by 32 partitions, so that small tiles count for more than they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.device import Device
from emulator.events import Event
from formats.named_tuple import NamedTuple
from formats.neuron_core import QUADRANT
from formats.regions import Region

__all__ = ["BLOCK", "MemoryUse", "Usage"]

BLOCK = 32  # bytes
_NEVER = -1


class Usage(NamedTuple):
    """Use of one memory of one core: from each time on, the blocks in use in each part.

    Parts are the four groups of 32 partitions in SBUF and the eight banks in PSUM; `blocks` has a row for each,
    `capacity` is the blocks that one part has.
    """

    space: str
    core: int
    times_ps: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    capacity: int

    @property
    def percent(self) -> npt.NDArray[np.float64]:
        """Return the use of the whole memory in percent, from each time on."""
        used: npt.NDArray[np.float64] = self.blocks.sum(axis=0) / (self.capacity * len(self.blocks)) * 100
        return used

    @property
    def peak_percent(self) -> float:
        """Return the high-water mark in percent."""
        return float(self.percent.max(initial=0.0))

    @property
    def peak_bytes(self) -> int:
        """Return the high-water mark in bytes."""
        return int(self.blocks.sum(axis=0).max(initial=0)) * BLOCK * QUADRANT


class _Plane:
    """One memory: for each block since when it holds something, and when that was last read and written."""

    def __init__(self, partitions: int, width: int, bank: int | None) -> None:
        shape = partitions // QUADRANT, width // BLOCK
        self.first = np.full(shape, _NEVER, np.int64)
        self.read = np.full(shape, _NEVER, np.int64)
        self.written = np.full(shape, _NEVER, np.int64)
        self.bank = None if bank is None else bank // BLOCK
        self.parts = shape[0] if self.bank is None else shape[1] // self.bank
        self.capacity = self.first.size // self.parts
        self.changes: list[dict[int, int]] = [{} for _ in range(self.parts)]

    def on_read(self, where: tuple[slice, slice], now: int) -> None:
        self.read[where] = now

    def on_write(self, where: tuple[slice, slice], now: int) -> None:
        first, read = self.first[where], self.read[where]
        over = (first != _NEVER) & (read != _NEVER)
        if over.any():
            self._close(where, over, read)
        first[over | (first == _NEVER)] = now
        read[...] = _NEVER
        self.written[where] = now

    def _close(self, where: tuple[slice, slice], over: npt.NDArray[np.bool_], end: npt.NDArray[np.int64]) -> None:
        """Count blocks as used from their first write to `end`."""
        rows, columns = where
        first = self.first[where]
        for row in range(first.shape[0]):
            chosen = np.flatnonzero(over[row])
            if not chosen.size:
                continue
            parts = (chosen + columns.start) // self.bank if self.bank else np.full(chosen.size, rows.start + row)
            for part in np.unique(parts):
                inside = chosen[parts == part]
                changes = self.changes[int(part)]
                for column, sign in ((first, 1), (end, -1)):
                    for time, number in zip(*np.unique(column[row][inside], return_counts=True), strict=True):
                        changes[int(time)] = changes.get(int(time), 0) + sign * int(number)

    def finish(self) -> None:
        """Count what still holds something as used to its last access."""
        where = slice(0, self.first.shape[0]), slice(0, self.first.shape[1])
        self._close(where, self.first != _NEVER, np.maximum(self.read, self.written))
        self.first[...] = _NEVER

    def usage(self, space: str, core: int) -> Usage:
        times = sorted({time for changes in self.changes for time in changes})
        deltas = np.array([[changes.get(time, 0) for time in times] for changes in self.changes], np.int64)
        return Usage(space, core, np.array(times, np.int64), np.cumsum(deltas, axis=1), self.capacity)


class MemoryUse:
    """An observer that follows what is in use; `usage` has it after `finish`."""

    def __init__(self, device: Device) -> None:
        arch = device.arch
        rows = arch.partitions.whole
        self._planes = {}
        for core in device.cores:
            self._planes["SBUF", core.index] = _Plane(rows, arch.sbuf_bytes.whole, None)
            self._planes["PSUM", core.index] = _Plane(rows, arch.psum_bytes.whole, arch.psum_bank.whole)

    def on_event(self, event: Event) -> None:
        """Note what a completion read and wrote."""
        if event.kind in ("fault", "hang"):
            return
        now = event.time_ps
        for region in event.reads:
            if region.space != "HBM":
                self._planes[region.space, region.core].on_read(_blocks(region), now)
        for region in event.writes:
            if region.space != "HBM":
                self._planes[region.space, region.core].on_write(_blocks(region), now)

    def finish(self) -> None:
        """Count what is still in use; nothing may follow."""
        for plane in self._planes.values():
            plane.finish()

    @property
    def usage(self) -> tuple[Usage, ...]:
        """Return the use of every memory that was used, by core."""
        found = [plane.usage(space, core) for (space, core), plane in self._planes.items()]
        return tuple(each for each in found if each.times_ps.size)


def _blocks(region: Region) -> tuple[slice, Any]:
    return (
        slice(region.first // QUADRANT, (region.behind - 1) // QUADRANT + 1),
        slice(region.byte // BLOCK, (region.end - 1) // BLOCK + 1),
    )
