"""What `neurontools debug` opens: a program at its beginning, a recorded run at its end, a core dump."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neurontools.debugger import Session
from neurontools.program.configuration import USUAL, RunConfiguration
from neurontools.program.kinds import Kind, refuse_misplaced
from neurontools.program.opening import Program, open_program
from neurontools.program.recording import end_of

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["JOURNAL_BYTES", "open_session", "session_of"]

JOURNAL_BYTES = 500_000_000


def open_session(
    file: Path, configuration: RunConfiguration = USUAL, *, journal_bytes: int = JOURNAL_BYTES, aside: bool = False
) -> Session:
    """Return a session on what a file holds; `aside` and errors are those of `open_program`.

    A program stands at its beginning, a recorded run at its end, a core dump where it was taken.
    """
    if refuse_misplaced(file, configuration, cores=True) is Kind.CORE:
        from neurontools.debugger import open_core_session  # deferred: start-up

        return open_core_session(str(file))
    program = open_program(file, configuration, aside=aside)
    session = session_of(program, journal_bytes=journal_bytes)
    session.record()
    if program.end is not None:
        session.goto("end")
        session.notes += _other_end(program, session.need_live().device)
    if configuration.checks:
        session.enable_checks(*configuration.checks)
    return session


def session_of(program: Program, *, journal_bytes: int = 0) -> Session:
    """Return a session at the beginning of a program."""
    settings = program.configuration.bounded().settings()
    session = Session(
        program.neff, program.inputs, target=settings.target, seed=settings.seed, timing=settings.timing,
        journal_bytes=journal_bytes, hang_timeout_ps=settings.hang_timeout_ps, act=settings.act,
        max_steps=settings.max_steps, limit_ps=settings.limit_ps, max_seconds=settings.max_seconds,
    )  # fmt: skip
    session.notes += program.notes
    session.folders += [folder for folder in program.folders if folder not in session.folders]
    session.execution.named_folders += program.named_folders
    return session


def _other_end(program: Program, device: Device) -> list[str]:
    """Return the note that a recorded run does not end as it was recorded, where it does not."""
    found, then = end_of(device), program.end
    if then is None or found == then:
        return []
    told = ", ".join(f"{key} {old} then, {new} now"
                     for key, old, new in zip(found._fields, then, found, strict=True) if old != new)  # fmt: skip
    return [f"the run does not end as it was recorded: {told}"]
