"""What `neurontools run` does with a script, a .s program or a NEFF, once its arguments are known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.output import Report, note, write_whole
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution, execute, numbered, outcome
from neurontools.program.interruption import Interrupted, was_interrupted
from neurontools.program.kinds import Kind, refuse_misplaced
from neurontools.program.launches import Launch, Launches, run_launches
from neurontools.running.results import ScriptRun, launch_run, program_run
from neurontools.running.rows import notices, unwritten_notes

if TYPE_CHECKING:
    from emulator.runtime import Result

__all__ = ["Kept", "run_any"]


class Kept(NamedTuple):
    """The files that a run leaves behind where they are wanted: its outputs, and the NEFFs that ran."""

    outputs: Path | None = None
    neff: Path | None = None


def run_any(file: Path, configuration: RunConfiguration, kept: Kept, out: Report) -> None:
    """Run whatever a file holds, and put what came of it into the report."""
    if refuse_misplaced(file, configuration) is Kind.SCRIPT:
        _run_script(file, configuration, kept, out)
    else:
        _run_program(file, configuration, kept, out)


def _run_program(file: Path, configuration: RunConfiguration, kept: Kept, out: Report) -> None:
    from neurontools.program.opening import open_program  # deferred: start-up
    from neurontools.running import view as render  # deferred: start-up
    from neurontools.text.progress import progress  # deferred: start-up

    program = open_program(file, configuration)
    out.warn(*program.notes)
    neff = program.neff
    with progress(file.name) as tick:
        made = execute(neff.header.name or program.name, neff, program.inputs, program.configuration,
                       folders=(file.resolve().parent, *program.folders), progress=tick)  # fmt: skip
    result = made.result
    if kept.neff is not None:
        with write_whole(kept.neff) as beside:
            beside.write_bytes(neff.to_bytes())
    _save_outputs(kept.outputs, result)
    out.warn(*notices(result.warnings, neff), *unwritten_notes(result), *made.notes)
    run = out.result = program_run(made)
    out.lines = lambda: render.result_lines(f"{file.name} on {neff.target.name}, LNC {neff.lnc}", run, result.prints)
    out.status = outcome(result)


def _run_script(file: Path, configuration: RunConfiguration, kept: Kept, out: Report) -> None:
    """Run a script with its kernels on the emulator; its exit status becomes the report's."""
    from formats.neff import open_neff  # deferred: start-up
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up
    from neurontools.running import view as render  # deferred: start-up

    launches = Launches(configuration, after=lambda launch: _keep(launch, len(launches.done), kept))
    try:
        # With --json standard output is one document, so what the script prints goes to the other stream.
        status = run_launches(file, launches, aside=out.as_json)
    except (KernelFaultError, Interrupted) as error:
        # The report holds the launch that failed; people get all of it too, after what the script printed.
        result = error.result if isinstance(error, KernelFaultError) else launches.done[-1].made.result
        out.status = outcome(result)
        status = int(out.status)
        if not out.as_json:
            _explain(error, result, [launch.made for launch in launches.done[-1:]])
    done = launches.done
    rows = tuple(launch_run(launch) for launch in done)
    out.result = ScriptRun(status, rows)
    if out.status is ExitStatus.OK:
        out.exit_code = status
    # One line per kernel: ragged tiles read bytes that nobody wrote, and are right.
    for name, item in {item.made.name: item for item in reversed(done) if item.made.result.warnings}.items():
        lines = notices(item.made.result.warnings, open_neff(item.file))
        out.warn(f"{name}: {lines[0]}" + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""))
    # A kernel that is launched again and again says it once.
    out.warn(*dict.fromkeys(f"{item.made.name}: {text}" for item in done for text in unwritten_notes(item.made.result)))
    if (kept.neff or kept.outputs or configuration.record) and not done:
        out.warn("the script launched no kernel: nothing was saved")
    if not out.as_json and not out.quiet and sys.stderr.isatty():
        for row in rows:
            note(render.launch_line(row.kernel, row))


def _explain(error: BaseException, result: Result, last: list[Execution]) -> None:
    from neurontools.running.view import trouble_lines  # deferred: start-up

    for made in last:
        if made.result is result:
            note(f"neurontools: {made.name}: execution {'interrupted' if was_interrupted(result) else 'failed'}")
            for line in trouble_lines(program_run(made)):
                note(line)
            if made.dump is not None:
                note(f"dump: {made.dump}")
            return
    note(f"neurontools: {error}")


def _keep(launch: Launch, number: int, kept: Kept) -> None:
    """Save what was asked for as soon as it exists: the script may fail later."""
    try:
        if kept.neff is not None:
            with write_whole(numbered(kept.neff, number)) as beside:
                beside.write_bytes(launch.neff)
        _save_outputs(kept.outputs, launch.made.result)
    except OSError as error:
        # This runs inside the script, whose own OSErrors end in its traceback; ours is no error of the script.
        reason = (error.strerror or str(error)).lower()
        raise FormatError(f"cannot be written ({reason})", path=error.filename) from None


def _save_outputs(path: Path | None, result: Result) -> None:
    if path is None or result.fault is not None or result.hang is not None:
        return
    from neurontools.program.arrays import write_arrays  # deferred: start-up

    with write_whole(path) as beside:
        write_arrays(beside, result.outputs)
