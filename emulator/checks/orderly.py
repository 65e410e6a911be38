"""Runs in which all is in order: one pass over the notes tells, and the checks need not look at each of them.

Nearly every program is built alike: a semaphore is raised by one engine or queue and never goes down, words wait for it
to be so high, what they touch lies in tiles that are in use there. Of such a run everything that clocks and memcheck
would say in the end follows from plain lists, and racecheck is left with the accesses of which something may not be in
order: to bytes that two touch without one waiting for the other. Of any other run nothing is said here, and the checks
look at all of it themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from emulator.checks.clocks import Key
from emulator.checks.engine_state import Groups, Tables
from emulator.checks.history import Clock, Unit
from emulator.checks.inside import Clash, clash_of, is_simple
from emulator.checks.kept import traits_of
from emulator.checks.knowledge import Knowledge, Raises, UnknownError, set_by
from emulator.checks.place import Names
from emulator.checks.row_races import Looked
from emulator.checks.row_sets import Places, RowSet, are_apart, regions_in, touched_by
from emulator.checks.tiles import Tiles
from emulator.checks.touched import (
    BY,
    NOBODY,
    OWNER,
    PSUM,
    READS,
    SINCE,
    SPANS,
    UNTIL,
    WRITE,
    Cell,
    Group,
    Last,
    Log,
    Moved,
    Touched,
    Use,
    share,
)
from emulator.device import Device
from emulator.dma.ring_order import keeps_order
from emulator.dma.transfer import Part, Transfer
from emulator.events import Event
from emulator.notes import COMPARED, ENDED, EXECUTED, ISSUED, MOVED, Notes
from formats.isa import EventSemaphoreRangeClear, Instruction
from formats.named_tuple import NamedTuple
from formats.regions import RegionParts

__all__ = ["Order", "Rest", "order_of"]

_KIND = itemgetter(0)
_EVER = 1 << 62  # a word behind all
_NO_TILE: Mapping[str, tuple[int, int]] = {}
_made = tuple.__new__  # a named tuple in half the time
_ASIDE = (COMPARED, ENDED)  # notes that say nothing of bytes and semaphores


class Rest(NamedTuple):
    """What racecheck has to look at, what each actor signalled, and what the host knows at the end.

    `units` are words and transfers in the order in which they were over, with the regions that they read and wrote;
    those of transfers that touch nothing that matters are None. `signals` returns those of an actor.
    """

    units: list[Looked]
    signals: Callable[[int], list[tuple[int, Key, int]]]
    host: Clock


class Order:
    """What is left to know of a run: what may not be in order, and what was signalled and awaited.

    Of a run that hangs the latter is not known: words that were not reached may ask for more.
    """

    __slots__ = ("_knowledge", "rest")

    def __init__(self, knowledge: Knowledge | None, rest: Rest | None) -> None:
        self._knowledge, self.rest = knowledge, rest

    @property
    def last_signals(self) -> list[dict[Key, int]]:
        """Return the last signals of each actor, by what they raised."""
        return [] if self._knowledge is None else self._knowledge.last_signals()

    @property
    def needs(self) -> dict[Key, int] | None:
        """Return the largest value that each semaphore is awaited with; None where that may be a part of a transfer."""
        return None if self._knowledge is None else self._knowledge.needed()

    @property
    def is_used_up(self) -> bool:
        """Return whether nothing was surely signalled that nobody waits for; that may be so where it is not told."""
        return self._knowledge is not None and self._knowledge.is_used_up


def order_of(device: Device, notes: Notes, doubles: Mapping[int, Sequence[Clash]]) -> Order | None:
    """Return what is left to know of a run that has finished, or hangs; None where the checks have to look themselves.

    `doubles` is what scatters did when they were over, by transfer.
    """
    if device.outcome not in ("finished", "hang"):
        return None
    look = _Look(device, notes, doubles)
    try:
        return look.order()
    except (LookupError, UnknownError):
        return None
    finally:
        look.let_go()


class _Look:
    """One pass over the notes of a run; whatever is unusual raises `UnknownError`."""

    def __init__(self, device: Device, notes: Notes, doubles: Mapping[int, Sequence[Clash]]) -> None:
        self._device, self._notes, self._doubles = device, notes, doubles
        self._hangs = device.outcome == "hang"
        self._touched, self._width = Touched(), device.arch.sbuf_bytes.whole
        names = Names(device)
        self._tiles = Tiles(device, _odd, names) or None
        self._groups = Groups(device, _odd, names) if traits_of(device).multiplies else None
        self._tables = Tables(device, _odd)
        self._knowledge = Knowledge(device, notes)
        self._moved: dict[tuple[int, int], tuple[Part, ...]] = {}  # the last transfer looked at, by place
        self._suspects: list[RegionParts | RowSet] = []
        self._units: list[Use] = []  # what is over

    def order(self) -> Order:
        """Return what is left to know of the run."""
        knowledge, units, width = self._knowledge, self._units, self._width
        places = self._touched.places
        last_of, first = places.get, self._first
        actors, known, count = knowledge.actors, knowledge.known, knowledge.count
        raises, barriers, loops, begun = knowledge.raises, knowledge.barriers, knowledge.loops, knowledge.begun
        groups, tables = self._groups, self._tables
        flights: list[deque[Any]] = [deque() for _ in actors]
        sets: tuple[int, ...] = ()  # semaphores that a word gives a number, whatever they were
        # What a wait tells does not depend on when it is met, but where semaphores are set back, or two cores meet.
        early = loops or bool(barriers)
        whose, usual = knowledge.whose, Instruction.SYNC
        for note in self._notes if early else filter(_KIND, self._notes):  # what issued says nothing then
            what = note[0]
            if what == EXECUTED:
                _, engine, loaded, bound, _, _, changes = note
                actor, core, owner = whose[engine]
                pc, touches = loaded.pc, bound.action
                if early:
                    number, clock = flights[actor].popleft()
                else:
                    count[actor] = number = count[actor] + 1
                    clock = known[actor] if not bound.mode and bound.usual else begun(actor, core, loaded, bound)
                unit = actor, number, clock, note, touches
                if loaded.transfer is not None:
                    flights[actors[core, loaded.queue]].append(unit)
                if owner == "Activation" and not tables.is_known(core, loaded.word):
                    tables.on_event(_event(note, core))
                if changes:
                    word = loaded.word
                    if type(word).SYNC is not usual:
                        sets = set_by(word, touches)
                    elif type(word) is EventSemaphoreRangeClear:
                        raise UnknownError
            elif what == MOVED:
                _, transfer, _, changes, _ = note
                actor = actors[transfer.request.core, transfer.request.queue]
                trigger = flights[actor].popleft()
                clock = knowledge.triggered(actor, trigger)
                count[actor] = number = count[actor] + 1
                touches = _made(Moved, (*touched_by(transfer, width), trigger[3][2]))
                unit = actor, number, clock, note, touches
                if self._moved or not is_simple(transfer):
                    self._look_inside(actor, transfer)
            elif what == ISSUED:
                _, engine, loaded, bound, _ = note
                actor, core, _ = whose[engine]
                count[actor] = number = count[actor] + 1
                clock = known[actor] if not bound.mode and bound.usual else begun(actor, core, loaded, bound)
                flights[actor].append((number, clock))
                continue
            elif what in _ASIDE:
                continue
            else:
                raise UnknownError
            units.append(unit)
            if changes:
                if loops:
                    knowledge.change(actor, unit, sets, changes)
                    sets = ()
                elif sets:
                    raise UnknownError
                else:
                    for index, old, new, its_core, kind in changes:
                        if barriers and (its_core, index) in barriers and kind == "semaphore":
                            if new < 0:
                                raise UnknownError
                            continue
                        history = raises[its_core].get(index)
                        if history is None:
                            history = Raises((its_core, "semaphore", index), actor, old, new - old)
                            raises[its_core][index] = history
                        if new <= old or history.actor != actor or kind != "semaphore":
                            raise UnknownError
                        if new - old != history.step:
                            knowledge.is_suspect = True
                        history.values.append(new)
                        history.units.append(unit)
            elif changes is None:
                raise UnknownError
            if what == MOVED:
                self._move(unit, transfer)
                continue
            is_near = False
            for place in touches.read_places:
                last = last_of(place)
                if last is None:
                    last = places[place] = first(place, engine, core, owner, pc)
                    last[READS] = [unit]
                    if last[PSUM]:
                        is_near = True
                    continue
                by, tiled, is_psum, wrote, reads, has, since, until, _ = last
                if is_psum:
                    is_near = True
                if by is engine and since <= pc <= until:  # whose words are in order
                    if reads:
                        reads[-1] = unit
                    else:
                        last[READS] = [unit]
                    continue
                if by is not engine:
                    last[BY] = None
                if tiled == core and not (has is owner and since <= pc <= until):
                    self._go_home(last, place, owner, pc)
                if wrote is not None and clock[wrote[0]] < wrote[1] and wrote[0] != actor:
                    self._compare(unit, place, last, False)
                if not reads:
                    last[READS] = [unit]
                elif reads[-1][0] == actor:
                    reads[-1] = unit
                else:
                    reads.append(unit)
            for place in touches.write_places:
                last = last_of(place)
                if last is None:
                    last = places[place] = first(place, engine, core, owner, pc)
                    last[WRITE] = unit
                    if last[PSUM]:
                        is_near = True
                    continue
                by, tiled, is_psum, wrote, reads, has, since, until, _ = last
                if is_psum:
                    is_near = True
                if by is engine and since <= pc <= until:
                    last[WRITE] = unit
                    continue
                if by is not engine:
                    last[BY] = None
                if tiled == core and not (has is owner and since <= pc <= until):
                    self._go_home(last, place, owner, pc)
                if wrote is not None and clock[wrote[0]] < wrote[1] and wrote[0] != actor:
                    self._compare(unit, place, last, True)
                else:
                    for one in reads:
                        if clock[one[0]] < one[1] and one[0] != actor:
                            self._compare(unit, place, last, True)
                            break
                last[WRITE], last[READS] = unit, NOBODY
            if is_near and groups is not None:
                begins = partial(_event, note, core)
                if not groups.is_plain(core, loaded.word, touches, begins):
                    groups.on_event(begins())
        if groups is not None and not self._hangs:
            groups.finish()
        if knowledge.is_unsure:
            raise UnknownError
        if not self._hangs and knowledge.events and any(any(core.events.values) for core in self._device.cores):
            raise UnknownError
        if self._touched.bring_together():
            self._meet_groups()
        self._see_what_stays()
        if self._hangs and self._suspects:
            raise UnknownError
        return Order(None if self._hangs else knowledge, self._rest() if self._suspects else None)

    def let_go(self) -> None:
        """Leave nothing behind that goes round in a circle."""
        self._touched.let_go()

    # --- what each does ----------------------------------------------------------------------------------------------

    def _first(self, place: RegionParts | RowSet, engine: Any, core: int, owner: str, pc: int) -> Last:
        """Return what is known of a place that nothing has touched before a word of an engine; None is a queue."""
        if place[0] == "HBM":  # whoever reads it at the end has to know who wrote it
            return [None, -1, False, None, NOBODY, "", 0, 0, _NO_TILE]
        is_psum, tiles = place[0] == "PSUM", self._tiles
        if place[1] != core:
            tiled = -1 if tiles is None else place[1]
            return [None, tiled, is_psum, None, NOBODY, "", 0, 0, _NO_TILE]
        if tiles is None:
            return [engine, -1, is_psum, None, NOBODY, owner, 0, _EVER, _NO_TILE]
        home = tiles.home_of(place, owner, pc)
        if home is None:
            raise UnknownError
        return [engine, core, is_psum, None, NOBODY, owner, *home]

    def _go_home(self, last: Last, place: RegionParts | RowSet, owner: str, pc: int) -> None:
        """See to it that a place lies in a tile in use at a word, and remember for which words it does."""
        span = last[SPANS].get(owner)
        if span is not None and span[0] <= pc <= span[1]:  # most engines that touch it mean the tile of the one before
            last[OWNER], (last[SINCE], last[UNTIL]) = owner, span
            return
        home = None if self._tiles is None else self._tiles.home_of(place, owner, pc)
        if home is None:
            raise UnknownError
        last[OWNER], (last[SINCE], last[UNTIL], last[SPANS]) = owner, home

    def _move(self, unit: Use, transfer: Transfer) -> None:
        """Look at what a transfer touches; those of a queue do not wait for one another."""
        _, _, clock, _, touches = unit
        request, places = transfer.request, self._touched.places
        core, owner, pc = request.core, request.engine, request.pc
        for place in touches.read_places:
            last = places.get(place)
            if last is None:
                last = places[place] = self._first(place, None, core, owner, pc)
                last[READS] = [unit]
                continue
            _, tiled, _, wrote, reads, has, since, until, _ = last
            last[BY] = None
            if tiled == core and not (has is owner and since <= pc <= until):
                self._go_home(last, place, owner, pc)
            if wrote is not None and clock[wrote[0]] < wrote[1]:
                self._compare(unit, place, last, False)
            if reads:
                reads.append(unit)
            else:
                last[READS] = [unit]
        for place in touches.write_places:
            last = places.get(place)
            if last is None:
                last = places[place] = self._first(place, None, core, owner, pc)
                last[WRITE] = unit
                continue
            _, tiled, _, wrote, reads, has, since, until, _ = last
            last[BY] = None
            if tiled == core and not (has is owner and since <= pc <= until):
                self._go_home(last, place, owner, pc)
            if wrote is not None and clock[wrote[0]] < wrote[1]:
                self._compare(unit, place, last, True)
            else:
                for one in reads:
                    if clock[one[0]] < one[1]:
                        self._compare(unit, place, last, True)
                        break
            last[WRITE], last[READS] = unit, NOBODY

    def _look_inside(self, actor: int, transfer: Transfer) -> None:
        """See to it that a transfer does nothing to itself; the same one of the same word is looked at once."""
        place = actor, transfer.pc
        if are_apart(transfer):
            self._moved[place] = ()
            return
        if self._moved.get(place) == transfer.parts:
            return
        self._moved[place] = transfer.parts
        if clash_of(self._device, transfer, self._doubles.get(id(transfer))) is not None:
            raise UnknownError

    def _meet_groups(self) -> None:
        """Go through the accesses to places that may share bytes with others once more, now that these are known."""
        cell_of = self._touched.cells.get
        for unit in self._units:
            touches = unit[4]
            for place in touches.read_places:
                cell = cell_of(place)
                if cell is not None:
                    self._meet_group(unit, cell, cell.group, False)
            for place in touches.write_places:
                cell = cell_of(place)
                if cell is not None:
                    self._meet_group(unit, cell, cell.group, True)
                    cell.write = unit

    def _meet_group(self, unit: Use, cell: Cell, group: Group, write: bool) -> None:
        """Compare an access with the last ones of each actor to the group, and note it there.

        Who knows of an actor's last access knows of those before it; nearly all do.
        """
        actor, number, clock, _, _ = unit
        is_queue = actor >= self._knowledge.engines
        for by, log in group.writes.items():
            if clock[by] < log.last and (by != actor or is_queue):
                self._look_back(unit, cell, write, group, by, log, True)
        if write:
            for by, log in group.reads.items():
                if clock[by] < log.last and (by != actor or is_queue):
                    self._look_back(unit, cell, True, group, by, log, False)
        logs = group.writes if write else group.reads
        mine = logs.get(actor)
        if mine is None:
            mine = logs[actor] = Log()
            mine.by_cell = {} if is_queue else None
        # Transfers of a queue do not wait for one another: each of those that read may matter to one that writes.
        key = (number, cell) if is_queue else cell
        if key in mine:
            del mine[key]
        mine[key] = unit, cell
        mine.last = number
        if group.is_sorted and mine.by_cell is not None:
            mine.by_cell.setdefault(cell, []).append(unit)

    def _look_back(self, unit: Use, cell: Cell, write: bool, group: Group, by: int, log: Log, wrote: bool) -> None:
        """Compare an access with those to the same bytes that actor `by` made since the last one that is known.

        Raises LookupError where these are too many.
        """
        actor, number, clock, note, _ = unit
        if group.is_sorted:
            group.take(self._look_beside(unit, cell, write, by, log, wrote))
            return
        _, _, first, partitions, low, nbytes, _ = cell.region
        behind, high, known = first + partitions, low + nbytes, clock[by]
        looked = 0
        for old, other in reversed(log.values()):
            if old[1] <= known:
                break
            looked += 1
            if other.low >= high:
                continue
            _, _, its_first, its_partitions, its_low, its_nbytes, _ = other.region
            if its_low + its_nbytes <= low or its_first >= behind or its_first + its_partitions <= first:
                continue
            if not share(cell, other) or (by == actor and old[1] == number):
                continue
            if by != actor or not keeps_order(old[3][1], wrote, note[1], write, cell.common(other)):
                self._suspects += (cell.place, other.place)
        group.take(looked)

    def _look_beside(self, unit: Use, cell: Cell, write: bool, by: int, log: Log, wrote: bool) -> int:
        """Do that by the cells that share bytes with the one at hand; return how many accesses it was compared with."""
        actor, number, clock, note, _ = unit
        known, by_cell = clock[by], log.by_cell
        looked = 0
        for other, _ in ((cell, True), *(cell.near or ())):
            looked += 1
            if by_cell is None:
                found = log.get(other)
                if found is not None and found[0][1] > known:  # of another engine
                    self._suspects += (cell.place, other.place)
                continue
            for old in reversed(by_cell.get(other, ())):
                if old[1] <= known:
                    break
                looked += 1
                if by == actor and (
                    old[1] == number or keeps_order(old[3][1], wrote, note[1], write, cell.common(other))
                ):
                    continue
                self._suspects += (cell.place, other.place)
        return looked

    def _compare(self, unit: Use, place: RegionParts | RowSet, last: Last, write: bool) -> None:
        """Note what does not surely come before an access to the same place though it has to."""
        if last[WRITE] is not None and not self._is_over(last[WRITE], place, True, unit, write):
            self._suspects.append(place)
        if write:
            for one in last[READS]:
                if not self._is_over(one, place, False, unit, True):
                    self._suspects.append(place)

    def _is_over(self, old: Use, place: RegionParts | RowSet, wrote: bool, unit: Use, write: bool) -> bool:
        """Return whether an access surely comes before another one of the same place."""
        by, number, _, note, _ = old
        actor, mine, clock, its_note, _ = unit
        if by != actor:
            return clock[by] >= number
        if actor < self._knowledge.engines or number == mine or clock[actor] >= number:
            return True
        cell = Cell(place)
        return keeps_order(note[1], wrote, its_note[1], write, cell.common(cell))

    # --- the end -----------------------------------------------------------------------------------------------------

    def _see_what_stays(self) -> None:
        """See to it that no constant was written, and that at an end each store to an output was waited for."""
        device = self._device
        self._host = host = self._knowledge.host()
        if device.model is None:
            return
        constants = {
            one.address for core in device.model.cores for one in core.placement.by_name.values() if one.kind == "file"
        }
        spans = []
        for tensor in () if self._hangs else device.model.outputs:
            placed = device.model.tensors[tensor.name]
            spans.append((placed.address, placed.address + placed.nbytes))
        for place in self._touched.stored:
            write = self._touched.write_of(place)
            if write is None:
                continue
            byte = place[4]
            if host[write[0]] < write[1] and any(low <= byte < high for low, high in spans):
                raise UnknownError
            if constants and (found := device.hbm.find(byte)) is not None and found.address in constants:
                raise UnknownError

    def _rest(self) -> Rest:
        """Return what racecheck has to look at."""
        knowledge = self._knowledge
        matter = self._touched.reach_of(self._suspects)
        is_apart = matter.isdisjoint
        units: list[Looked] = []
        has_stores = len(self._device.cores) > 1  # which are carried out again
        for unit in self._units:
            touches = unit[4]
            if is_apart(touches.read_places) and is_apart(touches.write_places):
                if has_stores and unit[3][0] == MOVED:
                    units.append((None, unit[3][1], (), ()))
                continue
            made = self._unit(unit, knowledge.places[unit[0]])
            read, written = self._matters(touches.read_places, matter), self._matters(touches.write_places, matter)
            units.append((made, made.word, read, written))
        return Rest(units, self._signals, knowledge.spread(self._host))

    def _signals(self, place: int) -> list[tuple[int, Key, int]]:
        """Return what an actor signalled, by its place among everyone: number of the unit, what it raised, to what."""
        knowledge, barriers = self._knowledge, self._knowledge.barriers
        if place not in knowledge.places:
            return []
        found = []
        actor = knowledge.places.index(place)
        for by, number, _, note, _ in self._units:
            if by == actor:
                for index, old, new, core, kind in note[6] if note[0] == EXECUTED else note[3]:
                    if new > old and (core, index) not in barriers:
                        found.append((number, (core, kind, index), new))
        return found

    def _unit(self, unit: Use, place: int) -> Unit:
        """Return what was over as racecheck has it; `place` is whose it is."""
        _, number, clock, note, touches = unit
        spread = self._knowledge.spread(clock)
        if note[0] == EXECUTED:
            _, _, loaded, _, issued, now, _ = note
            made = Unit(place, number, spread, loaded.word, loaded, issued)
        else:
            _, transfer, now, _, _ = note
            made = Unit(place, number, spread, transfer, touches.trigger, transfer.triggered_ps)
        made.time_ps = now
        return made

    def _matters(self, places: Places, matter: Collection[RegionParts | RowSet]) -> tuple[RegionParts | RowSet, ...]:
        """Return those of some places that matter to racecheck; rows that leave no byte out are regions to it."""
        left = tuple([place for place in places if place in matter])
        if any(isinstance(place, RowSet) and place.is_box for place in left):
            return regions_in(left, self._width)
        return left


def _event(note: tuple[Any, ...], core: int) -> Event:
    """Return the event of a word, for who follows what engines hold."""
    _, engine, loaded, bound, issued, now, changes = note
    return Event(0, now, issued, core, engine.name, loaded.pc, loaded.word, "instruction", changes, bound.action)


def _odd(*_: object, **__: object) -> None:
    """Stop where a check would tell of something."""
    raise UnknownError
