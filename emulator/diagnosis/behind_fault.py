"""Waits that a fault kept from being met: found when a run has ended so, explained when somebody reads of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from emulator.addresses import AddressMap
from emulator.diagnosis.explain import NEAR, completed_of, faulted_pc, key_of, signals_of, wait_of, waiting_of
from emulator.diagnosis.graph import Wait, judged
from emulator.diagnosis.index import Key, ProgramIndex, StreamIndex
from emulator.faults import Fault
from emulator.loaded import LoadedCore, source_at
from emulator.machine_view import EngineView, MachineView, WaitingView
from formats.isa import WaitMode
from formats.named_tuple import NamedTuple

__all__ = ["LostWait", "waits_behind_fault"]


class LostWait(NamedTuple):
    """A wait of an engine at a pc for what an engine that faulted would signal; `explained` makes all of it."""

    core: int
    engine: str
    pc: int
    key: Key
    explained: Callable[[], Wait]


@dataclass(frozen=True, slots=True)
class _Core:
    """A core as it stood."""

    index: int
    engines: dict[str, _Engine]
    semaphores: list[int]
    events: list[int]
    source_of: Callable[[str, int], object]


class _Engine:
    """An engine as it stood."""

    __slots__ = ("core", "count", "in_flight", "name", "position", "state", "waiting_on", "words")

    def __init__(self, core: _Core, engine: EngineView) -> None:
        self.core, self.name, self.words = core, engine.name, engine.words
        self.position, self.count, self.state = engine.position, engine.count, engine.state
        self.in_flight, self.waiting_on = range(len(engine.in_flight)), engine.waiting_on


class _Queue(NamedTuple):
    """A queue as it stood: what is asked of those that are under way."""

    core: int
    name: str
    pending: Sequence[Any]


class _Stood(NamedTuple):
    """A machine as it stood when a fault ended its run, as far as waits are about it."""

    cores: Sequence[_Core]
    queues: Sequence[_Queue]
    fault: Fault
    addresses: AddressMap
    program_index: ProgramIndex


def waits_behind_fault(machine: MachineView, loaded: Mapping[int, LoadedCore], at_once: bool) -> list[LostWait]:
    """Return the waits of a machine that were for what an engine would have signalled that has faulted.

    What explains them refers to the program, and not to the machine; `loaded` is that of each core. `at_once` has them
    explained now, as they have to be where transfers of the program are made of what the machine holds.
    """
    if machine.fault is None:
        return []
    stood = _stood(machine, machine.fault, loaded)
    view = cast("MachineView", stood)
    faulted = stood.cores[stood.fault.core].engines.get(stood.fault.engine)
    if faulted is None:
        return []  # a queue, or nobody
    guilty = stood.program_index.stream(cast("Any", faulted), stood.addresses)
    found = []
    for core in stood.cores:
        for engine in core.engines.values():
            waiting = waiting_of(cast("Any", engine))
            if waiting is None or engine.words[engine.position].pc == faulted_pc(view, cast("Any", engine)):
                continue
            key, pc = key_of(waiting), engine.words[engine.position].pc
            present = (core.events if waiting.kind == "event" else core.semaphores)[waiting.number]
            if waiting.mode == WaitMode.SEM_EQ and present > waiting.value:
                continue  # nobody's signal would help it
            if _would_signal(view, guilty, key):
                explained = partial(_explained, stood, engine, waiting)
                if at_once:
                    explained = partial(_as_it_is, explained())
                found.append(LostWait(core.index, engine.name, pc, key, explained))
    return found


def _stood(machine: MachineView, fault: Fault, loaded: Mapping[int, LoadedCore]) -> _Stood:
    cores = []
    for each in machine.cores:
        source_of = partial(source_at, loaded[each.index].subgraph) if each.index in loaded else _nowhere
        core = _Core(each.index, {}, list(each.semaphores.values), list(each.events.values), source_of)
        for name, engine in each.engines.items():
            if engine.count:
                core.engines[name] = _Engine(core, engine)
        cores.append(core)
    queues = [
        _Queue(queue.core, queue.name, [_Pending(one.pc) for one in queue.pending])
        for queue in machine.queues
        if queue.pending
    ]
    return _Stood(cores, queues, fault, machine.addresses, ProgramIndex())


class _Pending(NamedTuple):
    """A transfer under way: the pc of the word that started it."""

    pc: int


def _nowhere(engine: str, pc: int) -> None:
    """Return the source of a word of no program."""


def _would_signal(machine: MachineView, stream: StreamIndex, key: Key) -> bool:
    """Return whether a stream has words, or transfers under way, that are to signal what is awaited yet."""
    completed = completed_of(machine, stream.engine)
    for by, _, moves, numbers in stream.sources(key):
        done = bisect_left(numbers, completed)
        if done < len(numbers):
            return True
        if moves:
            core = stream.engine.core.index
            moving = {each.pc for queue in machine.queues if (queue.core, queue.name) == (core, by)
                      for each in queue.pending}  # fmt: skip
            if any(stream.words[number].pc in moving for number in numbers[max(done - NEAR, 0) :]):
                return True
    return False


def _explained(stood: _Stood, engine: _Engine, waiting: WaitingView) -> Wait:
    view = cast("MachineView", stood)
    wait = wait_of(cast("Any", engine), waiting, signals_of(view, key_of(waiting)))
    (found,) = judged([wait], (), stood.fault)
    return found


def _as_it_is(wait: Wait) -> Wait:
    return wait
