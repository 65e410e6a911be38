"""The results of `neurontools run`: of a file that ran once, or of a script with its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.running.rows import (
    FaultRow,
    HangRow,
    OutputRow,
    PrintedRow,
    StatsRow,
    fault_row,
    hang_row,
    notices,
    output_rows,
    printed_row,
    stats_row,
)

if TYPE_CHECKING:
    from neurontools.program.execution import Execution
    from neurontools.program.launches import Launch

__all__ = ["LaunchRun", "ProgramRun", "ScriptRun", "launch_run", "program_run"]

TimePs = Annotated[int, "device time in picoseconds"]
Dump = Annotated[str | None, "directory of the core dump that a fault or hang left behind"]
Prints = Annotated[tuple[PrintedRow, ...], "what the program printed (nl.device_print), in order"]


class ProgramRun(NamedTuple):
    """What came of a NEFF, a .s program or a recording."""

    time_ps: TimePs
    outputs: tuple[OutputRow, ...]
    fault: FaultRow | None
    hang: HangRow | None
    stats: StatsRow
    prints: Prints
    dump: Dump


class LaunchRun(NamedTuple):
    """What came of one launch of a script."""

    kernel: str
    neff_bytes: int
    time_ps: TimePs
    outputs: tuple[OutputRow, ...]
    fault: FaultRow | None
    hang: HangRow | None
    stats: StatsRow
    prints: Prints
    warnings: tuple[str, ...]
    dump: Dump


class ScriptRun(NamedTuple):
    """What came of a script: its exit status, and its launches in order."""

    status: int
    launches: tuple[LaunchRun, ...]


def program_run(made: Execution) -> ProgramRun:
    """Return what came of one execution."""
    result = made.result
    return ProgramRun(
        result.time_ps, output_rows(result), None if result.fault is None else fault_row(result.fault),
        None if result.hang is None else hang_row(result.hang), stats_row(result.stats),
        tuple(printed_row(item) for item in result.prints), made.dump,
    )  # fmt: skip


def launch_run(launch: Launch) -> LaunchRun:
    """Return what came of one launch."""
    run, made = program_run(launch.made), launch.made
    return LaunchRun(made.name, len(launch.neff), *run[:-1], tuple(notices(made.result.warnings)), run.dump)
