"""Who knows what: vector clocks of engines and DMA queues.

An actor is an engine or a queue of a core. Its accesses are numbered in program order, which holds on an engine (it
completes in order) and on a queue (first in, first out; isa.md 11). What one actor knows of the others it learns from
waits: a semaphore that reached the awaited value carries what those who raised it knew; an event carries what its
setter knew; a transfer knows what the engine knew that triggered it; a core barrier joins both sides.

A wait teaches what the increments up to the awaited value carry, not what happens to be there already: the verdict does
not depend on the schedule that was observed. Where several actors raise one semaphore, the order observed decides which
increments those were; `unordered` is told of raises that nothing puts behind a wait that was satisfied without them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from emulator.checks.history import Clock, History, Unit, join
from emulator.checks.kept import kept_of, traits_of
from emulator.device import Device
from emulator.diagnosis.index import index_of, signals_at
from emulator.dma.transfer import Transfer
from emulator.events import Event, SemaphoreChange, Touches
from emulator.loaded import LoadedWord
from emulator.notes import CROWDED, EXECUTED, ISSUED, MOVED, Notes
from emulator.sequencer import Sequencer
from formats.engines import ENGINES
from formats.isa import Awaited, EventSemaphoreRangeClear, Instruction, WaitMode
from formats.isa.instruction import header_sync
from formats.isa.signals import BARRIER, SECOND_SLOT
from formats.named_tuple import NamedTuple

__all__ = ["Clocks", "Key", "Raise", "WaitPlace"]

_EQ, _GT, _EVENT = int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT), int(WaitMode.EVENT_SET)
_SIGNALS = 4096  # signals of an actor kept for hints, so that long loops do not fill memory

Changes = tuple[SemaphoreChange, ...]
Key = tuple[int, str, int]  # core, "semaphore" or "event", number


class WaitPlace(NamedTuple):
    """One wait of one word: `slot` is 0 for the header's, 1 for the second one of EVENT_SEMAPHORE."""

    core: int
    engine: str
    pc: int
    slot: int


class Raise(NamedTuple):
    """One change of a semaphore: by which unit, to what value."""

    unit: Unit
    key: Key
    old: int
    new: int


class Clocks:
    """An observer that keeps the clocks and hands every unit to `listeners` when it is complete.

    Listeners have `on_unit(unit, event)`; `raised` holds functions told of every change of a semaphore or event, `odd`
    functions told of those that are no raise of a semaphore, `unordered` functions told of raises that another schedule
    could have put before a wait that did without them: the waiting unit, what it awaited, the value, whether exactly
    that, and the raise; `mixed` of a unit that sets a semaphore and a change that has no order with that; `lowered` of
    a wait that was met, the value, and a change below that which could have come first; `disordered` of two words that
    trigger transfers of one queue in no given order, and what the second transfer raises. `ignored` waits teach
    nothing: the analysis is that of a program without them.
    """

    def __init__(self, ignored: Iterable[WaitPlace] = ()) -> None:
        self.ignored = frozenset(ignored)
        self.listeners: list[Any] = []
        self.raised: list[Callable[[Raise], object]] = []
        self.odd: list[Callable[[Raise], object]] = []
        self.mixed: list[Callable[[Unit, Unit, Key], object]] = []
        self.unordered: list[Callable[[Unit, Key, int, bool, Raise], object]] = []
        self.lowered: list[Callable[[Unit, int, Raise], object]] = []
        self.disordered: list[Callable[[Unit, Unit, Raise], object]] = []
        self.crowded: list[Callable[[Transfer, int, int], object]] = []  # told of transfers that find rings full
        self._notes = Notes()  # of a run that the engines have gone already, while it is told
        self._told = 0  # of them
        self._ends: dict[Sequencer, int] = {}  # the last of each engine among them
        # What each actor signalled: unit, semaphore or event, value. The latest ones, and the last for each of them.
        self.signals: list[deque[tuple[int, Key, int]]] = []
        self.last_signals: list[dict[Key, int]] = []
        self.names: list[tuple[int, str]] = []
        self._signals_of: Callable[[int], Iterable[tuple[int, Key, int]]] | None = None  # who says that of a run
        self._asked: dict[int, deque[tuple[int, Key, int]]] = {}  # what it said

    def look_at(self, device: Device) -> None:
        """Take the names of who acts on a device, and no more: it has run, and all of it was in order."""
        self.device = device
        self.names = [(core.index, name) for core in device.cores for name in ENGINES]
        self.names += [(queue.core, queue.name) for queue in device.queues]
        self.engines = len(device.cores) * len(ENGINES)
        self.nothing: Clock = (0,) * len(self.names)

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and has not moved."""
        self.look_at(device)
        self.index = {name: number for number, name in enumerate(self.names)}
        width = len(self.names)
        self.known: list[Clock] = [self.nothing] * width
        self.count = [0] * width
        self.signals = [deque(maxlen=_SIGNALS) for _ in range(width)]
        self.last_signals = [{} for _ in range(width)]
        self._flights: list[deque[Unit]] = [deque() for _ in range(width)]
        self._triggers: dict[int, Unit] = {}  # by queue: the word that triggered its latest transfer
        self._unsure: dict[int, Unit] = {}  # and the one before that, where either may come first
        self._histories: dict[Key, History] = {}
        self._events: dict[Key, Clock] = {}
        self._met: dict[Key, list[Clock]] = {}
        self._meets: dict[Key, int] = {}
        self._barriers = kept_of(device, "barriers", lambda: _barriers(device))
        # Semaphores that each word sets to a number; words are few kinds of many.
        self._written: dict[tuple[int, Instruction], frozenset[Key]] = {}
        self._coming: dict[tuple[int, str], deque[LoadedWord]] = {}  # by engine, words that it is told to issue yet
        self._adders: set[type] = set()  # words whose headers are all that signals: there is no place for a number

    def release(self) -> None:
        """Let go of all who listen, which refer to this; nothing may be told after that."""
        listeners = self.listeners, self.raised, self.odd, self.mixed, self.unordered, self.lowered, self.crowded
        for told in (*listeners, self.disordered):
            told.clear()

    # --- issue: waits ------------------------------------------------------------------------------------------------

    def on_issue(self, sequencer: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Give a word its number and join what its waits tell."""
        self._issue(self.index[sequencer.core.index, sequencer.name], loaded, now)

    def _issue(self, actor: int, loaded: LoadedWord, now: int) -> None:
        word = loaded.word
        self.count[actor] = number = self.count[actor] + 1
        knew = self.known[actor]
        mode, index, _, _, value = header_sync(word.raw)
        if word.SYNC is Instruction.SYNC and mode != _EVENT and not self.ignored:  # nearly all
            history = self._histories.get((self.names[actor][0], "semaphore", index)) if mode else None
            if history is None:
                self._flights[actor].append(Unit(actor, number, knew, word, loaded, now))
                return
            need = value + (mode == _GT)
            known = self.known[actor] = history.teach(knew, need)
            unit = Unit(actor, number, known, word, loaded, now)
            history.waits[actor] = (unit, need, mode == _EQ, knew)
            if self.unordered and len(history.raisers) > 1:
                self._shares(history, (self.names[actor][0], "semaphore", index), actor)
            self._flights[actor].append(unit)
            return
        waited, waits, (core, name) = word.waits, [], self.names[actor]
        for awaited in waited:
            if awaited.by == BARRIER:
                self._meet(actor, core, awaited.index)
            else:
                waits.append(self._learn(actor, core, name, loaded, awaited))
        unit = Unit(actor, number, self.known[actor], word, loaded, now)
        for history, need, exact, key in waits:
            if history is not None:
                history.waits[actor] = (unit, need, exact, knew)
                if self.unordered and len(history.raisers) > 1:
                    self._shares(history, key, actor)
        self._flights[actor].append(unit)

    def _learn(
        self, actor: int, core: int, name: str, loaded: LoadedWord, awaited: Awaited
    ) -> tuple[History | None, int, bool, Key]:
        """Join what a satisfied wait tells."""
        kind, index, mode, value, by = awaited
        key = (core, kind, index)
        if self.ignored and WaitPlace(core, name, loaded.pc, int(by == SECOND_SLOT)) in self.ignored:
            return None, 0, False, key
        if kind == "event":
            clock = self._events.get(key)
            if clock is not None:
                self.known[actor] = join(self.known[actor], clock)
            return None, 0, False, key
        need = value + (mode == _GT)
        history = self._histories.get(key)
        if history is None:
            return None, 0, False, key
        self.known[actor] = history.teach(self.known[actor], need)
        return history, need, mode == _EQ, key

    def _shares(self, history: History, key: Key, waiter: int) -> None:
        """Tell of raises that were over when a wait was, and could have met it in the place of those that did."""
        wait, need, exact, knew = history.waits[waiter]
        for old, unit, new in history.behind(need):
            if unit.actor != waiter and history.replaceable(waiter, need, knew, unit.release):
                for tell in self.unordered:
                    tell(wait, key, need, exact, Raise(unit, key, old, new))

    def _meet(self, actor: int, core: int, semaphore: int) -> None:
        """Join both sides of a core barrier, each as it was when it arrived."""
        mine, peers = (core, "barrier", semaphore), (1 - core, "barrier", semaphore)
        turn = self._meets.get(mine, 0)
        self._meets[mine] = turn + 1
        arrivals = self._met.setdefault(mine, [])
        if len(arrivals) == turn:
            arrivals.append(self._so_far(actor))
        others = self._met.setdefault(peers, [])
        if len(others) == turn:
            arrived = self._arriving(1 - core, semaphore)
            if arrived is None:
                return
            others.append(arrived)
        self.known[actor] = join(self.known[actor], others[turn])

    def _so_far(self, actor: int) -> Clock:
        """Return what an engine knows once every word that it has issued is complete."""
        clock = self.known[actor]
        return (*clock[:actor], self.count[actor], *clock[actor + 1 :])

    def _arriving(self, core: int, semaphore: int) -> Clock | None:
        """Return what the engine knows that stands at a barrier and has not gone on."""
        for name, engine in self.device.cores[core].engines.items():
            coming = self._coming.get((core, name))
            if coming:
                waits = coming[0].word.waits
            else:
                waits = engine.words[engine.position].word.waits if engine.position < engine.count else ()
            if not any(each.by == BARRIER and each.index == semaphore for each in waits):
                continue
            clock = self._so_far(self.index[core, name])
            for kind, index, mode, value, by in waits:
                history = self._histories.get((core, kind, index))
                if by != BARRIER and history is not None:
                    clock = history.teach(clock, value + (mode == _GT))
            return clock
        return None

    # --- completion: signals -----------------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        """Take a completion: what it signals, and whom it concerns."""
        kind = event.kind
        if kind == "dma":
            self._moved(event.instruction, event.time_ps, event.semaphores, event.touches)
        elif kind in ("instruction", "barrier"):
            self._executed(self.index[event.core, event.engine], event.time_ps, event.semaphores, event.touches)

    def _executed(self, actor: int, now: int, changes: Changes, touches: Touches) -> None:
        """Take a word that is complete."""
        flights = self._flights[actor]
        if not flights:
            return
        unit = flights.popleft()
        loaded = unit.loaded
        if loaded is not None and loaded.transfer is not None:
            self._flights[self.index[self.names[actor][0], loaded.queue]].append(unit)
        unit.time_ps = now
        if changes:
            self._change(unit, changes)
        for listener in self.listeners:
            listener.on_unit(unit, touches)

    def _moved(self, transfer: Transfer, now: int, changes: Changes, touches: Touches) -> None:
        """Take a transfer that is complete."""
        actor = self.index[transfer.core, transfer.queue]
        unit = self._begin(actor, transfer, transfer.triggered_ps)
        unit.time_ps = now
        if actor in self._unsure:
            for number, old, new, core, kind in changes:
                for tell in self.disordered:
                    tell(self._unsure[actor], self._triggers[actor], Raise(unit, (core, kind, number), old, new))
        if changes:
            self._change(unit, changes)
        for listener in self.listeners:
            listener.on_unit(unit, touches)

    def follow(self, notes: Notes) -> None:
        """Take all that happened in a run, which is over or stands."""
        self._notes, self._ends = notes, {}
        actors = {
            engine: self.index[core.index, name] for core in self.device.cores for name, engine in core.engines.items()
        }
        issue, executed = self._issue, self._executed
        coming = self._coming
        if self._barriers:
            for _, engine, loaded, _, _ in [note for note in notes if note[0] == ISSUED]:
                coming.setdefault((engine.core.index, engine.name), deque()).append(loaded)
        for self._told, note in enumerate(notes):
            what = note[0]
            if what == ISSUED:
                _, engine, loaded, _, now = note
                if coming:
                    coming[engine.core.index, engine.name].popleft()
                issue(actors[engine], loaded, now)
            elif what == EXECUTED:
                _, engine, _, bound, _, now, changes = note
                if changes is not None:
                    executed(actors[engine], now, changes, bound.action)
            elif what == MOVED:
                _, transfer, now, changes, touches = note
                if changes is not None:
                    self._moved(transfer, now, changes, touches)
            elif what == CROWDED:
                for tell in self.crowded:
                    tell(*note[1:])
        self._notes = Notes()
        coming.clear()

    def stand(self, signals: Callable[[int], Iterable[tuple[int, Key, int]]]) -> None:
        """Stand at the end of a run that somebody else looked at, who says what an actor signalled."""
        self._signals_of = signals

    def signalled(self, actor: int) -> deque[tuple[int, Key, int]]:
        """Return what an actor signalled: unit, semaphore or event, value; the latest ones."""
        if self._signals_of is None:
            return self.signals[actor]
        found = self._asked.get(actor)
        if found is None:
            found = self._asked[actor] = deque(self._signals_of(actor), maxlen=_SIGNALS)
        return found

    def _begin(self, actor: int, transfer: Any, issued_ps: int) -> Unit:
        """Give a transfer of a queue its number and join what its trigger knew."""
        triggers = self._flights[actor]
        known = self.known[actor]
        loaded = None
        if triggers:
            trigger = triggers.popleft()
            known, loaded = join(known, trigger.release), trigger.loaded
            self.known[actor] = known
            before = self._triggers.get(actor, trigger)
            self._triggers[actor] = trigger
            if trigger.knows(before.actor, before.number):
                self._unsure.pop(actor, None)
            else:
                self._unsure[actor] = before
        number = self.count[actor] = self.count[actor] + 1
        return Unit(actor, number, known, transfer, loaded, issued_ps)

    def _change(self, unit: Unit, changes: Changes) -> None:
        actor, told, barriers = unit.actor, self.raised, self._barriers
        for number, old, new, core, kind in changes:
            key = (core, kind, number)
            if kind == "event":
                if new:
                    self._events[key] = unit.release
            elif barriers and (core, number) in barriers:
                continue
            else:
                self._raise(unit, key, old, new)
            if new > old:
                self.signals[actor].append((unit.number, key, new))
                self.last_signals[actor][key] = new
            if told:
                for function in told:
                    function(Raise(unit, key, old, new))
            if new <= old or kind == "event":
                for function in self.odd:
                    function(Raise(unit, key, old, new))

    def _raise(self, unit: Unit, key: Key, old: int, new: int) -> None:
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = History(old, self.nothing)
        actor = unit.actor
        writes = actor < self.engines and type(unit.word) not in self._adders and self.writes(unit, key)
        if self.mixed:
            if writes or history.writer is not None:
                self._mixes(history, unit, key, writes)
            else:
                history.last[actor] = unit
        if new <= old:
            for waiter, (wait, need, _, _) in history.waits.items() if self.lowered else ():
                if new < need and not unit.knows(waiter, wait.number):
                    for tell_lowered in self.lowered:
                        tell_lowered(wait, need, Raise(unit, key, old, new))
            history.begin(new, join(history.told(-1), unit.release))
            return
        if self.unordered and history.waits:
            shared = len(history.raisers) > 1 or (bool(history.raisers) and actor not in history.raisers)
            for waiter, (wait, need, exact, knew) in history.waits.items():
                if not exact and not shared:
                    continue
                early = waiter != actor and unit.clock[waiter] < wait.number and old >= need
                if early and (exact or history.replaceable(waiter, need, knew, unit.release)):
                    for tell in self.unordered:
                        tell(wait, key, need, exact, Raise(unit, key, old, new))
        if writes:
            # A value that is written, not added: whoever raised it before, what counts begins here.
            history.begin(new, join(history.told(-1), unit.release))
            return
        history.raisers.add(actor)
        history.raises.append(unit)
        history.values.append(new)

    def _mixes(self, history: History, unit: Unit, key: Key, writes: bool) -> None:
        """Compare a change with what it has no order with: a number that is set, and what other actors added to it."""
        if writes:
            others = [one for one in history.last.values() if not unit.knows(one.actor, one.number)]
            history.last, history.writer = {}, unit
            pairs = [(unit, one) for one in others]
        else:
            writer = history.writer
            pairs = [(writer, unit)] if writer is not None and not unit.knows(writer.actor, writer.number) else []
            history.last[unit.actor] = unit
        for writing, other in pairs:
            for tell in self.mixed:
                tell(writing, other, key)

    def writes(self, unit: Unit, key: Key) -> bool:
        """Return whether a word sets a semaphore to a number; transfers only raise them."""
        word = unit.word
        if unit.actor >= self.engines or type(word) in self._adders:
            return False
        if isinstance(word, EventSemaphoreRangeClear):
            return key[1] == "semaphore" and word.first <= key[2] <= word.last
        if not isinstance(word, Instruction) or word.SYNC is Instruction.SYNC:
            self._adders.add(type(word))
            return False
        core = self.names[unit.actor][0]
        found = self._written.get((core, word))
        if found is None:
            found = self._written[core, word] = frozenset(
                key for key, amount in signals_at(word, core, self.device.addresses) if amount is None
            )
        return key in found

    # --- the end -----------------------------------------------------------------------------------------------------

    def unfinished(self) -> Iterator[Unit]:
        """Yield what was under way when a fault ended the run: words that had issued, transfers on their queues."""
        for actor in range(self.engines):
            for unit in self._flights[actor]:
                yield unit
                loaded = unit.loaded
                if loaded is not None and loaded.transfer is not None:  # what it started knows what it waited for
                    self._flights[self.index[self.names[actor][0], loaded.queue]].append(unit)
        for queue in self.device.queues:
            actor = self.index[queue.core, queue.name]
            for transfer in queue.pending:
                yield self._begin(actor, transfer, transfer.triggered_ps)

    def everything(self) -> Clock:
        """Return what is known when all engines have come to their ends, as the host knows it then."""
        clock = self.nothing
        for actor in range(self.engines):
            if self.count[actor]:  # else it has nothing to know
                clock = join(clock, self._so_far(actor))
        return clock

    def floor(self) -> Clock:
        """Return what every actor that can still act knows: older accesses can no longer be part of a race."""
        clocks: list[Clock] = []
        engines = [engine for core in self.device.cores for engine in core.engines.values()]
        for actor, engine in enumerate(engines):
            if not self._is_over(engine):
                clocks.append(self._so_far(actor))
                if self._flights[actor]:
                    clocks.append(self._flights[actor][0].release)
        for actor in range(self.engines, len(self.names)):
            if self._flights[actor]:
                clocks.append(join(self.known[actor], self._flights[actor][0].release))
        return tuple(map(min, *clocks)) if len(clocks) > 1 else clocks[0] if clocks else self.everything()

    def _is_over(self, engine: Sequencer) -> bool:
        """Return whether an engine has come to its end, as far as was told."""
        if not engine.done or not self._notes:
            return engine.done
        if not self._ends:
            self._ends = {note[1]: number for number, note in enumerate(self._notes) if note[0] in (ISSUED, EXECUTED)}
        return self._ends.get(engine, -1) <= self._told


def _barriers(device: Device) -> frozenset[tuple[int, int]]:
    """Return the semaphores of core barriers: they mean nothing by themselves, both halves are joined in `_meet`."""
    if len(device.cores) == 1 or not traits_of(device).meets:
        return frozenset()
    return frozenset(
        (core, number)
        for stream in index_of(device)
        for (_, _, number), consumers in stream.consumers.items()
        if any(each.awaited.by == BARRIER for each in consumers)
        for core in range(len(device.cores))
    )
