"""Who could end a wait, in few enough steps for every frame of a screen."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from emulator.signals import index_of
from formats.isa import WaitMode

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.hang import Wait
    from emulator.sequencer import Sequencer

__all__ = ["Blocker", "blocker_of", "blocker_of_wait"]


class Blocker(NamedTuple):
    """Who could end the wait of the word at `at`: `engine` (or queue) at `pc`, "" where nobody can any more.

    `pending` signals have not come yet, `done` have; `state` is as in `emulator.hang.Signal`.
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


def blocker_of(device: Device, core: int, engine: str) -> Blocker | None:
    """Return who could end what an engine waits for, None where it does not wait."""
    found = device.cores[core].engines[engine]
    waiting = found.waiting_on if found.state == "waiting" else None
    if waiting is None:
        return None
    at = found.words[found.position].pc if found.position < found.count else found.pc
    counters = found.core.events if waiting.kind == "event" else found.core.semaphores
    overshoot = waiting.mode == WaitMode.SEM_EQ and counters[waiting.number] > waiting.value
    moving = (
        [each for queue in device.queues for each in queue.signals(waiting.number, waiting.core)]
        if waiting.kind == "semaphore"
        else []
    )
    first: tuple[int, str, int, str, int | None] | None = None
    if moving:
        first = moving[0].core, moving[0].queue, moving[0].pc, "running", None
    pending, done = len(moving), -len(moving)
    key = waiting.core, waiting.kind, waiting.number
    for other in (each for cores in device.cores for each in cores.engines.values()):
        issued, nearest = other.position - len(other.in_flight), other.count
        for source in index_of(other).sources(key):
            ahead = bisect_left(source.numbers, issued)
            done += ahead
            pending += len(source.numbers) - ahead
            if (first is None or nearest < other.count) and ahead < len(source.numbers):
                number = source.numbers[ahead]
                if number < nearest:
                    nearest = number
                    first = other.core.index, source.by, other.words[number].pc, *_state(other, number)
    return Blocker(at, *(first or (waiting.core, "", -1, "", None)), pending, max(done, 0), overshoot)


def _state(engine: Sequencer, number: int) -> tuple[str, int | None]:
    if number < engine.position:
        return "running", None
    if number == engine.position and engine.state == "waiting":
        return "blocked", None
    return "queued", engine.words[engine.position].pc


def blocker_of_wait(wait: Wait) -> Blocker:
    """Return the same of one wait of a report."""
    pending = wait.pending
    done = len(wait.could_signal) - len(pending)
    if not pending:
        return Blocker(wait.pc, wait.core, "", -1, "", None, 0, done, wait.overshoot)
    first = pending[0]
    return Blocker(wait.pc, first.core, first.engine, first.pc, first.state, first.behind, len(pending), done,
                   wait.overshoot)  # fmt: skip
