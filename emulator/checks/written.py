"""Which bytes of a core's memories a run has written, as its notes tell: for who looks when the run is over.

What a program writes goes across whole blocks of partitions, mostly across all 128. Partitions between which no access
ever began or ended are alike, and have one row of truth values between them; where one begins or ends, the row is
copied.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from emulator.buffers import blank
from emulator.checks.mark_rows import Which
from emulator.checks.poison import box_of_missing, walk_of
from emulator.core import Core
from emulator.device import Device
from emulator.dma.transfer import Side
from emulator.dma.views import box_of, sbuf_geometry
from emulator.extents import Extent, Plane, plane_of_runs, region_of_runs
from formats.regions import Pattern, Region, RegionParts

__all__ = ["Rows", "Written", "is_fresh"]


class Rows:
    """The written bytes of one memory: partition p is like the last of `starts` up to it, whose row is its own."""

    __slots__ = ("_known", "_plane", "_starts")

    def __init__(self, partitions: int, width: int) -> None:
        # All but rows of `_starts` stays untouched, and is never given by the host.
        self._plane: Plane = blank(partitions * width).view(np.bool_).reshape(partitions, width)
        self._starts = [0]
        self._known: dict[tuple[int, int], tuple[Which, Which]] = {}  # of so many partitions from one on

    def mark(self, first: int, partitions: int, low: int, nbytes: int, pattern: Pattern | None) -> None:
        """Note bytes written."""
        begin, behind = self._cut(first), self._cut(first + partitions)
        starts = self._starts[begin:behind]
        if pattern is None and len(starts) > 1:
            self._plane[starts, low : low + nbytes] = True
            return
        for start in starts:
            self._part(start, low, nbytes, pattern).fill(True)

    def mark_walk(self, side: Side, geometry: tuple[int, tuple[int, ...]], first: int, behind: int) -> None:
        """Note the bytes of a side written that is no region; it lies in some partitions."""
        for partition in range(first, behind + 1):
            self._cut(partition)
        walk_of(self._plane, side, geometry)[...] = True

    def _cut(self, partition: int) -> int:
        """Let a partition begin a row, and return which it is of those that do; the one behind the last has none."""
        starts = self._starts
        place = bisect_left(starts, partition)
        if place == len(starts) or starts[place] != partition:
            if partition == self._plane.shape[0]:
                return place
            np.copyto(self._plane[partition], self._plane[starts[place - 1]])
            starts.insert(place, partition)
            self._known.clear()
        return place

    def is_whole(self, first: int, partitions: int, low: int, nbytes: int, pattern: Pattern | None) -> bool:
        """Return whether all of some bytes are written."""
        starts = self._starts
        if pattern is None:
            return b"\0" not in self.between(first, partitions, low, low + nbytes)[1].tobytes()
        for start in starts[bisect_right(starts, first) - 1 : bisect_left(starts, first + partitions)]:
            if b"\0" in self._part(start, low, nbytes, pattern).tobytes():
                return False
        return True

    def _part(self, start: int, low: int, nbytes: int, pattern: Pattern | None) -> Plane:
        """Return the bytes of a row that are in a range, and in its pattern."""
        if pattern is None:
            return self._plane[start, low : low + nbytes]
        return plane_of_runs(self._plane, start * self._plane.shape[1] + low, *pattern)

    def between(self, first: int, partitions: int, low: int, high: int) -> tuple[Which, Plane]:
        """Return which of the rows each of some partitions has, and those rows of some bytes, side by side."""
        known = self._known.get((first, partitions))
        if known is None:
            starts = self._starts
            begin = bisect_right(starts, first) - 1
            own = np.array(starts[begin : bisect_left(starts, first + partitions)], np.intp)
            which = np.searchsorted(own, np.arange(first, first + partitions), "right") - 1
            known = self._known[first, partitions] = which, own
        which, own = known
        if own.size == 1:
            start = int(own[0])
            return which, self._plane[start : start + 1, low:high]
        return which, self._plane[own, low:high]


class Written:
    """What a run has written of its cores' memories up to some note of it; nothing was written before it began."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.full: set[Extent] = set()  # of which all bytes are known to be written
        self._sides: set[Side] = set()  # that were written
        self._waiting: list[Extent | Side] = []  # what was written since somebody asked: few ask
        self._rows: dict[tuple[int, str], Rows] = {}

    def _asked(self, core: int, space: str) -> Rows:
        """Return the rows of a memory, for who asks what is written of it."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if isinstance(one, Side):
                self._mark_side(one)
            else:
                where, its_core, first, partitions, low, nbytes, pattern = _region_of(one)
                self._of(its_core, where).mark(first, partitions, low, nbytes, pattern)
        return self._of(core, space)

    def _of(self, core: int, space: str) -> Rows:
        rows = self._rows.get((core, space))
        if rows is None:
            rows = self._rows[core, space] = Rows(*self._device.cores[core].memory.bound(space).shape)
        return rows

    def mark(self, extent: Extent) -> None:
        """Note an extent written."""
        if extent not in self.full:
            self.full.add(extent)
            self._waiting.append(extent)

    def lacks(self, extent: Extent) -> bool:
        """Return whether nothing wrote some bytes of an extent."""
        if extent in self.full:
            return False
        if not self.covers(_region_of(extent)):
            return True
        self.full.add(extent)
        return False

    def covers(self, parts: RegionParts) -> bool:
        """Return whether all bytes of a region are written."""
        space, core, first, partitions, low, nbytes, pattern = parts
        return self._asked(core, space).is_whole(first, partitions, low, nbytes, pattern)

    def mark_side(self, side: Side) -> None:
        """Note a side in SBUF written."""
        if side not in self._sides:
            self._sides.add(side)
            self._waiting.append(side)

    def _mark_side(self, side: Side) -> None:
        partitions, width = self._device.cores[side.core].memory.bound("SBUF").shape
        offset, steps = geometry = sbuf_geometry(side, width, partitions, lambda low, high, allowed: None)
        dims = tuple([(step, count) for step, (_, count) in zip(steps, side.dims, strict=True)])
        rows, found = self._of(side.core, "SBUF"), region_of_runs(offset, dims, side.run, width)
        if found is not None:
            rows.mark(*found)
            return
        box, _ = box_of(side, width)
        rows.mark_walk(side, geometry, box.first, box.behind)

    def rows(self, core: int, space: str, first: int, partitions: int, low: int, high: int) -> tuple[Which, Plane]:
        """Return which row each of some partitions has, and the rows: which of some bytes are written."""
        return self._asked(core, space).between(first, partitions, low, high)

    def box(self, region: Region) -> tuple[Region, int] | None:
        """Return the box around bytes of a region in a core's memory that nothing wrote, and how many they are."""
        space, core, first, partitions, low, nbytes, _ = region
        which, rows = self.rows(core, space, first, partitions, low, low + nbytes)
        return box_of_missing(region, ~rows, which)


def is_fresh(core: Core) -> bool:
    """Return whether nothing has written to a core's memories yet."""
    memory = core.memory
    return not memory.unaccounted and not memory.notes.all_written


def _region_of(extent: Extent) -> RegionParts:
    found = extent.hull()
    assert found is not None, "words touch regions of their core's memory"
    return found
