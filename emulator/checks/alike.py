"""Work that both cores of a pair do: accesses that nothing orders, whose order changes nothing.

Kernels that do not split their work let each core store the same bytes to the same place, fill it with zeros before, or
read it again behind. Two such accesses race, and whatever their order is, the bytes are the same: a read finds those
that its own core stored as well, and what one core overwrites with something else it stores again itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from emulator.checks.finding import Finding
from emulator.checks.history import Unit
from emulator.checks.row_sets import Mask, RowSet
from emulator.checks.shadow import Record
from emulator.checks.spans import Spans
from emulator.checks.stores import Before, Bytes, HeldRows, before_of
from emulator.device import Device
from emulator.dma.rows import RowsRequest
from emulator.dma.transfer import Transfer
from emulator.events import Event
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["Alike"]

_MOST = 4096  # stores that their core may still make up for
_KEPT = 1 << 16  # bytes kept of each
_FEW = 4  # sides that are looked at one by one
_COVERED = 1 << 24  # bytes of a region that is looked at byte by byte


class _Met(NamedTuple):
    """One meeting of two accesses, in the order that was seen, and where."""

    first: Unit
    second: Unit
    read: Unit | None
    region: Region


class _Lost(NamedTuple):
    """What a store overwrote of another core's: to be stored again."""

    met: _Met
    bytes: Bytes


class _MetRows(NamedTuple):
    """Meetings of two stores at some rows, in the order that was seen, and which of them were stored again."""

    first: Unit
    second: Unit
    rows: RowSet
    these: Mask
    restored: Mask


class Alike:
    """Meetings of two cores in device memory; nothing is kept where there is one core."""

    def __init__(self, core_of: Callable[[Unit], int]) -> None:
        self._core_of = core_of
        self._met: dict[int, list[_Met]] = {}
        # By writing unit: units of the other core that stored the same bytes, and where.
        self._echoes: dict[tuple[int, int], dict[Region, list[Unit]]] = {}
        # By unit, what it reads of device memory.
        self._sources: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._echoed_at: dict[tuple[int, int], Spans[Region]] = {}  # the regions of those
        self._idle: dict[tuple[int, int], Spans[Region]] = {}  # by writing unit: what it left as it was
        self._lost: dict[Region, list[_Lost]] = {}  # by the bytes that were overwritten
        self._lost_at: Spans[Region] = Spans()
        self._losses = 0
        # The same of rows: by finding; by writing unit, with the other one; by writing unit; by number of their set.
        self._met_rows: dict[int, list[_MetRows]] = {}
        self._row_echoes: dict[tuple[int, int], list[tuple[RowSet, Mask, Unit]]] = {}
        self._idle_rows: dict[tuple[int, int], tuple[RowSet, Mask]] = {}
        self._lost_rows: dict[int, list[tuple[_MetRows, Bytes]]] = {}
        self._restored: set[int] = set()
        self._before: Before = []
        self._before_at: Spans[int] | None = None  # places in that

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def on_effect(self, event: Event) -> None:
        """Keep what a store to device memory is about to overwrite."""
        transfer = event.instruction
        self.begin(before_of(self._device, transfer) if isinstance(transfer, Transfer) else [])

    def begin(self, before: Before) -> None:
        """Take what the transfer at hand overwrites."""
        self._before, self._before_at = before, None

    def changes(self, region: Region) -> bool:
        """Return whether the store at hand changed bytes of a region."""
        for place in self._stored_at(region):
            if self._before[place].changes(region.byte, region.end):
                return True
        return not self._before

    def _stored_at(self, region: Region) -> list[int]:
        """Return which sides of the store at hand may share bytes with a region, as places in `_before`."""
        before = self._before
        if len(before) <= _FEW:
            low, high = region.byte, region.end
            return [place for place, held in enumerate(before) if held.span[0] < high and low < held.span[1]]
        found = self._before_at
        if found is None:
            found = self._before_at = Spans()
            for place, held in enumerate(self._before):
                found.add(*held.span, place)
        return found.near(region.byte, region.end)

    def same(self, old: Record, new: Record) -> None:
        """Note two stores of the same bytes."""
        both = new.region.common(old.region)
        for one, other in ((old, new), (new, old)):
            if not self._copies(other.unit, both):  # what such a transfer finds there is what the other core left
                key = one.actor, one.number
                units = self._echoes.setdefault(key, {}).setdefault(both, [])
                if not units:
                    self._echoed_at.setdefault(key, Spans()).add(both.byte, both.end, both)
                units.append(other.unit)

    def _copies(self, unit: Unit, region: Region) -> bool:
        """Return whether a transfer reads the bytes of a region, too."""
        return any(low < region.end and high > region.byte for low, high in self._spans_of(unit))

    def _spans_of(self, unit: Unit) -> tuple[tuple[int, int], ...]:
        key = unit.actor, unit.number
        spans = self._sources.get(key)
        if spans is None:
            spans = self._sources[key] = _sources_of(unit.word) if isinstance(unit.word, Transfer) else ()
        return spans

    def differ(self, finding: Finding, old: Record, new: Record) -> None:
        """Note a meeting that is a race as far as can be told: a read and a store, or two stores of other bytes."""
        read = None if old.write and new.write else new.unit if old.write else old.unit
        met = _Met(old.unit, new.unit, read, new.region.common(old.region))
        self._met.setdefault(id(finding), []).append(met)
        lost = self._overwritten(met.region) if read is None and self._losses < _MOST else None
        if lost is not None:
            self._losses += 1
            known = self._lost.get(met.region)
            if known is None:
                known = self._lost[met.region] = []
                self._lost_at.add(met.region.byte, met.region.end, met.region)
            known.append(_Lost(met, lost))

    def _overwritten(self, region: Region) -> Bytes | None:
        """Return what the store at hand overwrote of a region, None where that is too much, or not in one piece."""
        if region.nbytes > _KEPT or region.pattern is not None:
            return None
        for place in sorted(self._stored_at(region)):
            held = self._before[place]
            if held.has(region.byte, region.end):
                return held.part(region.byte, region.end)
        return None

    def stored(self, unit: Unit, region: Region) -> None:
        """Take a store to device memory: it may change nothing, or bring back what its core's earlier one overwrote."""
        if self._before and not self.changes(region):
            self._idle.setdefault((unit.actor, unit.number), Spans()).add(region.byte, region.end, region)
        if not self._losses:
            return
        for where in self._lost_at.near(region.byte, region.end):
            if self._lost[where] and region.overlaps(where):
                self._restore(unit, where)

    def _restore(self, unit: Unit, where: Region) -> None:
        """Take what a unit brought back that its core had overwritten at a place."""
        core = self._core_of(unit)
        data = self._device.hbm.view(where.byte, where.nbytes)
        kept = []
        for lost in self._lost[where]:
            second = lost.met.second
            if core == self._core_of(second) and _is_behind(unit, second) and np.array_equal(data, lost.bytes):
                self._restored.add(id(lost.met))
            else:
                kept.append(lost)
        self._lost[where] = kept

    # --- the same, of rows of one transfer whose number tells who has the same ones (`row_races`) --------------------

    def changed_rows(self, rows: RowSet) -> Mask:
        """Return which rows the store at hand, of these, changed."""
        held = self._held(rows)
        return np.ones(rows.count, np.bool_) if held is None else held.changed

    def _held(self, rows: RowSet) -> HeldRows | None:
        """Return what the store at hand overwrote, where it is one of rows."""
        held = self._before[0] if self._before else None
        return held if isinstance(held, HeldRows) and (held.rows is rows or held.rows == rows) else None

    def has_room(self, losses: int) -> bool:
        """Return whether so many stores may still be kept until their core makes up for them."""
        return self._losses + losses <= _MOST

    def same_rows(self, old: Unit, new: Unit, rows: RowSet, these: Mask) -> None:
        """Note two stores of the same bytes to some rows."""
        for one, other in ((old, new), (new, old)):
            left = these.copy()
            for low, high in self._spans_of(other):
                left[rows.range(low, high)] = False
            if left.any():
                self._row_echoes.setdefault((one.actor, one.number), []).append((rows, left, other))

    def differ_rows(self, finding: Finding, old: Unit, new: Unit, rows: RowSet, these: Mask) -> None:
        """Note meetings of two stores of other bytes; there is room for all of them."""
        met = _MetRows(old, new, rows, these, np.zeros(rows.count, np.bool_))
        self._met_rows.setdefault(id(finding), []).append(met)
        held = self._held(rows)
        if held is not None and rows.nbytes <= _KEPT:
            self._losses += int(np.count_nonzero(these))
            self._lost_rows.setdefault(rows.number, []).append((met, held.was))

    def stored_rows(self, unit: Unit, rows: RowSet) -> None:
        """Take a store of rows, as `stored` takes each of them."""
        held = self._held(rows)
        if held is not None and not held.changed.all():
            self._idle_rows[unit.actor, unit.number] = rows, ~held.changed
        if not self._losses:
            return
        for where in self._lost_at.near(rows.box.byte, rows.box.end):
            if self._lost[where] and any(one.overlaps(where) for one in rows.near(where.byte, where.end)):
                self._restore(unit, where)
        core = self._core_of(unit)
        for met, was in self._lost_rows.get(rows.number, ()):
            if held is not None and core == self._core_of(met.second) and _is_behind(unit, met.second):
                met.restored[(held.now == was).all(1)] = True

    def _are_harmless(self, met: _MetRows) -> bool:
        """Return whether every one of the meetings of rows gives the same bytes in either order."""
        left = met.these & ~met.restored
        for stays, goes in ((met.first, met.second), (met.second, met.first)):
            for rows, these, unit in self._row_echoes.get((stays.actor, stays.number), ()):
                if rows.number == met.rows.number and _is_behind(unit, goes):
                    left &= ~these
        if not left.any():
            return True
        return all(
            self._made_up(met.first, met.second, region) or self._made_up(met.second, met.first, region)
            for region in met.rows.near(met.rows.box.byte, met.rows.box.end, left)
        )

    # --- the end -----------------------------------------------------------------------------------------------------

    def harmless(self, finding: Finding) -> bool:
        """Return whether every meeting of a finding gives the same bytes in either order."""
        met, rows = self._met.get(id(finding), ()), self._met_rows.get(id(finding), ())
        return bool(met or rows) and all(map(self._is_harmless, met)) and all(map(self._are_harmless, rows))

    def _is_harmless(self, met: _Met) -> bool:
        if met.read is not None:
            # The store changed nothing, or the reader's own core stored the same bytes before it read.
            write = met.second if met.read is met.first else met.first
            idle = self._idle.get((write.actor, write.number))
            near = [] if idle is None else idle.near(met.region.byte, met.region.end)
            rows, these = self._idle_rows.get((write.actor, write.number), (None, None))
            if rows is not None and these is not None:
                near += rows.near(met.region.byte, met.region.end, these)
            return _cover(near, met.region) or self._echoed(write, met.read, met.region)
        # The one store is overwritten by its own core, with what the other one brings.
        return (
            id(met) in self._restored
            or self._made_up(met.first, met.second, met.region)
            or self._made_up(met.second, met.first, met.region)
        )

    def _echoed(self, write: Unit, behind: Unit, region: Region) -> bool:
        return self._is_echoed(write, region, lambda unit: _is_behind(behind, unit))

    def _made_up(self, stays: Unit, goes: Unit, region: Region) -> bool:
        return self._is_echoed(stays, region, lambda unit: _is_behind(unit, goes))

    def _is_echoed(self, write: Unit, region: Region, counts: Callable[[Unit], bool]) -> bool:
        """Return whether units that count stored the same bytes as a store, all over a region."""
        key = write.actor, write.number
        stored, parts = self._echoes.get(key), []
        if stored is not None:
            near = self._echoed_at[key].near(region.byte, region.end)
            parts = [both for both in near if any(map(counts, stored[both]))]
        for rows, these, unit in self._row_echoes.get(key, ()):
            if counts(unit):
                parts += rows.near(region.byte, region.end, these)
        return _cover(parts, region)


def _sources_of(transfer: Transfer) -> tuple[tuple[int, int], ...]:
    """Return which ranges of device memory a transfer reads."""
    request = transfer.request
    if type(request) is RowsRequest and not request.rows.adds and request.rows.sides[0].space != "HBM":
        return ()
    return tuple([side.span for side in transfer.reads if side.space == "HBM"])


def _cover(parts: Sequence[Region], whole: Region) -> bool:
    """Return whether every byte of a region of device memory lies in one of several others."""
    if any(part.covers(whole) for part in parts):
        return True
    if len(parts) < 2 or whole.nbytes > _COVERED:
        return False
    missing = np.zeros(whole.nbytes, np.bool_)
    for region, value in ((whole, True), *((part, False) for part in parts)):
        for low, high in region.runs():
            missing[max(low - whole.byte, 0) : max(high - whole.byte, 0)] = value
    return not missing.any()


def _is_behind(unit: Unit, other: Unit) -> bool:
    """Return whether a unit comes behind another one; one that breaks the order of their queue is a race of its own."""
    return unit.number > other.number if unit.actor == other.actor else unit.knows(other.actor, other.number)
