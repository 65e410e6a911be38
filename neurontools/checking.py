"""What `neurontools check` does with a script, a .s program or a NEFF, once its arguments are known."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neurontools.exits import ExitStatus
from neurontools.files import need_file, read_text
from neurontools.output import Report, note

if TYPE_CHECKING:
    from neurontools.suppressions import Suppression

__all__ = ["FORMATS", "SEVERITIES", "Request", "check"]

FORMATS = ("text", "json", "sarif", "junit", "dot")
SEVERITIES = ("note", "warning", "error")


class Request(NamedTuple):
    """The arguments of one `neurontools check`; `fail_on` is a severity or "never", `form` one of FORMATS."""

    file: Path
    arguments: list[str]
    tools: tuple[str, ...]
    target: str | None = None
    lnc: int | None = None
    inputs: Path | None = None
    seed: int | None = None
    nki: str = "auto"
    fail_on: str = "warning"
    form: str = "text"
    suppressions: Path | None = None
    notes: bool = False
    act: str = "exact"


def check(wanted: Request, out: Report) -> None:
    """Run a file under checks and put what they found into the report."""
    from neurontools.render import check as render
    from neurontools.render import check_formats
    from neurontools.suppressions import read_suppressions, split

    patterns: list[Suppression] = [] if wanted.suppressions is None else read_suppressions(wanted.suppressions)
    results = _script(wanted, out) if wanted.file.suffix == ".py" else _file(wanted)
    found = [finding for _, result in results for finding in result.findings]
    for finding in found:
        finding.reproduce = _again(wanted, finding)
    kept, suppressed = split(found, patterns)
    title = wanted.file.name
    if wanted.form == "sarif":
        out.lines = lambda: check_formats.sarif(kept, suppressed)
    elif wanted.form == "junit":
        out.lines = lambda: check_formats.junit(title, wanted.tools, kept, suppressed)
    elif wanted.form == "dot":
        out.lines = lambda: [line for _, result in results if result.hang for line in result.hang.dot().splitlines()]
    else:
        out.lines = lambda: _text(wanted, results, kept, len(suppressed))
    out.result = {
        "tools": list(wanted.tools),
        "runs": [_run(name, result) for name, result in results],
        "summary": render.summary(kept),
        "findings": [render.finding(finding) for finding in kept],
        "suppressed": [finding.id for finding in suppressed],
    }
    _decide(wanted, results, kept, out)


def _decide(wanted: Request, results: list[tuple[str, Any]], kept: list[Any], out: Report) -> None:
    """Set the exit status: a finding that matters, else what came of the execution."""
    from neurontools.running import outcome

    limit = len(SEVERITIES) if wanted.fail_on == "never" else SEVERITIES.index(wanted.fail_on)
    if any(SEVERITIES.index(finding.severity) >= limit for finding in kept):
        out.status = ExitStatus.FINDING
    elif not kept:
        # A fault or a hang that no tool in use explains, or that a suppression accepts, is still no clean run.
        bad = [outcome(result) for _, result in results if outcome(result) is not ExitStatus.OK]
        out.status = bad[0] if bad else out.status


def _text(wanted: Request, results: list[tuple[str, Any]], kept: list[Any], suppressed: int) -> Any:
    from neurontools.render.check import lines
    from neurontools.render.run import trouble_lines

    explained = {finding.tool for finding in kept}
    for name, result in results:
        if (result.fault is not None and "memcheck" not in explained) or (
            result.hang is not None and "synccheck" not in explained
        ):
            yield f"{name}: the execution did not end"
            yield from trouble_lines(result)
            yield ""
    runs = f", {len(results)} launches" if len(results) > 1 else ""
    yield from lines(f"{wanted.file.name}{runs}", wanted.tools, kept, suppressed, wanted.notes)


def _run(name: str, result: Any) -> dict[str, Any]:
    from neurontools.render import run as render

    return {
        "name": name,
        "time_ps": result.time_ps,
        "instructions": result.stats.instructions,
        "fault": None if result.fault is None else render.fault(result.fault),
        "hang": None if result.hang is None else render.hang(result.hang),
        "graph": None if result.hang is None else result.hang.graph(),
    }


def _again(wanted: Request, finding: Any) -> str:
    """Return the command that shows a finding again."""
    words = ["neurontools", "check", str(wanted.file), "--tool", finding.tool]
    for option, value in (
        ("--target", wanted.target), ("--lnc", wanted.lnc), ("--inputs", wanted.inputs), ("--seed", wanted.seed),
        ("--act", None if wanted.act == "exact" else wanted.act),
        ("--nki", None if wanted.nki == "auto" else wanted.nki),
    ):  # fmt: skip
        if value is not None:
            words += [option, str(value)]
    return " ".join([*words, *(["--", *wanted.arguments] if wanted.arguments else [])])


def _file(wanted: Request) -> list[tuple[str, Any]]:
    from formats.neff import open_neff
    from neurontools.render.progress import progress
    from neurontools.running import check_target, load_inputs

    file = wanted.file
    data: Any = need_file(file)
    if file.suffix == ".s":
        from neurontools.assemble_neff import to_neff
        from neurontools.assembler import parse_program

        data = to_neff(parse_program(read_text(file), str(file), wanted.target))
    neff = open_neff(data)
    check_target(wanted, neff)
    values = load_inputs(wanted.inputs, [tensor.name for tensor in neff.inputs])

    from emulator import runtime

    with progress(file.name) as tick:
        result = runtime.run(neff, values, seed=wanted.seed, checks=wanted.tools, progress=tick, act=wanted.act)
    return [(file.name, result)]


def _script(wanted: Request, out: Report) -> list[tuple[str, Any]]:
    """Run a script; each kernel that it launches is checked."""
    from formats.targets import resolve_target
    from neurontools.nki.errors import KernelFaultError
    from neurontools.run_options import RunOptions, using
    from neurontools.running import environment
    from neurontools.script import run_script

    override = {} if wanted.target is None else {"NEURON_PLATFORM_TARGET_OVERRIDE": resolve_target(wanted.target).name}
    if wanted.nki != "installed":
        from neurontools import nki

        nki.install(override=wanted.nki == "neurontools")
    options = RunOptions(seed=wanted.seed, lnc=wanted.lnc, checks=wanted.tools)
    status = 0
    # Standard output belongs to the report: what the script prints goes to the other stream.
    with using(options), environment(override), contextlib.redirect_stdout(sys.stderr):
        try:
            status = run_script(wanted.file, wanted.arguments)
        except KernelFaultError as error:
            note(f"neurontools: {error}")
    if status:
        out.warn(f"the script ended with status {status}")
    if not options.launches:
        out.warn("the script launched no kernel: nothing was checked")
    out.status = ExitStatus.FINDING if status else ExitStatus.OK
    return [(launch.kernel, launch.result) for launch in options.launches]
