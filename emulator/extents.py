"""Which bytes of a memory are written: a plane of truth values, and what was noted of it and is not in the plane yet.

A plane is as large as its memory, so that to write it takes as long as to write the bytes themselves, and hardly
anything looks at it.  What a word or a transfer writes is noted therefore, as an extent, and goes into the plane when
somebody asks for that.  Whole rows of bytes are remembered as ranges, which answer for every part of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from emulator.renewal import Columns
    from formats.regions import Pattern, RegionParts, Steps

__all__ = ["Extent", "Notes", "Plane", "Ranges", "bounds_of_runs", "merged", "plane_of_runs", "region_of_runs"]

Plane = npt.NDArray[np.bool_]
_MOST = 4096  # extents that are noted and not in the plane; beyond that they would take more room than it


class Notes:
    """Extents of one memory that are written and not in its plane yet; `settled` are those that are in it."""

    __slots__ = ("_told", "extents", "found", "keeps", "ranges", "settled")

    def __init__(self, keeps: bool = False) -> None:
        self.extents: list[Extent] = []
        self.settled: list[Extent] = []
        self.found: list[Extent] = []  # others that were found to be full
        self.keeps = keeps  # those that are settled, for whoever clears the plane
        self.ranges = Ranges()
        self._told = 0  # how many of the extents are in the ranges: nothing is before somebody asks

    def settle(self) -> None:
        """Write the plane under every extent that was noted."""
        self._tell()
        noted, self.extents, self._told = self.extents, [], 0
        for extent in noted:
            extent.fill()
        if self.keeps:
            self.settled += noted

    def cover(self, parts: RegionParts) -> bool:
        """Return whether a region is known to be written, without looking at the plane."""
        self._tell()
        return self.ranges.covers(parts)

    def _tell(self) -> None:
        for extent in self.extents[self._told :]:
            hull = extent.hull()
            if hull is not None and extent.is_gapless():
                self.ranges.add(hull)
            elif (rows := extent.rows()) is not None:
                self.ranges.add_rows(*rows)
        self._told = len(self.extents)

    @property
    def all_written(self) -> tuple[Extent, ...]:
        """Return what was noted, in the plane or not, as far as it is kept."""
        return (*self.settled, *self.extents)

    def doubt(self) -> None:
        """Have no extent known to be full; those that are noted stay so."""
        self.ranges.clear()
        self._told = 0
        for noted in (self.settled, self.extents, self.found):
            for extent in noted:
                extent.full = not extent.size
        self.found.clear()

    def clear(self) -> None:
        """Forget what was noted."""
        if not (self.settled or self.extents or self.found or self.ranges):
            return
        self.doubt()
        self.extents.clear()
        self.settled.clear()


class Extent(ABC):
    """The written plane under some bytes of a memory; `full` once every byte of it is known to be written."""

    __slots__ = ("__weakref__", "full", "notes", "size")

    def __init__(self, notes: Notes, size: int) -> None:
        self.notes, self.size = notes, size
        self.full = not size

    @abstractmethod
    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""

    def fill(self) -> None:
        """Write the part of the plane."""
        self.view()[...] = True

    def count(self) -> int:
        """Return how many bytes of the part of the plane are written, without what is noted."""
        return int(np.count_nonzero(self.view()))

    @abstractmethod
    def columns(self, space: str) -> Columns | None:
        """Return the columns of a core's "SBUF" or "PSUM" that are touched, None where they are not clear."""

    def is_blank(self) -> bool:
        """Return whether nothing was ever noted of the whole memory, without a look at the plane."""
        return False

    def hull(self) -> RegionParts | None:
        """Return the least region without gaps that holds it, in whatever numbers its memory counts; None without."""
        return None

    def is_gapless(self) -> bool:
        """Return whether it is all of its hull."""
        return False

    def rows(self) -> tuple[int, int, int, int, int] | None:
        """Return it as the same bytes of each of some rows of device memory that lie side by side, None for all else.

        Where these begin, how long they are, how many; where in each the bytes are, and how many.
        """
        return None

    @abstractmethod
    def freshen(self) -> None:
        """Have all bytes of the memory fresh that are not written: somebody is going to look at some of them."""

    @property
    def plane(self) -> Plane:
        """Return the part of the plane."""
        self.notes.settle()
        return self.view()

    def mark(self) -> None:
        """Note that every byte is written."""
        if not self.full:
            self.full = True
            noted = self.notes.extents
            noted.append(self)
            if len(noted) > _MOST:
                self.notes.settle()

    def missing(self) -> int:
        """Return how many bytes were never written, for who reads them next: these are fresh then."""
        if self.full:
            return 0
        if self.is_blank():
            self.freshen()
            return self.size
        hull = self.hull()
        if hull is not None and self.notes.cover(hull):
            missing = 0
        else:
            self.notes.settle()
            missing = self.size - self.count()
        if missing:
            self.freshen()
        else:
            self.full = True
            self.notes.found.append(self)
        return missing


class Ranges:
    """Byte ranges that are written in each of some partitions, by memory and partitions; neighbours are one range."""

    __slots__ = ("_known", "_rows")

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], tuple[list[int], list[int]]] = {}
        self._rows: dict[tuple[int, int, int], Ranges] = {}  # what is known of each of some rows, by where they lie

    def __bool__(self) -> bool:
        return bool(self._known or self._rows)

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
        self._rows.clear()

    def add_rows(self, start: int, width: int, count: int, byte: int, nbytes: int) -> None:
        """Remember bytes of each of some rows of device memory: columns that make whole rows are a range in it."""
        rows = self._rows.get((start, width, count))
        if rows is None:
            rows = self._rows[start, width, count] = Ranges()
        rows.add(("row", 0, 0, 1, byte, nbytes, None))
        if rows.covers(("row", 0, 0, 1, 0, width, None)):
            self.add(("HBM", 0, 0, 1, start, width * count, None))

    def add(self, parts: RegionParts) -> None:
        """Remember a region without gaps."""
        space, _, first, partitions, low, nbytes, _ = parts
        known = self._known.get((space, first, partitions))
        if known is None:
            self._known[space, first, partitions] = [low], [low + nbytes]
            return
        starts, ends = known
        high = low + nbytes
        # All that it meets or touches becomes one with it.
        begin, end = bisect_left(ends, low), bisect_right(starts, high)
        if begin < end:
            low, high = min(low, starts[begin]), max(high, ends[end - 1])
        starts[begin:end], ends[begin:end] = [low], [high]

    def covers(self, parts: RegionParts) -> bool:
        """Return whether a region lies in one range."""
        space, _, first, partitions, low, nbytes, _ = parts
        high, behind = low + nbytes, first + partitions
        for (where, begin, count), (starts, ends) in self._known.items():
            if where == space and begin <= first and behind <= begin + count:
                at = bisect_right(starts, low) - 1
                if at >= 0 and high <= ends[at]:
                    return True
        return False


@lru_cache(1 << 12)
def merged(dims: Steps, run: int) -> tuple[Steps, int]:
    """Return fewer dimensions, largest step first, and runs, longer ones, that touch the same bytes as often each.

    Copies cut one walk in different ways, and a transfer that transposes walks in another order than the words do.
    """
    pairs = sorted([(step, count) for step, count in dims if count > 1])
    if pairs and pairs[0][0] <= 0:
        return dims, run
    found: list[tuple[int, int]] = []
    for step, count in pairs:
        if not found and step == run:
            run *= count
        elif found and step == found[-1][0] * found[-1][1]:
            found[-1] = found[-1][0], found[-1][1] * count
        else:
            found.append((step, count))
    return tuple(reversed(found)), run


def plane_of_runs(plane: Plane, offset: int, dims: Steps, run: int) -> Plane:
    """Return the part of a plane under runs of bytes from byte `offset` on, outermost dimension first."""
    shape = (*[count for _, count in dims], run)
    return np.ndarray(shape, np.bool_, plane, offset, (*[step for step, _ in dims], 1))


def bounds_of_runs(offset: int, dims: Steps, run: int) -> tuple[int, int]:
    """Return the lowest byte of runs, and how many lie from there to behind the highest."""
    low, high = offset, offset + run
    for step, count in dims:
        reach = step * (count - 1)
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high - low


def region_of_runs(offset: int, dims: Steps, run: int, width: int) -> tuple[int, int, int, int, Pattern | None] | None:
    """Return runs in an array of partitions of `width` bytes as the end of a region's parts; None where they are none.

    A region is the same bytes in each of some partitions side by side.
    """
    steps, whole = merged(dims, run)
    rows, (first, byte) = 1, divmod(offset, width)
    if steps and steps[0][0] == width:
        rows, steps = steps[0][1], steps[1:]
    reach = whole + sum([step * (count - 1) for step, count in steps])
    if byte + reach > width or not all(0 < step < width for step, _ in steps):
        return None
    return first, rows, byte, reach, (steps, whole) if steps else None
