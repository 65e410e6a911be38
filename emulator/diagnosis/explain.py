"""Make the wait graph of a machine: where its engines stand, and where everything stands that could signal them."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import chain

from emulator.diagnosis.causes import Cause, Node, counter_name
from emulator.diagnosis.graph import Hang, Looping, Producer, Wait, cycles_of, judged
from emulator.diagnosis.index import Key, StreamIndex, index_of
from emulator.diagnosis.states import EngineState, state_of
from emulator.livelock import Loop
from emulator.loaded import LoadedWord
from emulator.machine_view import EngineView, MachineView, WaitingView
from formats.errors import NeuronError
from formats.isa import WaitMode

__all__ = ["NEAR", "completed_of", "explain", "faulted_pc", "key_of", "signals_of", "wait_of", "waiting_of", "why"]

NEAR = 8  # signals done last, and to come next, that have their text


def waiting_of(engine: EngineView) -> WaitingView | None:
    """Return what an engine waits for, None where it does not wait."""
    return engine.waiting_on if engine.state == "waiting" else None


def explain(machine: MachineView, reason: str, loops: Sequence[Loop] = ()) -> Hang:
    """Return why a machine stands still, or what it was at when a limit ended it; `loops` are those it cannot leave."""
    engines = [engine for core in machine.cores for engine in core.engines.values()]
    # A word that faulted as its wait was met waits no more; the engine may wait for a transfer of its own that faulted.
    waiting = [
        (engine, found)
        for engine in engines
        if (found := waiting_of(engine)) is not None and engine.words[engine.position].pc != faulted_pc(machine, engine)
    ]
    collecting = gc.isenabled()
    gc.disable()  # thousands of new tuples would set it off, over all words of the program: more than all the rest
    try:
        signals = {key: signals_of(machine, key) for key in {key_of(found) for _, found in waiting}}
    finally:
        if collecting:
            gc.enable()
    waits = [wait_of(engine, found, signals[key_of(found)]) for engine, found in waiting]
    cycles = cycles_of(waits)
    looping = {(loop.core, loop.engine) for loop in loops}
    running = tuple(
        f"nc{engine.core.index} {engine.name} pc {loaded.pc}: {loaded.word.text}"
        for engine in engines
        if state_of(machine, engine) in (EngineState.RUN, EngineState.STOPPED)
        and (engine.core.index, engine.name) not in looping
        and (loaded := engine.next_loaded) is not None
    )
    explained = tuple(_behind_loops(wait, looping) for wait in judged(waits, cycles, machine.fault))
    return Hang(
        reason,
        machine.now_ps,
        explained,
        cycles,
        running,
        tuple(word for loop in loops for word in _words_of(machine, loop)),
    )


def _behind_loops(wait: Wait, looping: Collection[Node]) -> Wait:
    """Return a wait; where only engines that loop for ever would signal it, it says so."""
    owners = dict.fromkeys((signal.core, signal.owner) for signal in wait.pending)
    if wait.cause is not Cause.RUNNING or not owners or not all(owner in looping for owner in owners):
        return wait
    names = " and ".join(f"nc{core} {engine}" for core, engine in owners)
    verdict = f"only {names} would signal {counter_name(wait.kind, wait.number)}, and will not come to it"
    return wait._replace(verdict=verdict, hint="look at the loop: it is the cause")


def _words_of(machine: MachineView, loop: Loop) -> list[Looping]:
    """Return the words of a loop with their source lines."""
    core = machine.cores[loop.core]
    words = core.engines[loop.engine].words[loop.first : loop.last + 1]
    return [
        Looping(loop.core, loop.engine, word.pc, word.word.text, core.source_of(loop.engine, word.pc)) for word in words
    ]


def why(machine: MachineView, core: int, engine: str) -> Hang | None:
    """Return the part of the wait graph that one engine's wait is about, None where it waits for nothing."""
    whole = explain(machine, f"nc{core} {engine} waits")
    own = tuple(wait for wait in whole.waits if (wait.core, wait.engine) == (core, engine))
    cycles = tuple(cycle for cycle in whole.cycles if (core, engine) in cycle)
    return Hang(whole.reason, whole.time_ps, own, cycles) if own else None


def signals_of(machine: MachineView, key: Key) -> tuple[Producer, ...]:
    """Return everything in the program that signals one semaphore or event: (core, "semaphore" or "event", number).

    The first call indexes every stream, 0.05 s for 100,000 words; later ones only look where the engines stand.
    """
    return tuple(chain.from_iterable(_signals_of(machine, stream, key) for stream in index_of(machine)))


def faulted_pc(machine: MachineView, engine: EngineView) -> int | None:
    """Return the pc at which an engine faulted, None where it did not."""
    fault = machine.fault
    return fault.pc if fault is not None and (fault.core, fault.engine) == (engine.core.index, engine.name) else None


def completed_of(machine: MachineView, engine: EngineView) -> int:
    """Return how many words of a stream have had their effect: one that faulted has left the engine without."""
    count = engine.position - len(engine.in_flight)
    return count - (count > 0 and engine.words[count - 1].pc == faulted_pc(machine, engine))


def key_of(waiting: WaitingView) -> Key:
    """Return which semaphore or event an engine waits for."""
    return waiting.core, waiting.kind, waiting.number


def wait_of(engine: EngineView, waiting: WaitingView, signals: tuple[Producer, ...]) -> Wait:
    """Return the wait of an engine, its cause left open."""
    loaded = engine.words[engine.position]
    present = (engine.core.events if waiting.kind == "event" else engine.core.semaphores)[waiting.number]
    return Wait(
        engine.core.index,
        engine.name,
        loaded.pc,
        loaded.word.text,
        engine.core.source_of(engine.name, loaded.pc),
        waiting.kind,
        waiting.number,
        waiting.text,
        waiting.value,
        present,
        waiting.since_ps,
        signals,
        waiting.mode == WaitMode.SEM_EQ and present > waiting.value,
    )


def _signals_of(machine: MachineView, stream: StreamIndex, key: Key) -> list[Producer]:
    """Return every signal of an engine's stream, DMA transfers it starts included, and where each stands."""
    sources = stream.sources(key)
    if not sources:
        return []
    engine = stream.engine
    core, position, words = engine.core.index, engine.position, stream.words
    completed, faulted = completed_of(machine, engine), faulted_pc(machine, engine)
    moving = {(queue.name, each.pc) for queue in machine.queues if queue.core == core for each in queue.pending}
    found: list[tuple[int, Producer]] = []
    for by, amount, moves, numbers in sources:
        done, begun = bisect_left(numbers, completed), bisect_left(numbers, position)
        # Text is slow: of thousands that are done or to come, only those near where the engine stands have it.
        near = max(done - NEAR, 0)
        found += [(n, Producer(core, by, engine.name, words[n].pc, "", "done", amount)) for n in numbers[:near]]
        for at, number in enumerate(numbers[near:], near):
            loaded = words[number]
            under_way = at >= done or (moves and (by, loaded.pc) in moving)
            if under_way and loaded.pc == faulted:
                state = "faulted"
            elif at < begun:
                state = "running" if under_way else "done"
            else:
                state = "blocked" if number == position and waiting_of(engine) is not None else "queued"
            text = _text(loaded) if at < begun + NEAR else ""
            behind = words[position].pc if state == "queued" and position < engine.count else None
            found.append((number, Producer(core, by, engine.name, loaded.pc, text, state, amount, behind)))
    if len(sources) > 1:
        found.sort(key=lambda each: each[0])
    return [signal for _, signal in found]


def _text(loaded: LoadedWord) -> str:
    text = loaded.word.text
    if loaded.transfer is None:
        return text
    try:
        return f"{text} ({loaded.transfer().text})"
    except NeuronError:
        return text  # it could not even be made; the engine faults when it gets there
