"""Runs in which all is in order: one pass over the notes tells, and the checks need not look at each of them.

Nearly every program is built alike: a semaphore is raised by one engine or queue and never goes down, words wait for it
to be so high, what they touch lies in tiles that are in use there. Of such a run everything that clocks and memcheck
would say in the end follows from plain lists, and racecheck is left with the accesses of which something may not be in
order: to bytes that two touch without one waiting for the other. Of any other run nothing is said here, and the checks
look at all of it themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.checks.clocks import Key
from emulator.checks.engine_state import Groups, Tables
from emulator.checks.history import Clock, Unit
from emulator.checks.inside import Clash, clash_of, is_simple
from emulator.checks.knowledge import Knowledge, Raises, UnknownError, joined, set_by, taught
from emulator.checks.place import Names
from emulator.checks.tiles import NOWHERE, Tiles
from emulator.checks.touched import Cell, Group, Touched, Use
from emulator.device import Device
from emulator.dma.ring_order import keeps_order
from emulator.dma.transfer import Part, Transfer
from emulator.events import Event, Places
from emulator.notes import EXECUTED, ISSUED, MOVED, Notes
from formats.isa import EventSemaphoreRangeClear, Instruction, WaitMode
from formats.named_tuple import NamedTuple

__all__ = ["Order", "Rest", "order_of"]

_GE, _GT, _EVENT = int(WaitMode.SEM_GE), int(WaitMode.SEM_GT), int(WaitMode.EVENT_SET)


class Rest(NamedTuple):
    """What racecheck has to look at, and what clocks know at the end.

    `units` are words and transfers in the order in which they were over, with the regions that they read and wrote;
    those of transfers that touch nothing that matters are None. `signals` are those of each actor.
    """

    units: list[tuple[Unit | None, Any, Places, Places]]
    signals: list[list[tuple[int, Key, int]]]
    known: list[Clock]
    counts: list[int]


class Order(NamedTuple):
    """What is left to know of a run: the last signals of each actor, by what they raised; what may not be in order.

    `needs` is the largest value that each semaphore is awaited with, None where one may ask for a part of a transfer.
    """

    last_signals: list[dict[Key, int]]
    needs: dict[Key, int] | None
    rest: Rest | None


def order_of(device: Device, notes: Notes, doubles: Mapping[int, Sequence[Clash]]) -> Order | None:
    """Return what is left to know of a run that has finished; None where the checks have to look themselves.

    `doubles` is what scatters did when they were over, by transfer.
    """
    if device.outcome != "finished":
        return None
    try:
        touched = Touched(notes, device.arch.sbuf_bytes.whole)
        touched.bring_together()
        return _Look(device, notes, touched, doubles).order()
    except (LookupError, UnknownError):
        return None


class _Look:
    """One pass over the notes of a run; whatever is unusual raises `UnknownError`."""

    def __init__(self, device: Device, notes: Notes, touched: Touched, doubles: Mapping[int, Sequence[Clash]]) -> None:
        self._device, self._notes, self._touched, self._doubles = device, notes, touched, doubles
        names = Names(device)
        self._tiles = Tiles(device, _odd, names) or None
        self._groups, self._tables = Groups(device, _odd, names), Tables(device, _odd)
        self._knowledge = Knowledge(device, notes)
        self._moved: dict[tuple[int, int], tuple[Part, ...]] = {}  # the last transfer looked at, by place
        self._suspects: list[Cell] = []
        self._units: list[Use] = []  # of each note of something that is over

    def order(self) -> Order:
        """Return what is left to know of the run."""
        knowledge, of, units = self._knowledge, self._touched.of, self._units
        actors, known, count, engines = knowledge.actors, knowledge.known, knowledge.count, knowledge.engines
        raises, needs, barriers, loops = knowledge.raises, knowledge.needs, knowledge.barriers, knowledge.loops
        tiles, groups, tables = self._tiles, self._groups, self._tables
        flights: list[deque[Use]] = [deque() for _ in actors]
        sets: tuple[int, ...] = ()  # semaphores that a word gives a number, whatever they were
        for note in self._notes:
            what = note[0]
            if what == ISSUED:
                _, engine, loaded, _, bound = note
                actor = actors[engine]
                action, mode = bound.action, bound.mode
                count[actor] = number = count[actor] + 1
                if action.barrier:
                    knowledge.meet(actor, engine.core.index, loaded.word.waits)
                elif mode == _GE:
                    core, index, need = engine.core.index, bound.index, bound.need
                    if need > needs[core].get(index, 0):
                        needs[core][index] = need
                    history = raises[core].get(index)
                    if history is None:
                        knowledge.asked.append((core, index, need))
                    else:
                        if history.step > 1 and need % history.step:
                            knowledge.is_suspect = True
                        if loops:
                            history.waits[actor] = number
                        known[actor] = taught(known[actor], history, need)
                elif mode:
                    known[actor] = knowledge.learn(
                        actor, known[actor], engine.core.index, mode, bound.index, bound.need
                    )
                if action.waits:
                    for _, index, mode, need, _ in action.waits:
                        known[actor] = knowledge.learn(actor, known[actor], engine.core.index, mode, index, need)
                flights[actor].append((actor, number, known[actor], loaded, loaded))
                continue
            if what == EXECUTED:
                _, engine, loaded, touches, issued, now, changes = note
                actor, core, owner, pc = actors[engine], engine.core.index, engine.name, loaded.pc
                unit = flights[actor].popleft()
                if loaded.transfer is not None:
                    flights[actors[core, loaded.queue]].append(unit)
                reads, writes, is_psum = of[id(touches)]
                word = loaded.word
                if (is_psum and not groups.is_plain(core, word, touches)) or (
                    owner == "Activation" and not tables.is_known(core, word)
                ):
                    event = Event(0, now, issued, core, owner, pc, word, "instruction", changes, touches)
                    if owner == "Activation":
                        tables.on_event(event)
                    groups.on_event(event)
                if changes and type(word).SYNC is not Instruction.SYNC:
                    sets = set_by(word, touches)
                elif changes and type(word) is EventSemaphoreRangeClear:
                    raise UnknownError
            elif what == MOVED:
                _, transfer, _, changes, touches = note
                request = transfer.request
                core, owner, pc = request.core, request.engine, request.pc
                actor = actors[core, request.queue]
                trigger = flights[actor].popleft()
                known[actor] = joined(known[actor], trigger)
                count[actor] = number = count[actor] + 1
                unit = actor, number, known[actor], transfer, trigger[3]
                reads, writes, _ = of[id(touches)]
                if self._moved or not is_simple(transfer):
                    self._look_inside(actor, transfer)
            else:
                continue
            units.append(unit)
            if loops and changes:
                knowledge.change(actor, unit, sets, changes)
                changes, sets = (), ()
            elif sets:
                raise UnknownError
            for index, old, new, its_core, kind in changes:
                if barriers and (its_core, index) in barriers and kind == "semaphore":
                    if new < 0:
                        raise UnknownError
                    continue
                history = raises[its_core].get(index)
                if history is None:
                    history = raises[its_core][index] = Raises((its_core, "semaphore", index), actor, old, new - old)
                if new <= old or history.actor != actor or kind != "semaphore":
                    raise UnknownError
                if new - old != history.step:
                    knowledge.is_suspect = True
                history.values.append(new)
                history.units.append(unit)
            clock, number = unit[2], unit[1]
            for cell in reads:
                if (
                    cell.core == core
                    and tiles is not None
                    and not (cell.owner is owner and cell.since <= pc <= cell.until)
                ):
                    _see_that_it_is_home(tiles, cell, owner, pc)
                if cell.group is not None:
                    self._meet_group(unit, cell, cell.group, False)
                else:
                    wrote = cell.write
                    if wrote is not None and (clock[wrote[0]] < wrote[1] if wrote[0] != actor else actor >= engines):
                        self._compare(unit, cell, False)
                before = cell.reads
                if before and before[-1][0] == actor < engines:
                    before[-1] = unit
                else:
                    before.append(unit)
            for cell in writes:
                if (
                    cell.core == core
                    and tiles is not None
                    and not (cell.owner is owner and cell.since <= pc <= cell.until)
                ):
                    _see_that_it_is_home(tiles, cell, owner, pc)
                if cell.group is not None:
                    self._meet_group(unit, cell, cell.group, True)
                else:
                    wrote = cell.write
                    if wrote is not None and (clock[wrote[0]] < wrote[1] if wrote[0] != actor else actor >= engines):
                        self._compare(unit, cell, True)
                    else:
                        for one in cell.reads:
                            if clock[one[0]] < one[1] if one[0] != actor else actor >= engines:
                                self._compare(unit, cell, True)
                                break
                cell.write = unit
                if cell.reads:
                    cell.reads = []
        groups.finish()
        if knowledge.events and any(any(core.events.values) for core in self._device.cores):
            raise UnknownError
        self._see_what_stays()
        return Order(knowledge.last_signals(), knowledge.needed(), self._rest() if self._suspects else None)

    # --- what each does ----------------------------------------------------------------------------------------------

    def _look_inside(self, actor: int, transfer: Transfer) -> None:
        """See to it that a transfer does nothing to itself; the same one of the same word is looked at once."""
        place = actor, transfer.pc
        if self._moved.get(place) == transfer.parts:
            return
        self._moved[place] = transfer.parts
        if clash_of(self._device, transfer, self._doubles.get(id(transfer))) is not None:
            raise UnknownError

    def _meet_group(self, unit: Use, cell: Cell, group: Group, write: bool) -> None:
        """Compare an access with the last ones of each actor to the group, and with those to the same bytes if need be.

        Who knows of an actor's last access knows of those before it.
        """
        actor, number, clock, _, _ = unit
        knows = True
        for by, last in group.writes.items():
            if clock[by] < last and (by != actor or (actor >= self._knowledge.engines and last != number)):
                knows = False
        if write:
            if knows:
                for by, last in group.reads.items():
                    if clock[by] < last and (by != actor or (actor >= self._knowledge.engines and last != number)):
                        knows = False
            group.writes[actor] = number
        else:
            group.reads[actor] = number
        if not knows:
            if not group.is_split:
                group.split()
            self._compare(unit, cell, write)

    def _compare(self, unit: Use, cell: Cell, write: bool) -> None:
        """Note what does not surely come before an access though it has to."""
        around = [(cell, False), *cell.near] if cell.near else ((cell, False),)
        for other, covers in around:
            if other.write is not None and not self._is_over(other.write, other, True, unit, cell, write):
                self._suspects += (cell, other)
            if write:
                for one in other.reads:
                    if not self._is_over(one, other, False, unit, cell, True):
                        self._suspects += (cell, other)
                if covers:
                    other.write, other.reads = None, []

    def _is_over(self, old: Use, its: Cell, wrote: bool, unit: Use, cell: Cell, write: bool) -> bool:
        """Return whether an access surely comes before another one."""
        by, number, _, word, _ = old
        actor, mine, clock, transfer, _ = unit
        if by != actor:
            return clock[by] >= number
        if actor < self._knowledge.engines or number == mine or clock[actor] >= number:
            return True
        return keeps_order(word, wrote, transfer, write, cell.common(its))

    # --- the end -----------------------------------------------------------------------------------------------------

    def _see_what_stays(self) -> None:
        """See to it that an engine has waited for each store to an output, and that no constant was written."""
        device = self._device
        if device.model is None:
            return
        constants = {
            one.address for core in device.model.cores for one in core.placement.by_name.values() if one.kind == "file"
        }
        spans = []
        for tensor in device.model.outputs:
            placed = device.model.tensors[tensor.name]
            spans.append((placed.address, placed.address + placed.nbytes))
        host = [0] * len(self._knowledge.known)
        for actor in range(self._knowledge.engines):
            host = list(map(max, host, self._knowledge.so_far(actor)))
        for cell in self._touched.cells.values():
            write = cell.write
            if write is None or cell.core >= 0:
                continue
            byte = cell.region[4]
            if host[write[0]] < write[1] and any(low <= byte < high for low, high in spans):
                raise UnknownError
            if constants and (found := device.hbm.find(byte)) is not None and found.address in constants:
                raise UnknownError

    def _rest(self) -> Rest:
        """Return what racecheck has to look at."""
        knowledge, reach, of = self._knowledge, self._touched.reach_of(self._suspects), self._touched.of
        units: list[tuple[Unit | None, Any, Places, Places]] = []
        signals: list[list[tuple[int, Key, int]]] = [[] for _ in range(knowledge.everyone)]
        told = iter(self._units)
        for note in self._notes:
            what = note[0]
            if what == EXECUTED:
                _, _, _, touches, issued, now, changes = note
            elif what == MOVED:
                _, transfer, now, changes, touches = note
                issued = transfer.triggered_ps
            else:
                continue
            unit = next(told)
            for index, old, new, core, kind in changes:
                if new > old and (core, index) not in knowledge.barriers:
                    signals[knowledge.places[unit[0]]].append((unit[1], (core, kind, index), new))
            reads, writes, _ = of[id(touches)]
            seen = tuple([cell.region for cell in reads if id(cell) in reach])
            left = tuple([cell.region for cell in writes if id(cell) in reach])
            if seen or left:
                actor, number, clock, word, loaded = unit
                made = Unit(knowledge.places[actor], number, knowledge.spread(clock),
                            word if what == MOVED else loaded.word, loaded, issued)  # fmt: skip
                made.time_ps = now
                units.append((made, made.word, seen, left))
            elif what == MOVED:
                units.append((None, transfer, seen, left))
        known, count = [knowledge.spread([0] * len(knowledge.known))] * knowledge.everyone, [0] * knowledge.everyone
        for actor, place in enumerate(knowledge.places):
            known[place], count[place] = knowledge.spread(knowledge.known[actor]), knowledge.count[actor]
        return Rest(units, signals, known, count)


def _odd(*_: object, **__: object) -> None:
    """Stop where a check would tell of something."""
    raise UnknownError


def _see_that_it_is_home(tiles: Tiles, cell: Cell, owner: str, pc: int) -> None:
    """See to it that a region lies in a tile in use at a word, and remember for which words it does."""
    space, core, partition, partitions, low, nbytes, _ = cell.region
    firsts, lives = tiles.begins[core].get((owner, space, partition, low), NOWHERE)
    behind = bisect_right(firsts, pc)
    if behind:
        last, lanes, room = lives[behind - 1]
        if last >= pc and partitions <= lanes and nbytes <= room:
            cell.owner, cell.since, cell.until = owner, firsts[behind - 1], last
            return
    if not tiles.is_home(cell.region, owner, pc):
        raise UnknownError
