"""What the notes of a core dump tell of waits and engines; no memory is looked at."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.diagnosis.causes import Diagnosis, diagnose
from emulator.diagnosis.graph import Hang, Producer, Wait
from emulator.diagnosis.states import recorded_state
from formats.core import Core
from formats.core.records import EngineState, WaitState

__all__ = ["diagnosed", "engines_of", "graph_of"]


def engines_of(core: Core) -> tuple[EngineState, ...]:
    """Return the engines of a dump of any version, in the states in which views show them."""
    return tuple(
        each._replace(state=recorded_state(core, each.core, each.engine, each.state).value) for each in core.engines
    )


def diagnosed(core: Core) -> Iterator[tuple[WaitState, Diagnosis]]:
    """Yield the waits of a dump with their causes; a word that faulted as its wait was met waits no more."""
    notes, fault = core.waits, core.fault
    at = None if fault is None else (fault.core, fault.engine, fault.pc)
    kept = [wait for wait in notes.waits if (wait.core, wait.engine, wait.pc) != at]
    waiting = {(wait.core, wait.engine) for wait in kept}
    circular = {tuple(node) for cycle in notes.cycles for node in cycle}
    for wait in kept:
        # In dumps of earlier versions a word that faulted is done, having issued, and yet it signalled nothing.
        pending = [each for each in wait.signals if each.state != "done" or (each.core, each.owner, each.pc) == at]
        yield (
            wait,
            diagnose(
                wait,
                pending,
                wait.done,
                max(wait.pending, len(pending)),
                (wait.core, wait.engine) in circular,
                waiting,
                fault,
            ),
        )


def graph_of(core: Core) -> Hang:
    """Return the wait graph of a dump; signals that the dump left out are missing, the causes know of their number."""
    waits = [
        Wait(
            wait.core,
            wait.engine,
            wait.pc,
            wait.text,
            wait.source,
            wait.kind,
            wait.number,
            wait.condition,
            wait.need,
            wait.present,
            wait.since_ps,
            tuple(Producer(*signal[:8]) for signal in wait.signals),
            wait.overshoot,
            *diagnosis,
        )
        for wait, diagnosis in diagnosed(core)
    ]
    return Hang(core.waits.reason, core.waits.time_ps, tuple(waits), core.waits.cycles, core.waits.running)
