"""racecheck: two accesses to one byte, one of them a write, that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from emulator.checks.alike import Alike
from emulator.checks.clocks import Clocks
from emulator.checks.finding import Finding, Site, Words, amend, finding_later
from emulator.checks.history import Clock, Floors, Unit
from emulator.checks.in_place import Reread, rereads_of
from emulator.checks.inside import Clash, clash_of, is_simple
from emulator.checks.kinds import KINDS
from emulator.checks.place import Names, Once, operands_at, regions_touched, site_of, unit_site, unit_site_later
from emulator.checks.remedies import Carried, carried, hint_of, wait_of
from emulator.checks.row_races import Looked, Met, RowRecord, RowShadow, even_rows
from emulator.checks.row_sets import Mask, RowSet, are_apart
from emulator.checks.shadow import Cell, Record, Shadow
from emulator.checks.stores import Stores
from emulator.device import Device
from emulator.dma.regions import regions_of, side_regions
from emulator.dma.ring_order import keeps_order
from emulator.dma.transfer import Part, Transfer
from emulator.events import Event, Touches
from formats.regions import RegionParts

__all__ = ["Racecheck"]

_SHIFT = 10  # bytes of a bucket on chip: half a PSUM bank
_HBM_SHIFT = 14
_HBM_BUCKETS = 64  # a variable has about as many buckets, so that a transfer of all of it stays cheap
_LIMIT = 200  # distinct pairs reported
_REGIONS = 256  # meetings of a pair whose bytes are kept

_KINDS = {(True, True): "write-write", (True, False): "write-read", (False, True): "read-write"}


class Racecheck:
    """Find races in one run: those of this schedule and of every other one.

    Needs `Clocks` to run before it. Accesses on one engine are ordered as they stand (isa.md 11); those on one queue
    where the same DMA engine makes both (hardware.md 4.1).
    """

    name = "racecheck"

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.findings: list[Finding] = []
        self.accesses = self.races = 0
        # By the two places: the finding, the unit that came first here, and the other one where the order is open.
        self._by_pair: dict[tuple[object, ...], tuple[Finding, Unit, Unit | None]] = {}
        self._units: dict[int, tuple[Unit, Unit]] = {}  # both sides of a pair, by its finding
        self._transfers: dict[tuple[int, int], tuple[Part, ...]] = {}  # the last one looked at, by place
        self._chip: dict[tuple[str, int], Shadow] = {}
        self._hbm: dict[int, Shadow] = {}
        self._cells: dict[RegionParts, Cell] = {}  # of all of them
        self._sites: dict[int, tuple[Unit, Once]] = {}  # of units that were told of
        self._floors: Floors | None = None  # of units of a run that is over
        self._host: Clock | None = None  # what is known behind that run
        self._known: Clock = ()  # to the word or transfer at hand, as it runs
        self._rows: dict[int, RowShadow] = {}  # by the identity of the memory's records
        # Of a run that is over: its stores, which are carried out again, and what scatters did when they were over.
        self.stores: Stores | None = None
        self.doubles: dict[int, tuple[Clash, ...]] = {}
        self.alike = Alike(lambda unit: clocks.names[unit.actor][0])
        clocks.listeners.append(self)

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and has not moved."""
        self.device = device
        self._names = Names(device)
        self.alike.attach(device)
        self._pair = len(device.cores) > 1
        if self._pair:
            self.on_effect = self.alike.on_effect  # a device asks who has one when it starts to run
        self.findings += [self._in_place(one) for one in rereads_of(device)]

    def _in_place(self, one: Reread) -> Finding:
        """Return the finding of a word that writes what it reads later."""
        core, engine, pc, operand, region = one
        loaded = self.device.cores[core].loaded
        word = None if loaded is None else loaded.word_of(engine, pc)
        site = site_of(self.device, core, engine, pc, word, access="writes", operand="dst")
        name = self._names.name(region, engine, pc)
        message = (f"{engine} pc {pc} writes bytes of {name or region.space} that it reads later as {operand}: what a "
                   "device reads there is open")  # fmt: skip
        hint = "write to another tile, or in two words of which the first copies what the second reads"
        severity = KINDS["racecheck:in-place"].severity
        return Finding("racecheck", "in-place", severity, message, site, (), region, name, hint)

    def on_event(self, event: Event) -> None:
        """Nothing to do: the clocks hand over every event with its unit."""

    def on_unit(self, unit: Unit, touches: Touches) -> None:
        """Check what one word or transfer touches."""
        self._known = unit.clock
        if unit.actor >= self.clocks.engines:
            if self.stores is not None:
                self.alike.begin(self.stores.redo(unit.word))
            self._inside(unit, unit.word)
        if self._pair:
            self._access(unit, touches.read_places, touches.write_places)
            return
        cells = self._cells
        reads, writes = touches.read_places, touches.write_places
        self.accesses += len(reads) + len(writes)
        for region in reads:
            cell = cells.get(region) or self._shadow(region).cell(region)
            cell.shadow.touch(cell, unit, False)
        for region in writes:
            cell = cells.get(region) or self._shadow(region).cell(region)
            cell.shadow.touch(cell, unit, True)

    def release(self) -> None:
        """Leave no cycles behind; nothing may be checked after that."""
        for shadow in (*self._chip.values(), *self._hbm.values()):
            shadow.release()
        self._chip.clear()
        self._hbm.clear()
        self._rows.clear()

    def look_at(self, units: Iterable[Looked], host: Clock) -> None:
        """Check some words and transfers of a run that is over, in their order, and some of what each touched.

        `host` is what is known to whoever has waited for all engines. Stores of transfers without a unit are carried
        out again, and no more.
        """
        even = even_rows(self.device, units)
        self._host = host
        self._floors = Floors([unit.clock for unit, *_ in even if unit is not None], host)
        for unit, word, reads, writes, sets in even:
            if self.stores is not None and isinstance(word, Transfer):
                self.alike.begin(self.stores.redo(word))
            if unit is not None:
                self._access(unit, reads, writes)
                for rows in sets:
                    self._store_rows(unit, rows)
                self._floors.over += 1
        self._floors = None

    def _inside(self, unit: Unit, transfer: Transfer) -> None:
        """Report what a transfer does to itself; the same transfer of the same word is looked at once."""
        if is_simple(transfer) and not self._transfers:
            return
        place = self._place(unit)
        if are_apart(transfer):
            self._transfers[place] = ()
            return
        if self._transfers.get(place) == transfer.parts:
            return
        self._transfers[place] = transfer.parts
        clash = (
            None
            if (place, "itself") in self._by_pair
            else clash_of(self.device, transfer, self.doubles.get(id(transfer)))
        )
        if clash is None:
            return
        site = unit_site(self.device, self.clocks.names, unit, access="writes", operand="dst")
        region = side_regions(clash.side, self.device.arch.sbuf_bytes.whole)[0]
        name = self._names.name(region, site.owner, site.pc)
        where = f"nc{site.core} {site.engine} pc {site.pc}"
        if clash.kind == "overlap":
            message = (
                f"{where} reads and writes the same bytes in one transfer, or writes them twice: {name or region.space}"
            )
            hint = "copy to other bytes, or in two transfers of which the second waits for the first"
        else:
            rows = " and ".join(str(row) for row in clash.rows)
            message = (f"{where} has index {clash.value} in rows {rows}: which of them {name or region.space} keeps is "
                       "open")  # fmt: skip
            hint = "make the indices of one transfer distinct, or bring rows with the same index in transfers that wait"
        finding = Finding("racecheck", clash.kind, "error", message, site, (), region, name, hint)
        self._by_pair[place, "itself"] = finding, unit, None
        self.findings.append(finding)

    def _access(self, unit: Unit, reads: Sequence[RegionParts], writes: Sequence[RegionParts]) -> None:
        self.accesses += len(reads) + len(writes)
        cells = self._cells
        for region in reads:
            cell = cells.get(region)
            if cell is None:
                cell = self._shadow(region).cell(region)
            cell.shadow.touch(cell, unit, False)
        for region in writes:
            cell = cells.get(region)
            if cell is None:
                cell = self._shadow(region).cell(region)
            cell.shadow.touch(cell, unit, True)
            if self._pair and cell.region.space == "HBM":
                self.alike.stored(unit, cell.region)

    def _shadow(self, region: RegionParts) -> Shadow:
        """Return the records of the memory or variable in which a region lies."""
        if region[0] != "HBM":
            found = self._chip.get(region[:2])
            if found is None:
                found = self._chip[region[:2]] = self._new_shadow(_SHIFT)
            return found
        allocation = self.device.hbm.find(region[4])
        start = 0 if allocation is None else allocation.address
        shadow = self._hbm.get(start)
        if shadow is None:
            nbytes = 0 if allocation is None else allocation.nbytes
            shift = max(_HBM_SHIFT, (nbytes // _HBM_BUCKETS).bit_length())
            shadow = self._hbm[start] = self._new_shadow(shift)
        return shadow

    def _new_shadow(self, shift: int) -> Shadow:
        return Shadow(shift, self._race, self._floor, self.clocks.engines, self._in_ring, self._cells)

    def _floor(self) -> Clock:
        """Return what everybody knows whose accesses are still to come, those of the unit at hand among them.

        That one is over to the clocks: its actor may be at its end, or wait for more before what comes next.
        """
        return tuple(map(min, self.clocks.floor(), self._known)) if self._floors is None else self._floors.now

    @staticmethod
    def _in_ring(old: Record, new: Record) -> bool:
        """Return whether the rings of their queue order two transfers."""
        return keeps_order(old.unit.word, old.write, new.unit.word, new.write, new.region.common(old.region))

    def _race(self, old: Record, new: Record) -> bool:
        """Report a race; return whether it changes nothing, so that others of the same access may matter."""
        apart = self._are_apart(old, new)
        same = old.write and new.write and apart and not self.alike.changes(new.region)
        if same:
            self.alike.same(old, new)
        finding = self._told(old, new, same)
        if finding is not None and apart and not same:
            self.alike.differ(finding, old, new)
        return same

    def _are_apart(self, old: Record, new: Record) -> bool:
        """Return whether two cores touch the same bytes of device memory."""
        return self.clocks.names[old.actor][0] != self.clocks.names[new.actor][0] and new.region.space == "HBM"

    def _told(self, old: Record, new: Record, same: bool) -> Finding | None:
        """Return the finding of a race, made for the first one of its two places; None where there are too many.

        Two cores that do the same work store the `same` bytes: odd, and no reason to fail.
        """
        self.races += 1
        pair = (self._place(old.unit), self._place(new.unit), old.write, new.write)
        known = self._by_pair.get(pair)
        if known is not None:
            known[0].count += 1
            self._read_by_transfer(known[0], old, new)
            if not same:
                self._differs(known[0])
            return known[0]
        if len(self._by_pair) >= _LIMIT:
            return None
        region = new.region.common(old.region)
        kind = "same-bytes" if same else _KINDS[old.write, new.write]
        word, (_, pc) = new.unit.word, pair[1]
        name = self._names.name(region, getattr(word, "engine", self.clocks.names[new.actor][1]), pc)
        sides = self._side(new, old), self._side(old, new)
        words = partial(_words, *sides, kind, old.write, old.actor == new.actor, name, name or region.space)
        finding = finding_later("racecheck", kind, words, region)
        finding.open = not old.write
        self._read_by_transfer(finding, old, new)
        self._by_pair[pair] = finding, old.unit, None if old.write else new.unit
        self._units[id(finding)] = old.unit, new.unit
        self.findings.append(finding)
        return finding

    @staticmethod
    def _differs(finding: Finding) -> None:
        """Take a race of the places of a finding in which bytes differ."""
        if finding.kind == "same-bytes":
            finding.kind, finding.severity = "write-write", "error"

    @staticmethod
    def _read_by_transfer(finding: Finding, old: Record, new: Record) -> None:
        """Note what a transfer read in a meeting; nothing at all where that would become too much."""
        read = new if old.write and not new.write else old if new.write and not old.write else None
        if read is not None and isinstance(read.unit.word, Transfer) and len(finding.regions) == finding.count - 1:
            finding.regions = (*finding.regions, new.region.common(old.region)) if finding.count < _REGIONS else ()

    # --- rows of one transfer ----------------------------------------------------------------------------------------

    def _store_rows(self, unit: Unit, rows: RowSet) -> None:
        """Check rows that a transfer scatters."""
        self.accesses += rows.count
        shadow = self._shadow(rows.box)
        beside = self._rows.get(id(shadow))
        if beside is None:
            beside = self._rows[id(shadow)] = RowShadow(shadow, self._race_rows)
        beside.touch(unit, rows)
        if self._pair:
            self.alike.stored_rows(unit, rows)

    def _race_rows(self, met: list[Met], new: RowRecord) -> list[Mask]:
        """Report races of rows; return for each meeting at which rows it changes nothing, as `_race` does."""
        losses = sum(int(np.count_nonzero(one.these)) for one in met)
        if not (self.alike.has_room(losses) and all(one.old.write for one in met)):
            return self._race_one_by_one(met, new)
        changed = None
        stay = []
        for old, these in met:
            row = new.rows.first(these)
            low = int(new.rows.starts[row])
            first, this = Met(old, these).at(low), new.at(low)
            apart, same = self._are_apart(first, this), np.zeros_like(these)
            if apart:
                changed = self.alike.changed_rows(new.rows) if changed is None else changed
                same = these & ~changed
                if same.any():
                    self.alike.same_rows(old.unit, new.unit, new.rows, same)
            stay.append(same)
            differ = these & ~same
            finding = self._told(first, this, not differ[new.rows.place(row)])
            count = int(np.count_nonzero(these)) - 1
            self.races += count
            if finding is None:
                continue
            finding.count += count
            if differ.any():
                self._differs(finding)
                if apart:
                    self.alike.differ_rows(finding, old.unit, new.unit, new.rows, differ)
        return stay

    def _race_one_by_one(self, met: list[Met], new: RowRecord) -> list[Mask]:
        """Report races of rows, row by row."""
        stay = [np.zeros_like(one.these) for one in met]
        order = sorted(range(len(met)), key=lambda number: met[number].old.serial)
        for place in np.argsort(new.rows.order).tolist():
            low = int(new.rows.lows[place])
            for number in order:
                if met[number].these[place]:
                    stay[number][place] = self._race(met[number].at(low), new.at(low))
        return stay

    def _place(self, unit: Unit) -> tuple[int, int]:
        word = unit.word
        return unit.actor, word.pc if isinstance(word, Transfer) else unit.loaded.pc if unit.loaded is not None else -1

    def _side(self, record: Record, other: Record) -> Callable[[], Site]:
        """Return what makes the site of an access as it is now; those of one word have its texts in common."""
        unit = record.unit
        known = self._sites.get(id(unit))
        if known is None or known[0] is not unit:
            known = self._sites[id(unit)] = unit, Once(unit_site_later(self.device, self.clocks.names, unit))
        core, engine = self.clocks.names[record.actor]
        operand = operands_at(self.device, core, engine, unit.word, record.region, record.write)
        access = "writes" if record.write else "reads"
        return partial(_side_of, known[1], access, operand, unit.clock[other.actor])

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Check what the host reads after the end, and say which wait would order each pair."""
        device = self.device
        if device.fault is not None:
            width = device.arch.sbuf_bytes.whole
            for unit in self.clocks.unfinished():
                unit.time_ps = device.now_ps if unit.time_ps < 0 else unit.time_ps
                if isinstance(unit.word, Transfer):
                    self._access(unit, regions_of(unit.word.reads, width), regions_of(unit.word.writes, width))
                else:
                    core, engine = self.clocks.names[unit.actor]
                    self._access(unit, *regions_touched(device, core, engine, unit.word))
        if device.model is not None and device.outcome == "finished":
            self._outputs(self.clocks.everything() if self._host is None else self._host)
        for finding, before, after in self._by_pair.values():
            harmless = self.alike.harmless(finding)
            if harmless:
                finding.kind, finding.severity = "same-bytes", KINDS["racecheck:same-bytes"].severity
            first, second = self._units.get(id(finding), (before, None))
            ahead = self._carried(first, first if second is None else second)
            back = None if second is None else self._carried(second, first)
            is_end = second is None and finding.kind == "output-not-awaited"
            amend(finding, partial(_advise, harmless, ahead, back, after is not None, is_end))

    def _carried(self, unit: Unit, other: Unit) -> Carried:
        """Return what is signalled from a unit on, to anybody and to the core of another one."""
        names = self.clocks.names
        return carried(names[unit.actor], self.clocks.signalled(unit.actor), unit.number, names[other.actor][0])

    def _outputs(self, host: Clock) -> None:
        """Report stores to outputs that no engine waits for: the program may end before they do."""
        assert self.device.model is not None
        for tensor in self.device.model.outputs:
            placed = self.device.model.tensors[tensor.name]
            shadow = self._hbm.get(placed.address)
            beside = self._rows.get(id(shadow))
            rows = beside.writes(host) if beside is not None else ()
            for record in shadow.writes(rows, host) if shadow is not None else ():
                self.races += 1
                known = self._by_pair.get((self._place(record.unit), "host"))
                if known is not None:
                    known[0].count += 1
                    continue
                site = unit_site(self.device, self.clocks.names, record.unit, access="writes", operand="dst")
                message = (
                    f"the program may end before nc{site.core} {site.engine} pc {site.pc} has stored "
                    f"{tensor.name}: no engine waits for it"
                )
                hint = hint_of(self._carried(record.unit, record.unit), site)
                finding = Finding(
                    "racecheck", "output-not-awaited", "error", message, site, (), record.region, tensor.name, hint
                )
                self._by_pair[self._place(record.unit), "host"] = finding, record.unit, None
                self.findings.append(finding)


def _side_of(site: Callable[[], Site], access: str, operand: str, seen: int) -> Site:
    return site()._replace(access=access, operand=operand, seen=seen)


def _words(
    this: Callable[[], Site], that: Callable[[], Site], kind: str, wrote: bool, alone: bool, name: str, place: str
) -> Words:
    """Say what a race is: this side comes behind that one, which `wrote`; `alone` tells that one actor has both."""
    here, there = this(), that()
    what = "reads what" if kind == "write-read" else "writes what"
    did = "still be writing" if wrote else "still be reading"
    message = (
        f"nc{here.core} {here.engine} pc {here.pc} {what} nc{there.core} {there.engine} pc {there.pc} may "
        f"{did}: {place}"
    )
    if alone:
        message += "; transfers of one queue are in order only on the same DMA engine"
    if kind == "same-bytes":
        message += "; both stored the same bytes here"
    return Words(message, here, (there,), name)


def _advise(harmless: bool, ahead: Carried, back: Carried | None, is_open: bool, is_end: bool, found: Finding) -> None:
    """Say in a finding which waits would order its sides, what each signals being known; the order seen comes first."""
    site, other = found.site, found.other
    if harmless:
        found.message += "; both cores do the same, and the bytes are the same in either order"
    if not found.hint:
        found.hint = hint_of(ahead, site)
        # A read that came before a write may have been meant to come behind it.
        if is_open and back is not None and other is not None and other.core == site.core:
            found.hint += f"; if the write is to come first: {hint_of(back, other)}"
    if is_end:
        found.waits = (wait_of(ahead, site, behind=True),)
    elif back is not None and other is not None:
        found.waits = (wait_of(ahead, site), wait_of(back, other))
    else:
        found.waits = ()
