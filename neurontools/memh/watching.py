"""What the `memh` commands that run a program share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.machine.occupancy import Occupancy
    from emulator.runtime import Result
    from neurontools.command.exits import ExitStatus
    from neurontools.command.output import Report

__all__ = ["ended", "watched"]


def watched(file: Path, observers: tuple[Any, ...] = (), *, aside: bool) -> tuple[str, Occupancy, Result]:
    """Run a program and return its name, what its memories held, and the result; faults are values of it."""
    from emulator import runtime  # deferred: start-up
    from emulator.machine.occupancy import Occupancy  # deferred: start-up
    from neurontools.program.configuration import USUAL  # deferred: start-up
    from neurontools.program.interruption import interruptible  # deferred: start-up
    from neurontools.program.opening import open_program  # deferred: start-up

    program, occupancy = open_program(file, USUAL, aside=aside), Occupancy()
    result = runtime.execute(program.neff, program.inputs, program.configuration.bounded().settings(),
                             observers=[occupancy, *observers], guard=interruptible)  # fmt: skip
    return program.name, occupancy, result


def ended(result: Result, out: Report) -> ExitStatus:
    """Return the exit status of a run, with a warning where it did not finish: what was watched is a part of it."""
    from neurontools.program.execution import outcome  # deferred: start-up

    if not result.ok:
        why = (
            result.fault.message if result.fault is not None else result.hang.reason if result.hang is not None else ""
        )
        out.warn(f"the run did not finish, and only what ran until then is shown: {why}")
    return outcome(result)
