"""Rows of an indirect transfer as one thing that it touches, where no two of its thousands have to be told apart.

A transfer that scatters rows touches a region for each.  What of them meets what is told from arrays of addresses;
regions of single rows are made where somebody has to look at one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dma.regions import places_of, regions_of_rows, shape_of_side
from emulator.dma.rows import Numbers, Rows, RowsRequest
from emulator.dma.transfer import Transfer
from emulator.events import Places as Regions
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region, RegionParts

__all__ = ["Mask", "Places", "RowSet", "are_apart", "regions_in", "scattered_by", "touched_by"]

Mask = npt.NDArray[np.bool_]
_FEWEST = 4  # rows that are one thing
_made = tuple.__new__  # a named tuple in half the time


class RowSet:
    """Rows that a transfer reads or writes, each without a gap; equal where they are the same ones in the same order.

    `box` is around all of them, which has its parts, and `is_box` tells that it leaves no byte out. `starts` are the
    first bytes in device memory, in the order of the transfer; `number` is the same for sets of the same bytes, -1
    until somebody compares.
    """

    __slots__ = ("__dict__", "_rows", "_which", "box", "count", "is_box", "key", "nbytes", "number", "starts")

    def __init__(self, rows: Rows, which: int, box: Region, starts: Numbers | None, nbytes: int) -> None:
        self._rows, self._which = rows, which
        self.box, self.is_box = box, starts is None
        self.starts = np.empty(0, np.int64) if starts is None else starts
        self.nbytes, self.count, self.number = nbytes, rows.count, -1
        self.key = box, nbytes, self.count, self.starts.tobytes()

    def __getitem__(self, part: int) -> Any:
        """Return a part of the region around them, as of any place."""
        return self.box[part]

    def __iter__(self) -> Iterator[Any]:
        """Yield the parts of that region."""
        return iter(self.box)

    def __hash__(self) -> int:
        """Return a number for dictionaries."""
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        """Return whether the other one is of the same rows."""
        return isinstance(other, RowSet) and self.key == other.key

    @cached_property
    def order(self) -> Numbers:
        """Return the numbers of the rows in the order of their addresses, in which masks are."""
        return np.argsort(self.starts, kind="stable")

    @cached_property
    def lows(self) -> Numbers:
        """Return where the rows begin, in the order of their addresses."""
        return self.starts[self.order]

    @cached_property
    def is_apart(self) -> bool:
        """Return whether no two rows share a byte."""
        return self.is_box or bool((np.diff(self.lows) >= self.nbytes).all())

    def region(self, row: int) -> Region:
        """Return the region of one row, counted as the transfer does."""
        return _made(Region, ("HBM", self.box.core, 0, 1, int(self.starts[row]), self.nbytes, None))

    def regions(self, width: int) -> tuple[Region, ...]:
        """Return the regions of all rows; `width` is the bytes of an SBUF partition."""
        return regions_of_rows(self._rows, self._which, width)

    def range(self, low: int, high: int) -> slice:
        """Return which rows share a byte with a range, where none shares one with another."""
        first, behind = np.searchsorted(self.lows, (low - self.nbytes + 1, high))
        return slice(int(first), max(int(first), int(behind)))

    def near(self, low: int, high: int, these: Mask | None = None) -> Iterator[Region]:
        """Yield the regions of some rows, or all, that share a byte with a range."""
        at = self.range(low, high)
        for row in (self.order[at] if these is None else self.order[at][these[at]]).tolist():
            yield self.region(row)

    def first(self, these: Mask) -> int:
        """Return the first of some rows, as the transfer counts them."""
        return int(self.order[these].min())

    def place(self, row: int) -> int:
        """Return where in the order of addresses a row is, where no two begin at one."""
        return int(np.searchsorted(self.lows, self.starts[row]))

    def meets(self, other: RowSet) -> bool:
        """Return whether a row shares a byte with one of another set."""
        first = np.searchsorted(self.lows, other.lows - self.nbytes, "right")
        return bool((np.searchsorted(self.lows, other.lows + other.nbytes) > first).any())

    def meets_range(self, low: int, high: int) -> bool:
        """Return whether a row shares a byte with a range."""
        at = self.range(low, high)
        return bool(at.start < at.stop)

    def same_rows(self, other: RowSet) -> bool:
        """Return whether another set has the same rows, in whatever order."""
        return self.nbytes == other.nbytes and bool(np.array_equal(self.lows, other.lows))


Places = Sequence[RegionParts | RowSet]  # what something touches


def touched_by(transfer: Transfer, width: int) -> tuple[Places, Places]:
    """Return what a transfer reads and what it writes; `width` is the bytes of an SBUF partition."""
    if type(transfer.request) is not RowsRequest:  # nearly all
        return places_of(transfer, width)
    rows = _rows_of(transfer)
    if rows is None:
        return places_of(transfer, width)
    read, written = None if rows.adds else _set_of(rows, 0), _set_of(rows, 1)
    if read is not None and written is not None:
        return (read,), (written,)
    reads, writes = places_of(transfer, width)
    return reads if read is None else (read,), writes if written is None else (written,)


def scattered_by(transfer: Transfer) -> RowSet | None:
    """Return the rows that a transfer writes to device memory; None where it writes something else, or part of one."""
    rows = _rows_of(transfer)
    found = None if rows is None else _set_of(rows, 1)
    return None if found is None or found.is_box else found


def are_apart(transfer: Transfer) -> bool:
    """Return whether a transfer is of rows from one kind of memory to the other that share no byte with one another."""
    rows = _rows_of(transfer)
    if rows is None or rows.adds or rows.sides[0].space == rows.sides[1].space:
        return False
    found = _set_of(rows, 1)
    return found is not None and found.is_apart


def regions_in(places: Places, width: int) -> Regions:
    """Return places with the regions of single rows in place of sets."""
    found: list[RegionParts] = []
    for place in places:
        if isinstance(place, RowSet):
            found += place.regions(width)
        else:
            found.append(place)
    return tuple(found)


def _rows_of(transfer: Transfer) -> Rows | None:
    request = transfer.request
    if type(request) is not RowsRequest or request.rows.is_cut or request.rows.count < _FEWEST:
        return None
    return request.rows


def _set_of(rows: Rows, which: int) -> RowSet | None:
    """Return the sources (0) or targets (1) of rows as a set, made for the first that asks."""
    if rows.sets is None:
        rows.sets = [_made_set(rows, 0), _made_set(rows, 1)]
    found: RowSet | None = rows.sets[which]
    return found


def _made_set(rows: Rows, which: int) -> RowSet | None:
    """Return the sources (0) or targets (1) of rows as a set; None where they have gaps, or lie anywhere."""
    side = rows.sides[which]
    if side.space != "HBM":
        if which == rows.moving or side.dims or rows.row_step != SBUF_PARTITION_STRIDE or rows.whole is not None:
            return None
        partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
        box = Region("SBUF", side.core, partition, rows.numbers.size, byte, side.run)
        return RowSet(rows, which, box, None, side.run)
    places = rows.places(which)
    shape = shape_of_side(side)
    steps = [step for step, count in side.dims if count > 1]
    if side.limit is None or places.dtype == object or shape.steps or shape.reach != side.nbytes or shape.shift:
        return None
    if steps != sorted(steps, reverse=True):
        return None
    low, high = int(places.min()), int(places.max()) + shape.reach
    if low < side.limit.address or high > side.limit.address + side.limit.nbytes:
        return None
    box = Region("HBM", side.core, 0, 1, low, high - low)
    return RowSet(rows, which, box, places, shape.reach)
