"""Which bytes of a core's memories come from undefined ones, by bands of columns.

A band is the columns of some bytes, in all partitions, with each kind of row once (`emulator/checks/mark_rows.py`): a
word that writes 128 partitions of two kinds has two rows marked. Where nothing is marked there is no band.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from emulator.checks.mark_rows import Stencil, Which, common
from emulator.checks.poison import Marks
from formats.named_tuple import NamedTuple

__all__ = ["Band", "Bands"]

_made = tuple.__new__  # a named tuple in half the time


class Band(NamedTuple):
    """Marks of columns: partition p has row `which[p]` of `rows`, in which `unit` bytes have one mark.

    The first of the columns is byte `start` of the rows. `number`, `stencil` and `numbers` are
    those of marks.
    """

    which: Which
    rows: Marks
    start: int = 0
    unit: int = 1
    number: int = 0
    stencil: Stencil | None = None
    numbers: tuple[int, ...] = ()

    def by_bytes(self) -> Band:
        """Return the same with a mark for each byte."""
        which, rows, start, unit, number = self[:5]
        return self if unit == 1 else Band(which, np.repeat(rows, unit, 1), start, 1, number)


class Bands:
    """The bands of one memory, in the order of their columns; what is in them is never changed, only replaced."""

    __slots__ = ("_bands", "_highs", "_lanes", "_lows", "partitions")

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._lows: list[int] = []
        self._highs: list[int] = []
        self._bands: list[Band] = []
        self._lanes: list[int] = []  # the partitions that have a mark in each band, or had one in what it is cut from

    def __bool__(self) -> bool:
        return bool(self._lows)

    def meet(self, low: int, high: int, first: int, partitions: int) -> bool:
        """Return whether a band has some of these columns, and marks in some of these partitions."""
        lows, highs = self._lows, self._highs
        if not lows or lows[0] >= high or highs[-1] <= low:
            return False
        place, count = bisect_right(highs, low), len(lows)
        if lows[place] >= high:
            return False
        lanes, marked = (1 << partitions) - 1 << first, self._lanes
        while place < count and lows[place] < high:
            if marked[place] & lanes:
                return True
            place += 1
        return False

    def between(self, low: int, high: int) -> Band | None:
        """Return the marks of some columns, None where no band has any of them; no partition may have some rows."""
        begin, end = bisect_right(self._highs, low), bisect_left(self._lows, high)
        if begin >= end:
            return None
        lows, highs = self._lows, self._highs
        if end - begin > 1 or low < lows[begin] or highs[begin] < high:
            # Whoever comes back finds one band: words read of a tile in pieces what others wrote in pieces.
            self.replace(low, high, _joined(lows[begin:end], highs[begin:end], self._bands[begin:end], low, high))
            begin = bisect_right(self._highs, low)
        band = self._bands[begin]
        if low == lows[begin]:
            return band
        which, rows, start, *others = band
        return _made(Band, (which, rows, start + low - lows[begin], *others))

    def exactly(self, low: int, high: int) -> Band | None:
        """Return the band of just these columns, None where no band has any of them.

        Raises LookupError where it is otherwise.
        """
        lows, highs = self._lows, self._highs
        place = bisect_right(highs, low)
        if place == len(lows) or lows[place] >= high:
            return None
        if lows[place] != low or highs[place] != high:
            raise LookupError
        return self._bands[place]

    def spread(self, low: int, high: int) -> Marks:
        """Return the marks of some bytes with a row for each partition."""
        band = self.between(low, high)
        if band is None:
            return np.zeros((self.partitions, high - low), np.int16)
        band = band.by_bytes()
        return band.rows[:, band.start : band.start + high - low].take(band.which, 0)

    def replace(self, low: int, high: int, band: Band | None) -> None:
        """Give some columns another band, None for none."""
        begin, end = bisect_right(self._highs, low), bisect_left(self._lows, high)
        if band is not None and end - begin == 1 and self._lows[begin] == low and self._highs[begin] == high:
            self._lanes[begin], self._bands[begin] = _lanes(band), band
            return
        lows, highs, lanes, bands = [], [], [], []
        if begin < end and self._lows[begin] < low:
            lows, highs, lanes, bands = [self._lows[begin]], [low], [self._lanes[begin]], [self._bands[begin]]
        if band is not None:
            lows.append(low)
            highs.append(high)
            lanes.append(_lanes(band))
            bands.append(band)
        if begin < end and self._highs[end - 1] > high:
            cut = self._bands[end - 1]
            lows.append(high)
            highs.append(self._highs[end - 1])
            lanes.append(self._lanes[end - 1])
            bands.append(cut._replace(start=cut.start + high - self._lows[end - 1]))
        self._lows[begin:end], self._highs[begin:end] = lows, highs
        self._lanes[begin:end], self._bands[begin:end] = lanes, bands


def _lanes(band: Band) -> int:
    """Return the partitions that have a mark, as bits."""
    if band.stencil is not None:
        return band.stencil.lanes
    marked: npt.NDArray[np.bool_] = np.logical_or.reduce(band.rows, 1)[band.which]
    return int.from_bytes(np.packbits(marked, bitorder="little").tobytes(), "little")


def _joined(lows: list[int], highs: list[int], bands: list[Band], low: int, high: int) -> Band:
    """Return bands from column to column as one of some columns."""
    which, places = common([(band.which, band.rows.shape[0]) for band in bands])
    unit = bands[0].unit
    for first, behind, band in zip(lows, highs, bands, strict=True):
        # of whole units, wherever it begins and ends
        if band.unit != unit or any(at % unit for at in (first - low, band.start, behind - first, high - low)):
            unit = 1
            bands = [each.by_bytes() for each in bands]
            break
    found: Marks = np.zeros((places[0].size, (high - low) // unit), np.int16)
    for first, behind, band, place in zip(lows, highs, bands, places, strict=True):
        left, right = max(first, low), min(behind, high)
        shift = band.start - first
        found[:, (left - low) // unit : (right - low) // unit] = band.rows[
            place, (left + shift) // unit : (right + shift) // unit
        ]
    numbers = {band.number for band in bands}
    return Band(which, found, 0, unit, numbers.pop() if len(numbers) == 1 else 0)
