"""What state an engine is in, decided in one place for every view."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from emulator.diagnosis.causes import FaultPlace

__all__ = ["EngineState", "recorded_state", "state_of"]


class EngineState(StrEnum):
    """States as people see them.

    `run` has words to issue or in flight, `wait` stands at a wait, `fault` is where the execution faulted, `done` has
    completed its stream, `stopped` could have gone on when a fault or a hang elsewhere ended the execution.
    """

    RUN = "run"
    WAIT = "wait"
    FAULT = "fault"
    DONE = "done"
    STOPPED = "stopped"


class Numbered(Protocol):
    """A core, as far as its engines' states go."""

    @property
    def index(self) -> int: ...


class Standing(Protocol):
    """An engine and the state that its sequencer keeps."""

    @property
    def core(self) -> Numbered: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...


class Outcome(Protocol):
    """How an execution stands: `outcome` is "running", "finished", "fault" or "hang"."""

    @property
    def outcome(self) -> str: ...
    @property
    def fault(self) -> FaultPlace | None: ...


# What the sequencer keeps, and what dumps of earlier versions say.
_KEPT = {"idle": EngineState.RUN, "running": EngineState.RUN, "waiting": EngineState.WAIT}
_KNOWN: dict[str, EngineState] = {**_KEPT, **{state.value: state for state in EngineState}}


def state_of(machine: Outcome, engine: Standing) -> EngineState:
    """Return the state of an engine."""
    return recorded_state(machine, engine.core.index, engine.name, engine.state)


def recorded_state(machine: Outcome, core: int, engine: str, state: str) -> EngineState:
    """Return the state of an engine that a sequencer, or a dump of any version, says is in `state`."""
    fault = machine.fault
    if fault is not None and (fault.core, fault.engine) == (core, engine):
        return EngineState.FAULT
    found = _KNOWN.get(state, EngineState.STOPPED)  # a damaged dump says anything
    over = machine.outcome in ("fault", "hang")
    return EngineState.STOPPED if over and found is EngineState.RUN else found
