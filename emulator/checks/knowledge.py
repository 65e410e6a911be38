"""Who knows what at each moment of a run, in plain lists: of runs that are built as nearly all are.

A semaphore is raised by one engine or queue alone, and goes down, if ever, by a word that gives it a number when all
who raised it are through, and all who waited for it.  What somebody knows is a list, a number for each engine and
queue: so many of its words, or transfers, are over.  Whatever is not so is for `Clocks` to follow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Any

from emulator.bound_words import BoundWord
from emulator.checks.clocks import Key
from emulator.checks.history import Clock
from emulator.checks.kept import traits_of
from emulator.checks.touched import Use
from emulator.device import Device
from emulator.events import SemaphoreChange
from emulator.loaded import LoadedWord
from emulator.notes import ISSUED, Notes
from formats.isa import Awaited, Instruction, WaitMode
from formats.isa.signals import BARRIER, Raise, Slot

__all__ = ["Knowledge", "Raises", "UnknownError", "joined", "set_by"]

_PLACES = range(1 << 62)
_WORD = attrgetter("word")
_GE, _GT, _EVENT = int(WaitMode.SEM_GE), int(WaitMode.SEM_GT), int(WaitMode.EVENT_SET)


class UnknownError(Exception):
    """What a run does is for the checks to judge."""


class Raises:
    """The units that raised a semaphore, all of one actor, and the values that it took.

    The initial value is the first, and the first unit is who wrote that, None where nobody did. `step` is by how much
    each raised it; `need` is the largest value that was awaited since somebody did, and `waits` are the last waits of
    each actor for it, where the program has loops.
    """

    __slots__ = ("actor", "key", "need", "step", "units", "values", "waits")

    def __init__(self, key: Key, actor: int, value: int, step: int) -> None:
        self.key, self.actor, self.step = key, actor, step
        self.values, self.need = [value], -1
        self.units: list[Use | None] = [None]
        self.waits: dict[int, int] = {}


class Knowledge:
    """What engines and queues know; those that do anything have numbers, since short clocks take less time.

    `actors` are these numbers, `whose` has them with core and name of each engine, `places` those that `Clocks` gives
    them among `everyone`; engines, so many, stand in front. `known` is what each knows, `count` how many words it
    began, or transfers it ended. `raises` are semaphores by core and number. `loops` tells that words may come again,
    `barriers` are semaphores that mean nothing by themselves, and `events` who set each,
    `consumed` who consumed it last.
    """

    def __init__(self, device: Device, notes: Notes) -> None:
        self.actors: dict[Any, int] = {}
        self.whose: dict[Any, tuple[int, int, str]] = {}
        self.places: list[int] = []
        actor = place = 0
        for core in device.cores:
            for engine in core.engines.values():
                if engine.count:
                    self.actors[engine] = actor
                    self.whose[engine] = actor, core.index, engine.name
                    self.places.append(place)
                    actor += 1
                place += 1
        self.engines = actor
        for queue in device.queues:
            if queue.completed:
                self.actors[queue.core, queue.name] = actor
                self.places.append(place)
                actor += 1
            place += 1
        self.everyone = place
        self._spread: Callable[[tuple[int, ...]], Clock] | None = None  # made where somebody asks
        nothing = [0] * actor
        self.known, self.count = [nothing] * actor, nothing.copy()
        self._triggers = [-1] * actor  # by queue: the engine that triggered all of its transfers so far, or -2
        self._latest: dict[int, Use] = {}  # by queue: the unit that triggered its latest transfer
        self.is_unsure = False  # whether two engines trigger transfers of a queue in no given order
        self.raises: list[dict[int, Raises]] = [{} for _ in device.cores]
        # Waits that no history has as its `need`: core, number, mode, value.
        self.asked: list[tuple[int, int, int, int]] = []
        self.is_suspect = False  # whether a wait may ask for a part of what a transfer raises
        traits = traits_of(device)
        self.loops = traits.branches
        self.events: dict[tuple[int, int], Use] = {}
        self.consumed: dict[tuple[int, int], Use] = {}
        # The last ones, in a program with loops.
        self._signalled: list[dict[Key, int]] = [{} for _ in self.places] if self.loops else []
        # Of core barriers, by core and semaphore: who comes to each, and what those knew who did.
        self.barriers: set[tuple[int, int]] = set()
        self._meeting: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
        self._met: dict[tuple[int, int], list[list[int]]] = {}
        self._meets: dict[tuple[int, int], int] = {}
        if len(device.cores) > 1 and traits.meets:
            if self.loops or not self._foresee(self._to_meet(traits.classes)):
                self._meeting.clear()
                self._foresee(_meeting(notes))
            self.barriers = {(core, index) for _, index in self._meeting for core in range(len(device.cores))}

    def _foresee(self, meeting: Iterable[tuple[Any, LoadedWord]]) -> bool:
        """Take the words that come to core barriers; return whether no two engines of a core come to the same one."""
        is_one = True
        for engine, loaded in meeting:
            for awaited in loaded.word.waits:
                if awaited.by == BARRIER:
                    coming = self._meeting.setdefault((engine.core.index, awaited.index), [])
                    is_one = is_one and (not coming or coming[-1][0] is engine)
                    coming.append((engine, loaded))
        return is_one

    def _to_meet(self, classes: Iterable[type[Instruction]]) -> Iterator[tuple[Any, LoadedWord]]:
        """Yield the words of a program without branches that wait for the other core and have issued, by engine."""
        meets = frozenset([cls for cls in classes if cls.MEETS]).__contains__
        for engine in self.whose:
            words = engine.words
            for loaded in compress(words[: engine.position], map(meets, map(type, map(_WORD, words)))):
                yield engine, loaded

    def begun(self, actor: int, core: int, loaded: LoadedWord, bound: BoundWord) -> list[int]:
        """Return what an engine knows when a word, which `count` has already, has waited for all that it does."""
        mode, action, knew = bound.mode, bound.action, self.known[actor]
        if action.barrier:
            self.meet(actor, core, loaded.word.waits)
            knew = self.known[actor]
        elif mode == _GE:  # nearly all
            need, history = bound.need, self.raises[core].get(bound.index)
            if history is None:
                self.asked.append((core, bound.index, mode, need))
            else:
                if need > history.need:
                    history.need = need
                if history.step > 1 and need % history.step:
                    self.is_suspect = True
                if self.loops:
                    history.waits[actor] = self.count[actor]
                # As `taught` says, which would be called for nearly all words.
                values = history.values
                unit = history.units[-1 if need >= values[-1] else bisect_left(values, need)]
                if unit is not None and knew[unit[0]] < unit[1]:
                    knew = joined(knew, unit)
        elif mode:
            knew = self.learn(actor, knew, core, mode, bound.index, bound.need)
        if action.waits:
            for _, index, mode, need, _ in action.waits:
                knew = self.learn(actor, knew, core, mode, index, need)
        self.known[actor] = knew
        return knew

    def learn(self, actor: int, knew: list[int], core: int, mode: int, index: int, need: int) -> list[int]:
        """Return what an engine knows behind a wait."""
        if mode == _EVENT and self.loops:
            unit = self.events.get((core, index))
            return knew if unit is None or knew[unit[0]] >= unit[1] else joined(knew, unit)
        if mode not in (_GE, _GT):
            raise UnknownError
        self.asked.append((core, index, mode, need))
        history = self.raises[core].get(index)
        if history is None:
            return knew
        if self.loops:
            history.waits[actor] = self.count[actor]
        return taught(knew, history, need + (mode == _GT))

    def change(self, actor: int, unit: Use, sets: tuple[int, ...], changes: tuple[SemaphoreChange, ...]) -> None:
        """Take what a word or transfer signals in a program with loops: events, and semaphores that are set back."""
        clock = unit[2]
        for index, old, new, core, kind in changes:
            if kind == "event":
                if not new:
                    self.consumed[core, index] = unit
                    continue
                consumer = self.consumed.get((core, index))
                if old or (consumer is not None and not _knows(unit, consumer)):
                    raise UnknownError  # one of the two is lost, or may be
                self.events[core, index] = unit
                continue
            if (core, index) in self.barriers:
                if new < 0:
                    raise UnknownError
                continue
            history = self.raises[core].get(index)
            if history is None:
                history = self.raises[core][index] = Raises((core, "semaphore", index), -1, old, 0)
            writer = history.units[0]
            if writer is not None and not _knows(unit, writer):
                raise UnknownError
            if index in sets:
                # All that came before has to be over, and those who waited for it to have gone on.
                last = history.units[-1]
                if last is not None and not _knows(unit, last):
                    raise UnknownError
                if any(clock[by] < turn and by != actor for by, turn in history.waits.items()):
                    raise UnknownError
                history.actor = -1
                history.values, history.units, history.waits = [new], [unit], {}
            elif new <= old or history.actor not in (-1, actor):
                raise UnknownError
            else:
                history.actor = actor
                history.values.append(new)
                history.units.append(unit)
            if new > old:
                self._signalled[actor][history.key] = new

    def meet(self, actor: int, core: int, waits: tuple[Awaited, ...]) -> None:
        """Join both sides of a core barrier, each as it was when it arrived."""
        known = self.known
        for _, index, mode, need, by in waits:
            if by != BARRIER:
                known[actor] = self.learn(actor, known[actor], core, mode, index, need)
                continue
            mine, peers = (core, index), (1 - core, index)
            turn = self._meets.get(mine, 0)
            self._meets[mine] = turn + 1
            arrivals, others = self._met.setdefault(mine, []), self._met.setdefault(peers, [])
            if len(arrivals) == turn:
                arrivals.append(self.so_far(actor))
            if len(others) == turn:
                coming = self._meeting.get(peers, ())
                if len(coming) <= turn:
                    raise UnknownError
                engine, loaded = coming[turn]
                arrived = self.so_far(self.actors[engine])
                for _, other, mode, need, by in loaded.word.waits:
                    if by != BARRIER:
                        arrived = self.learn(self.actors[engine], arrived, 1 - core, mode, other, need)
                others.append(arrived)
            known[actor] = _larger(known[actor], others[turn])

    def triggered(self, queue: int, trigger: Use) -> list[int]:
        """Return what is known to a transfer that a unit triggers, the latest one of its queue."""
        by, number, clock, _, _ = trigger
        triggers = self._triggers
        before = triggers[queue]
        if before in (by, -1):
            # It knows all that it knew when it triggered the one before.
            triggers[queue] = by
            found = clock.copy()
            if found[by] < number:
                found[by] = number
        else:
            triggers[queue] = -2  # several engines
            self.is_unsure = self.is_unsure or not _knows(trigger, self._latest[queue])
            found = joined(self.known[queue], trigger)
        self._latest[queue] = trigger
        self.known[queue] = found
        return found

    def so_far(self, actor: int) -> list[int]:
        """Return what an engine knows once every word that it has issued is complete."""
        found = self.known[actor].copy()
        found[actor] = self.count[actor]
        return found

    def host(self) -> list[int]:
        """Return what is known to whoever has waited for all engines."""
        nothing = [0] * len(self.places)
        known = list(map(max, nothing, nothing, *self.known[: self.engines]))
        return self.count[: self.engines] + known[self.engines :]

    def last_signals(self) -> list[dict[Key, int]]:
        """Return the last signal of each actor to each semaphore."""
        signals: list[dict[Key, int]] = [{} for _ in range(self.everyone)]
        if self.loops:
            for place, signalled in zip(self.places, self._signalled, strict=True):
                signals[place] = signalled
            return signals
        for raises in self.raises:
            for history in raises.values():
                signals[self.places[history.actor]][history.key] = history.values[-1]
        return signals

    def needed(self) -> dict[Key, int] | None:
        """Return the largest value that each semaphore is awaited with."""
        if self.is_suspect:
            return None
        found: dict[Key, int] = {}
        for raises in self.raises:
            found |= {each.key: each.need for each in raises.values() if each.need >= 0}
        for core, index, mode, need in self.asked:
            history, key = self.raises[core].get(index), (core, "semaphore", index)
            if mode == _GE and history is not None and history.step > 1 and need % history.step:
                return None
            found[key] = max(need, found.get(key, 0))
        return found

    @property
    def is_used_up(self) -> bool:
        """Return whether all waits are plain ones, and each semaphore that is awaited ends at what a wait asks for."""
        if self.is_suspect or self.loops or self.asked:
            return False
        for raises in self.raises:
            for history in raises.values():
                if 0 <= history.need < history.values[-1]:
                    return False
        return True

    def spread(self, clock: list[int]) -> Clock:
        """Return a clock of all engines and queues, as `Clocks` has them."""
        spread = self._spread
        if spread is None:
            # It puts numbers where they belong, and the last one, which is 0, wherever nothing was done.
            numbers = [len(self.places)] * self.everyone
            for number, place in enumerate(self.places):
                numbers[place] = number
            spread = self._spread = itemgetter(*numbers)
        return spread((*clock, 0))


def taught(knew: list[int], history: Raises, need: int) -> list[int]:
    """Return what an actor knows once a semaphore has come to a value."""
    values, units = history.values, history.units
    # Who knows of a unit knows all that it knew, and those before it; most wait for the last one.
    unit = units[-1] if need >= values[-1] else units[bisect_left(values, need)]
    return knew if unit is None or knew[unit[0]] >= unit[1] else joined(knew, unit)


def joined(knew: list[int], unit: Use) -> list[int]:
    """Return what an actor knows when a unit is over, of which it did not know that."""
    actor, number, clock, _, _ = unit
    found = knew.copy()
    if clock is not knew:
        # Most numbers are 0, of those who work beside or on the other core. A list made of both takes longer.
        for place in compress(_PLACES, clock):
            its = clock[place]
            if its > found[place]:
                found[place] = its
    if found[actor] < number:
        found[actor] = number
    return found


def _meeting(notes: Notes) -> Iterator[tuple[Any, LoadedWord]]:
    """Yield the words that wait for the other core, as they issued."""
    for _, engine, loaded, *_ in [note for note in notes if note[0] == ISSUED and note[3].action.barrier]:
        yield engine, loaded


def _larger(one: list[int], other: list[int]) -> list[int]:
    return [mine if mine > its else its for mine, its in zip(one, other, strict=True)]  # noqa: FURB136


def set_by(word: Instruction, touches: Any) -> tuple[int, ...]:
    """Return the semaphores that a word gives a number, whatever they were."""
    if touches.barrier:
        return ()
    if not all(isinstance(part, Slot | Raise) for part in type(word).SYNC):
        raise UnknownError
    if not touches.signals:
        return ()
    return tuple([each.index for each in touches.signals if each.amount is None and each.kind == "semaphore"])


def _knows(unit: Use, other: Use) -> bool:
    """Return whether a unit surely begins when another one is over."""
    return unit[0] == other[0] or unit[2][other[0]] >= other[1]
