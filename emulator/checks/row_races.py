"""Races of rows that transfers scatter: as those of a region for each row, found and counted for all rows at once.

That takes rows of which the same can be said of all: two sets have the same rows or share no byte, and whatever else
touches bytes of a set is a range around all of it, and over with before the first of them is written.  What comes of
two such stores may still differ from row to row, which masks tell, in the order of addresses.  Other rows are looked at
one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from emulator.checks.history import Clock, Unit
from emulator.checks.row_sets import Mask, RowSet, regions_in
from emulator.checks.shadow import Cell, Record, Shadow
from emulator.device import Device
from emulator.events import Places
from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts

__all__ = ["Looked", "Met", "RowRecord", "RowShadow", "even_rows"]

_CROWDED = 24  # records of rows beyond which what everybody knows is looked for

# A word or transfer of a run that is over, with what it reads and writes; one without a unit is only carried out.
Looked = tuple[Unit | None, Any, tuple[RegionParts | RowSet, ...], tuple[RegionParts | RowSet, ...]]
# The same with regions alone, and beside them rows that are written.
Even = tuple[Unit | None, Any, Places, Places, tuple[RowSet, ...]]


class RowRecord(NamedTuple):
    """A store of rows that can still be one side of a race, at those that are `held`."""

    unit: Unit
    rows: RowSet
    serial: int
    held: Mask

    @property
    def write(self) -> bool:
        """Return that it is no read."""
        return True

    def at(self, low: int) -> Record:
        """Return the record of the row that begins at a byte."""
        region = Region("HBM", self.rows.box.core, 0, 1, low, self.rows.nbytes)
        return Record(self.unit, region, True, self.serial)


class Met(NamedTuple):
    """An earlier access, and the rows at which nothing orders it before a store."""

    old: Record | RowRecord
    these: Mask

    def at(self, low: int) -> Record:
        """Return the record of the earlier access that the row at a byte meets."""
        return self.old if isinstance(self.old, Record) else self.old.at(low)


# Reports races of a store of rows; returns for each meeting at which rows it changes nothing, as `Shadow` asks.
Tell = Callable[[list[Met], RowRecord], list[Mask]]


class RowShadow:
    """The records of sets of rows in one memory, by their numbers, beside those of ranges around them."""

    def __init__(self, shadow: Shadow, tell: Tell) -> None:
        self._shadow, self._tell = shadow, tell
        self._cells: dict[int, tuple[list[Cell], list[RowRecord]]] = {}

    def touch(self, unit: Unit, rows: RowSet) -> None:
        """Note a store of rows, and tell of each earlier access that is not ordered before it."""
        shadow = self._shadow
        found = self._cells.get(rows.number)
        if found is None:
            found = self._cells[rows.number] = shadow.around(rows), []
        around, held = found
        everywhere = np.ones(rows.count, np.bool_)
        mine = RowRecord(unit, rows, shadow.serials(rows.count), everywhere)
        met = [Met(old, everywhere) for cell in around for old in cell.held]
        met += [Met(old, old.held) for old in held]
        met = [one for one in (self._unordered(each, mine) for each in met) if one.these.any()]
        # Each row meets them in this order; those that the first row meets are told first.
        met.sort(key=lambda one: (rows.first(one.these), one.old.serial))
        stay = self._tell(met, mine) if met else []
        held[:] = [
            one.old._replace(held=left)
            for one, left in zip(met, stay, strict=True)
            if isinstance(one.old, RowRecord) and left.any()
        ]
        held.sort(key=lambda old: old.serial)
        if len(held) > _CROWDED:
            known = shadow.floor()
            held[:] = [old for old in held if known[old.unit.actor] < old.unit.number]
        held.append(mine)

    def _unordered(self, one: Met, mine: RowRecord) -> Met:
        """Return an earlier access with the rows at which nothing orders it."""
        before, unit = one.old.unit, mine.unit
        if before.actor != unit.actor:
            is_met = unit.clock[before.actor] < before.number
            return one if is_met else Met(one.old, np.zeros_like(one.these))
        if unit.actor < self._shadow.queues or before.number == unit.number or unit.clock[unit.actor] >= before.number:
            return Met(one.old, np.zeros_like(one.these))
        these = one.these.copy()
        for place in np.flatnonzero(these).tolist():
            low = int(mine.rows.lows[place])
            these[place] = not self._shadow.keeps_order(one.at(low), mine.at(low))
        return Met(one.old, these)

    def writes(self, known: Clock) -> Iterable[Record]:
        """Return the stores on record that are not known, one for each row."""
        for _, held in self._cells.values():
            for old in held:
                if known[old.unit.actor] >= old.unit.number:
                    continue
                for place, row in enumerate(old.rows.order.tolist()):
                    if old.held[place]:
                        yield Record(old.unit, old.rows.region(row), True, old.serial + row)


def even_rows(device: Device, units: Iterable[Looked]) -> list[Even]:
    """Return units with the sets of rows that are looked at all at once, which get their numbers, beside the others."""
    units = list(units)
    if not any(place.__class__ is RowSet for *_, reads, writes in units for place in (*reads, *writes)):
        return cast("list[Even]", [(*unit, ()) for unit in units])
    kinds = _Kinds()
    for at, (_, _, reads, writes) in enumerate(units):
        for place in reads:
            kinds.take(at, place, True)
        for place in writes:
            kinds.take(at, place, False)
    uneven = kinds.uneven()
    width = device.arch.sbuf_bytes.whole
    even = []
    for unit, word, reads, writes in units:
        sets = tuple([place for place in writes if isinstance(place, RowSet) and place.number not in uneven])
        others = tuple([place for place in writes if place not in sets]) if sets else writes
        even.append((unit, word, regions_in(reads, width), regions_in(others, width), sets))
    return even


class _Kinds:
    """The sets of rows of a run and the ranges beside them, with the first or last unit that touches them."""

    def __init__(self) -> None:
        self._first: list[tuple[RowSet, int]] = []  # of each number
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._read: set[int] = set()
        self._ranges: dict[RegionParts, int] = {}

    def take(self, at: int, place: RegionParts | RowSet, reads: bool) -> None:
        """Take what unit `at` touches; sets of the same rows are given one number."""
        if isinstance(place, RowSet):
            key = place.nbytes, place.lows.tobytes()
            place.number = number = self._numbers.setdefault(key, len(self._numbers))
            if number == len(self._first):
                self._first.append((place, at))
            if reads:
                self._read.add(number)
        elif place[0] == "HBM":
            self._ranges[place] = at

    def uneven(self) -> set[int]:
        """Return the numbers of sets that have to be looked at row by row."""
        if not self._first:
            return set()
        found = self._read | self._clashing()
        low, behind, last, is_whole = (
            np.array(column)
            for column in zip(
                *[(one[4], one[4] + one[5], at, one[6] is None) for one, at in self._ranges.items()]
                or [(0, 0, 0, True)],
                strict=True,
            )
        )
        for rows, at in self._first:
            box = rows.box
            near = (low < box.end) & (behind > box.byte)
            around = near & is_whole & (low <= box.byte) & (behind >= box.end)
            beside = near & ~around
            if (
                (last[around] >= at).any()
                or not is_whole[beside].all()
                or any(map(rows.meets_range, low[beside].tolist(), behind[beside].tolist()))
            ):
                found.add(rows.number)
        return found

    def _clashing(self) -> set[int]:
        """Return the numbers of sets of which a row shares bytes with another row."""
        sets = [rows for rows, _ in self._first]
        lows = np.concatenate([rows.lows for rows in sets])
        ends = np.concatenate([rows.lows + rows.nbytes for rows in sets])
        order = np.argsort(lows, kind="stable")
        ends, owner = ends[order], np.repeat(np.arange(len(sets)), [rows.count for rows in sets])[order]
        reach = np.maximum.accumulate(ends)
        holder = np.maximum.accumulate(np.where(ends == reach, np.arange(ends.size), 0))
        meets = np.flatnonzero(lows[order][1:] < reach[:-1])
        return {*owner[meets + 1].tolist(), *owner[holder[meets]].tolist()}
