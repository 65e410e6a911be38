"""Who could end a wait and why nobody does, in few enough steps for every frame of a screen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from emulator.diagnosis.causes import Cause, Node, diagnose
from emulator.diagnosis.explain import completed_of, faulted_pc, key_of, wait_of, waiting_of
from emulator.diagnosis.graph import Producer, Wait
from emulator.diagnosis.index import Key, index_of
from emulator.machine_view import EngineView, MachineView
from formats.named_tuple import NamedTuple

__all__ = ["Blocker", "blocker_of", "blocker_of_wait"]


class Blocker(NamedTuple):
    """Who could end the wait of the word at `at`: `engine` (or queue) at `pc`, "" where nobody can any more.

    `pending` signals have not come yet, `done` have; `state` is as in `emulator.diagnosis.graph.Producer`, `cause` and
    `verdict` as in `Wait`.
    """

    at: int
    core: int
    engine: str
    pc: int
    state: str
    behind: int | None
    pending: int
    done: int
    overshoot: bool
    cause: Cause
    verdict: str


class Ahead(NamedTuple):
    """The signals of one semaphore or event: the next of each engine and queue, how many are to come, and have come."""

    nearest: list[Producer]
    pending: int
    done: int


def blocker_of(machine: MachineView, core: int, engine: str) -> Blocker | None:
    """Return who could end what an engine waits for, None where it does not wait."""
    found, node = machine.cores[core].engines[engine], (core, engine)
    waiting = waiting_of(found)
    if waiting is None:
        return None
    ahead = {
        (each.core.index, each.name): _ahead(machine, key_of(awaited))
        for cores in machine.cores
        for each in cores.engines.values()
        if (awaited := waiting_of(each)) is not None
    }
    nearest, pending, done = ahead[node]
    wait = wait_of(found, waiting, tuple(nearest))
    cause, verdict, _ = diagnose(wait, nearest, done, pending, _circular(node, ahead), ahead, machine.fault)
    first = nearest[0] if nearest else Producer(waiting.core, "", "", -1, "", "", None)
    return Blocker(wait.pc, first.core, first.engine, first.pc, first.state, first.behind, pending, done,
                   wait.overshoot, cause, verdict)  # fmt: skip


def _ahead(machine: MachineView, key: Key) -> Ahead:
    core, kind, number = key
    nearest = [
        Producer(each.core, queue.name, each.engine, each.pc, "", "running", None)
        for queue in machine.queues
        for each in (queue.signals(number, core) if kind == "semaphore" else ())
    ]
    # The words that started these transfers have completed and are counted as done below, but their signals are still
    # to come.
    pending, done = len(nearest), -len(nearest)
    for stream in index_of(machine):
        engine, completed = stream.engine, completed_of(machine, stream.engine)
        found: tuple[int, str] | None = None
        for source in stream.sources(key):
            given = bisect_left(source.numbers, completed)
            done += given
            pending += len(source.numbers) - given
            if given < len(source.numbers) and (found is None or source.numbers[given] < found[0]):
                found = source.numbers[given], source.by
        if found is not None:
            number, by = found
            state, behind = _state(machine, engine, number)
            pc = engine.words[number].pc
            nearest.append(Producer(engine.core.index, by, engine.name, pc, "", state, None, behind))
    return Ahead(nearest, pending, max(done, 0))


def _state(machine: MachineView, engine: EngineView, number: int) -> tuple[str, int | None]:
    if engine.words[number].pc == faulted_pc(machine, engine):
        return "faulted", None
    if number < engine.position:
        return "running", None
    if number == engine.position and waiting_of(engine) is not None:
        return "blocked", None
    return "queued", engine.words[engine.position].pc


def _circular(node: Node, ahead: Mapping[Node, Ahead]) -> bool:
    """Return whether an engine waits for engines that wait for it."""
    seen: set[Node] = set()
    following = [node]
    while following:
        for signal in ahead[following.pop()].nearest:
            after = signal.core, signal.owner
            if after == node:
                return True
            if after in ahead and after not in seen:
                seen.add(after)
                following.append(after)
    return False


def blocker_of_wait(wait: Wait) -> Blocker:
    """Return the same of one wait of a report."""
    pending = wait.pending
    done = len(wait.could_signal) - len(pending)
    first = pending[0] if pending else Producer(wait.core, "", "", -1, "", "", None)
    return Blocker(wait.pc, first.core, first.engine, first.pc, first.state, first.behind, len(pending), done,
                   wait.overshoot, wait.cause, wait.verdict)  # fmt: skip
