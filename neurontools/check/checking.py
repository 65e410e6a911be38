"""What `neurontools check` does with a script, a .s program or a NEFF, once its arguments are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.diagnosis.causes import Reason
from formats.errors import NeuronError, NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.check.ranked import Launched, launches_on_ranks, merged, spelled
from neurontools.check.rows import CheckResult, RunRow, finding_row, run_row, summary_of
from neurontools.command.errors_to_exit import Failure, classify
from neurontools.command.exits import ExitStatus
from neurontools.command.output import Report, note
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution, execute, outcome
from neurontools.program.interruption import Interrupted, was_interrupted
from neurontools.program.kinds import Kind, refuse_misplaced
from neurontools.program.launches import Launch, Launches, run_launches
from neurontools.text.visible import visible

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.diagnosis.graph import Hang
    from emulator.faults import Fault
    from emulator.runtime.ranks import Ranks
    from formats.neff import Neff
    from neurontools.check.suppressions import Suppression
    from neurontools.running.rows import FaultRow, HangRow

__all__ = ["FORMATS", "SEVERITIES", "Judging", "check", "tell_refused"]

_REFUSED_HINTS = {
    "oob": "end the slice where the tensor ends, as with min(start + size, total), or make the tensor larger",
    "operand": "compare both sides of the transfer with each other, and its semaphore with those of its queue",
    "pipe": "give both cores the same pipe_id, and as many exchanges on it",
}
_LIMIT_HINT = "make the operand what the message says that it must be; no device takes the word as it is"
FORMATS = ("text", "json", "sarif", "junit", "dot")
SEVERITIES = ("note", "warning", "error")


class Judging(NamedTuple):
    """What is made of findings; `fail_on` is a severity or "never", `form` one of FORMATS."""

    fail_on: str = "warning"
    form: str = "text"
    suppressions: Path | None = None
    notes: bool = False


def check(
    file: Path, configuration: RunConfiguration, wanted: Judging, out: Report, where: Ranks | None = None
) -> None:
    """Run a file under checks, on several ranks where asked, and put what they found into the report."""
    from neurontools.check.suppressions import read_suppressions, split  # deferred: start-up

    patterns: list[Suppression] = [] if wanted.suppressions is None else read_suppressions(wanted.suppressions)
    # With ranks the name may be a pattern; `launches_on_ranks` looks at the files that it stands for.
    script = where is None and refuse_misplaced(file, configuration) is Kind.SCRIPT
    bounded = configuration.bounded(always=True)
    runs: list[Execution] = []
    launches: list[Launched] = []
    found: list[Finding] = []
    try:
        if where is not None:
            launches = launches_on_ranks(file, bounded, out, where)
            runs = [made for _, each in launches for made in each]
        else:
            runs = _script(file, bounded, out, runs) if script else [_program(file, configuration, out)]
    except NeuronError as error:
        found += _refused(error, configuration.checks)
        if not found:
            raise
    if where is None:
        found += [finding for run in runs for finding in run.result.findings if not finding.refuted]
    else:
        found = merged(launches, found)
    more = () if where is None else spelled(where)
    for finding in found:
        finding.reproduce = configuration.command_line("check", file, "--tool", finding.tool, *more)
    kept, suppressed = split(found, patterns)
    tools = configuration.checks
    ranks = None if where is None else where.ranks
    rows = tuple(run_row(run, None if ranks is None else number % ranks) for number, run in enumerate(runs))
    out.result = CheckResult(tools, rows, summary_of(kept), tuple(map(finding_row, kept)),
                             tuple(finding.id for finding in suppressed))  # fmt: skip
    out.lines = lambda: _lines(file, tools, wanted, runs, rows, kept, suppressed, out)
    _decide(wanted, runs, kept, out)


def tell_refused(file: Path, form: str, error: Exception) -> None:
    """Print, for programs that read a report, that a file was not checked, and why."""
    from neurontools.check.exchange import refused  # deferred: start-up

    if form in ("sarif", "junit"):
        print(visible("\n".join(refused(form, file.name, classify(error)))), flush=True)


def _refused(error: NeuronError, tools: tuple[str, ...]) -> list[Finding]:
    """Return the finding that an error in a kernel is, where it is one and a tool in use gives it."""
    from emulator.checks import KINDS, Finding  # deferred: start-up
    from emulator.checks.finding import Site  # deferred: start-up
    from formats.neff.debuginfo import SourceLocation  # deferred: start-up
    from neurontools.nki.errors import NkiValidationError  # deferred: start-up

    tool, _, kind = error.finding.partition(":")
    if tool not in tools or error.place is None:
        return []
    file, line = error.place
    traced = isinstance(error, NkiValidationError)  # else the loader refused a word
    who, does = ("kernel", "traces") if traced or kind == "pipe" else ("loader", "loads")
    site = Site(0, who, who, -1, "", SourceLocation(file, line, ""), does)
    hint = _LIMIT_HINT if traced and kind == "operand" else _REFUSED_HINTS.get(kind, "")
    return [Finding(tool, kind, KINDS[error.finding].severity, str(error), site, hint=hint)]


def _lines(file: Path, tools: tuple[str, ...], wanted: Judging, runs: list[Execution], rows: Sequence[RunRow],
           kept: list[Finding], suppressed: list[Finding], out: Report) -> Iterator[str]:  # fmt: skip
    """Yield what is asked for: the report for people, or for another program."""
    from neurontools.check import exchange  # deferred: start-up

    unchecked = not (runs or kept or suppressed)  # a report without findings would say that all is well
    if wanted.form == "sarif":
        code = int(out.status) if out.exit_code is None else out.exit_code
        yield from exchange.sarif(kept, suppressed, code, out.warnings, failed=unchecked)
    elif wanted.form == "junit" and unchecked:
        yield from exchange.refused(wanted.form, file.name, Failure(out.status, "script", out.warnings[-1]))
    elif wanted.form == "junit":
        yield from exchange.junit(file.name, tools, kept, suppressed)
    elif wanted.form == "dot":
        yield from (line for run in runs if run.result.hang for line in run.result.hang.dot().splitlines())
    else:
        yield from _text(file, tools, wanted.notes, rows, kept, len(suppressed))


def _decide(wanted: Judging, runs: list[Execution], kept: list[Finding], out: Report) -> None:
    """Set the exit status: a finding that matters, else what came of the execution."""
    if any(was_interrupted(run.result) for run in runs):
        out.status = ExitStatus.INTERRUPTED
        return
    limit = len(SEVERITIES) if wanted.fail_on == "never" else SEVERITIES.index(wanted.fail_on)
    if any(SEVERITIES.index(finding.severity) >= limit for finding in kept):
        out.status = ExitStatus.FINDING
        return
    # A fault or a hang that no finding explains, or that a suppression accepts, is still no clean run.
    bad = [outcome(run.result) for run in runs if _untold(run.result.fault, run.result.hang, kept)]
    out.status = bad[0] if bad else out.status


def _untold(fault: Fault | FaultRow | None, hang: Hang | HangRow | None, kept: list[Finding]) -> bool:
    """Return whether a run ended in what none of some findings is about."""
    if fault is not None:
        return fault.kind == "unsupported" or not any(one.tool == "memcheck" for one in kept)
    if hang is None:
        return False
    kinds = {one.kind for one in kept if one.tool == "synccheck"}
    return not kinds if hang.reason == Reason.DEADLOCK else "livelock" not in kinds


def _text(file: Path, tools: tuple[str, ...], notes: bool, rows: Sequence[RunRow], kept: list[Finding],
          suppressed: int) -> Iterator[str]:  # fmt: skip
    from neurontools.check.view import lines  # deferred: start-up
    from neurontools.running.view import trouble_lines  # deferred: start-up

    for run in rows:
        # What a livelock goes through is in the hang alone.
        livelock = run.hang is not None and run.hang.reason == Reason.LIVELOCK
        if livelock or _untold(run.fault, run.hang, kept):
            yield f"{run.name}{'' if run.rank is None else f', rank {run.rank}'}: the execution did not end"
            yield from trouble_lines(run)
            yield ""
    ranks = 1 + max((run.rank for run in rows if run.rank is not None), default=0)
    spread = f" on {ranks} ranks" if rows and rows[0].rank is not None else ""
    launches = f", {len(rows) // ranks} launches" if len(rows) > ranks else ""
    nothing = "nothing found" if rows else "nothing was checked"
    yield from lines(f"{file.name}{spread}{launches}", tools, kept, suppressed, notes, nothing)


def _program(file: Path, configuration: RunConfiguration, out: Report) -> Execution:
    from neurontools.program.opening import open_program  # deferred: start-up
    from neurontools.text.progress import progress  # deferred: start-up

    program = open_program(file, configuration)
    out.warn(*program.notes)
    with progress(file.name) as tick:
        # A budget comes last: what a recording brings, and what was refused, was decided by what was asked for.
        settled = program.configuration.bounded(always=True)
        made = execute(program.name, program.neff, program.inputs, settled, progress=tick)
    _try(program.neff, program.inputs, settled, made)
    return made


def _try(neff: Neff | bytes, inputs: Mapping[str, Any], configuration: RunConfiguration, made: Execution) -> None:
    """Try the waits that findings suggest before anybody reads of them."""
    from emulator import runtime  # deferred: start-up
    from neurontools.check.trying import try_hints  # deferred: start-up
    from neurontools.check.unused import drop_unused  # deferred: start-up
    from neurontools.check.without import try_without  # deferred: start-up

    result, settings = made.result, configuration.settings()
    if result.ok:
        try_without(neff, inputs, settings, result, result.findings)
        drop_unused([result], lambda seen: [runtime.execute(neff, inputs, settings, observers=seen[0])])
        try_hints(neff, inputs, settings, result, result.findings)


def _script(file: Path, configuration: RunConfiguration, out: Report, made: list[Execution]) -> list[Execution]:
    """Run a script; each kernel that it launches is checked. `made` holds the executions even where it raises."""
    from neurontools.nki.errors import KernelFaultError  # deferred: start-up

    given: dict[str, Any] = {}

    def before(name: str, neff: Neff | bytes, inputs: Mapping[str, Any]) -> None:
        given.clear()
        given.update({key: array.copy() for key, array in inputs.items()})

    def after(launch: Launch) -> None:
        made.append(launch.made)
        _try(launch.file, given, replace(configuration, target=None, lnc=None), launch.made)

    launches = Launches(configuration, before, after)
    status = 0
    try:
        # Standard output belongs to the report: what the script prints goes to the other stream.
        status = run_launches(file, launches, aside=True)
    except KernelFaultError as error:
        note(f"neurontools: {error}")
    except Interrupted:
        out.warn("interrupted: later launches were not checked")
    if status:
        nothing = "" if launches.done else " before it launched a kernel: nothing was checked"
        out.warn(f"the script ended with status {status}{nothing}")
        out.status = ExitStatus.FINDING
    elif not launches.done:
        raise NotFoundError(f"{file}: the script launched no kernel: nothing was checked")
    return made
