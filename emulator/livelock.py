"""Loops that can never end: the same state again, and nothing in between that could make it another one.

Looked at only where an engine jumps back, and only while the words of its loop write no memory: programs that compute
pay nothing. Two proofs are tried. Where every engine that moves only reads (registers may change), each is a machine of
its own in surroundings that stand still, whatever the schedule: it loops for ever once its own state was there before.
Where engines also signal one another, the state of the whole device, with all times as distances from now, has to be
there a second time; that holds for a schedule that chance does not shake. States to compare with are kept as Brent
does: after 1, 2, 4, 8 ... turns.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Protocol

from emulator.loaded import LoadedWord
from emulator.semaphores import Counters, holds
from formats import isa
from formats.named_tuple import NamedTuple

__all__ = ["Joint", "Loop", "Turn", "turned"]

_BEFORE_JOINT = 8  # turns of calm loops before the whole state is looked at
_CLEARS = (isa.EventSemaphoreRangeClear, isa.CoreBarrier)


class Reach(IntEnum):
    """How far what a word changes can be seen: by its engine, by engines that wait, in memory or by the DMA."""

    OWN = 0
    SHARED = 1
    LASTING = 2


class Loop(NamedTuple):
    """Words that an engine carries out for ever: positions `first` to `last` of its stream."""

    core: int
    engine: str
    first: int
    last: int


class Turn(NamedTuple):
    """What is known of an engine at its latest jump back.

    `target` is where it went on. Its loops have written no memory since `calm_ps`, and signalled nothing since
    `own_ps`. `kept` is the state to compare with (branch, target, registers), last met at `seen_ps` with `moved`
    transfers done, and `closed_ps` when it was met before that, -1 where it was not. Words from `first` to `last` were
    passed since, `loop` is what was passed from one meeting to the next. `turns` of `power` have gone by.
    """

    target: int
    calm_ps: int
    own_ps: int
    kept: tuple[int, int, tuple[int, ...]]
    seen_ps: int
    moved: int
    closed_ps: int = -1
    closed_moved: int = -1
    first: int = 0
    last: int = 0
    loop: tuple[int, int] = (0, 0)
    turns: int = 0
    power: int = 1


class Joint(NamedTuple):
    """The state of a whole device to compare with, as `_whole` gives it, and how many turns of calm loops went by.

    `signs` are the part of it that tells most states apart, and costs little.
    """

    state: tuple[Any, ...] | None = None
    signs: tuple[Any, ...] = ()
    kept_ps: int = 0
    completed: tuple[int, ...] = ()
    turns: int = 0
    power: int = _BEFORE_JOINT


class TurningEngine(Protocol):
    """An engine, as far as its loops go; fields as in `Sequencer`."""

    turn: Turn | None
    reaches: dict[tuple[int, int], Reach]
    name: str
    completed: int
    registers: list[int]

    @property
    def core(self) -> Any: ...
    @property
    def words(self) -> Sequence[LoadedWord]: ...


class TurningDevice(Protocol):
    """A device, as far as loops go; fields as in `Device`."""

    joint: Joint | None
    heap: list[Any]
    propagation_ps: int

    @property
    def cores(self) -> Sequence[Any]: ...
    @property
    def queues(self) -> Sequence[Any]: ...
    @property
    def jitter(self) -> object: ...


def turned(device: TurningDevice, engine: TurningEngine, at: int, target: int, now: int) -> tuple[Loop, ...]:
    """Take note of an engine that jumps back; return the loops that nothing ends, none where something might."""
    before = engine.turn
    reach = Reach.LASTING if before is None else _reach(engine, before.target, at)
    if before is None or reach is Reach.LASTING:
        device.joint = None
        engine.turn = Turn(target, now, now, (at, target, tuple(engine.registers)), now, _moved(device))
        return ()
    first = min(before.first, before.target) if before.turns else before.target
    own_ps = now if reach is Reach.SHARED else before.own_ps
    turn = before._replace(
        target=target,
        own_ps=own_ps,
        first=first,
        last=max(before.last, at) if before.turns else at,
        turns=before.turns + 1,
    )
    state = (at, target, tuple(engine.registers))
    if state == before.kept:
        turn = turn._replace(
            seen_ps=now,
            moved=_moved(device),
            closed_ps=before.seen_ps,
            closed_moved=before.moved,
            loop=(turn.first, turn.last),
            turns=0,
        )
    elif turn.turns >= turn.power:
        turn = turn._replace(kept=state, seen_ps=now, moved=_moved(device), closed_ps=-1, turns=0, power=2 * turn.power)
    engine.turn = turn
    if turn.closed_ps >= 0 and turn.turns == 0 and turn.own_ps <= turn.closed_ps:
        return _apart(device)
    if reach is Reach.SHARED and device.jitter is None:
        return _together(device, engine, now)
    return ()


def _reach(engine: TurningEngine, first: int, last: int) -> Reach:
    """Return the farthest reach of the words from one position to another, both included."""
    found = engine.reaches.get((first, last))
    if found is None:
        found = Reach.OWN
        for loaded in engine.words[first : last + 1]:
            found = max(found, _reach_of(loaded))
            if found is Reach.LASTING:
                break
        engine.reaches[first, last] = found
    return found


def _reach_of(loaded: LoadedWord) -> Reach:
    word = loaded.word
    if loaded.transfer is not None or not word.CALM:
        return Reach.LASTING
    if isinstance(word, _CLEARS) or word.signals or any(wait.kind == "event" for wait in word.waits):
        return Reach.SHARED
    return Reach.OWN


def _moved(device: TurningDevice) -> int:
    """Return how many transfers have completed, -1 while one is pending."""
    done = 0
    for queue in device.queues:
        if queue.pending:
            return -1
        done += queue.completed
    return done


def _engines(device: TurningDevice) -> Iterator[Any]:
    for core in device.cores:
        yield from core.engines.values()


def _stuck(engine: Any) -> bool:
    """Return whether an engine is through, or waits for what only another one can give."""
    if engine.done:
        return True
    waiting = engine.waiting_on
    if engine.state != "waiting" or waiting is None or engine.in_flight:
        return False
    where = engine.core.events if waiting.kind == "event" else engine.core.semaphores
    return not holds(waiting.mode, where.values[waiting.number], waiting.value)


def _apart(device: TurningDevice) -> tuple[Loop, ...]:
    """Return the loops of engines that only read, where everybody else stands still and has done so since before."""
    quiet, since = 0, 1 << 62
    loops = []
    for engine in _engines(device):
        turn = engine.turn
        if _stuck(engine):
            begun = 0 if engine.done else engine.waiting_on.since_ps  # a barrier signals before it waits
            quiet = max(quiet, engine.last_done, begun)
        elif turn is not None and turn.closed_ps >= 0 and turn.own_ps <= turn.closed_ps and turn.closed_moved >= 0:
            quiet, since = max(quiet, turn.own_ps), min(since, turn.closed_ps)
            loops.append((turn.closed_moved, Loop(engine.core.index, engine.name, *turn.loop)))
        else:
            return ()
    moved = _moved(device)
    if quiet > since or any(then != moved for then, _ in loops):
        return ()
    return tuple(loop for _, loop in loops)


def _together(device: TurningDevice, engine: TurningEngine, now: int) -> tuple[Loop, ...]:
    """Return the loops of engines that signal one another, where the whole device was in this state before."""
    before = device.joint or Joint()
    due = before.turns + 1 >= before.power
    if not due and (before.state is None or not _like(device, engine, before.signs)):
        device.joint = before._replace(turns=before.turns + 1)
        return ()
    moved = _moved(device)
    state = None if moved < 0 else _whole(device, engine, moved, now)
    if state is None:
        device.joint = None
        return ()
    if state == before.state:
        loops = _loops_since(device, before)
        if loops:
            return loops
    if state == before.state or due:
        completed = tuple(each.completed for each in _engines(device))
        power = before.power * (1 if before.state is None else 2)
        device.joint = Joint(state, _signs(device, engine), now, completed, 0, power)
    else:
        device.joint = before._replace(turns=before.turns + 1)
    return ()


def _signs(device: TurningDevice, engine: TurningEngine) -> tuple[Any, ...]:
    return engine, *(list(counters.values) for core in device.cores for counters in (core.events, core.semaphores))


def _like(device: TurningDevice, engine: TurningEngine, signs: tuple[Any, ...]) -> bool:
    """Return whether the same engine turns, with semaphores and events as they were."""
    now = (counters.values for core in device.cores for counters in (core.events, core.semaphores))
    return engine is signs[0] and all(map(operator.eq, now, signs[1:]))


def _loops_since(device: TurningDevice, before: Joint) -> tuple[Loop, ...]:
    loops = []
    for each, completed in zip(_engines(device), before.completed, strict=True):
        if each.completed == completed:
            continue
        if each.turn is None or each.turn.calm_ps > before.kept_ps:
            return ()
        loops.append(Loop(each.core.index, each.name, *_passed(each.turn)))
    return tuple(loops)


def _passed(turn: Turn) -> tuple[int, int]:
    """Return first and last position of the latest turn."""
    if turn.turns:
        return turn.first, turn.last
    return turn.loop if turn.closed_ps >= 0 else (turn.target, max(turn.target, turn.kept[0]))


def _whole(device: TurningDevice, turning: TurningEngine, moved: int, now: int) -> tuple[Any, ...] | None:
    """Return all that decides what comes next, but for memory; None where more than engines is at work."""
    due = []
    for time_ps, _, callback in sorted(device.heap, key=lambda entry: entry[:2]):
        owner = getattr(callback, "__self__", None)
        if owner is None or not hasattr(owner, "turn"):
            return None
        due.append((time_ps - now, owner.core.index, owner.name, callback.__name__))
    engines = []
    for each in _engines(device):
        flow = each.flow()
        waiting = None if flow.awaiting is None else flow.awaiting[:5]
        turn = 0 if flow.waiters is None else [wake.__self__ is each for _, wake in flow.waiters].index(True)
        engines.append(
            (
                flow.position,
                flow.state,
                waiting,
                turn,
                flow.draining,
                flow.barrier_raised,
                max(flow.last_done - now, 0),
                tuple(flight[0].slot for flight in flow.flights),
                tuple(each.registers),
            )
        )
    cores = [
        (
            _counters(core.semaphores, device, now),
            _counters(core.events, device, now),
            tuple(max(free - now, 0) for free in core.contention.snapshot().free),
        )
        for core in device.cores
    ]
    return moved, turning.core.index, turning.name, tuple(due), tuple(engines), tuple(cores)


def _counters(counters: Counters, device: TurningDevice, now: int) -> tuple[Any, ...]:
    """Return the values, and which changes have not reached everybody yet."""
    late = now - device.propagation_ps
    fresh = tuple((index, time - now) for index, time in enumerate(counters.changed) if time > late)
    return tuple(counters.values), fresh
