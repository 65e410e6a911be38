"""`neurontools monitor validate`: whether reports have the documented shape, and add up."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from formats.nrt.monitor import problems
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.monitor.files import MonitorFile, reports_of
from neurontools.text.table import count


class BadReport(NamedTuple):
    """One report that is not as documented: its number in the stream, what is wrong."""

    number: int
    problems: list[str]


class Validated(NamedTuple):
    """The result of `monitor validate`."""

    reports: int
    bad: list[BadReport]


def view(found: Validated) -> list[str]:
    """Return what is wrong with each report."""
    lines = [f"{count(found.reports, 'report')}, {len(found.bad)} not as documented"]
    return lines + [f"report {one.number}: {text}" for one in found.bad for text in one.problems]


def monitor_validate(
    file: MonitorFile, json: Json = False, quiet: Quiet = False, error_exitcode: ErrorExitCode = None
) -> None:
    """Check reports of neuron-monitor against the documentation.

    Looks for fields that are missing, unknown or of another type, and for sums that do not add up.
    """
    with report("monitor validate", json, quiet=quiet, file=file) as out:
        reports = reports_of(file)
        bad = [BadReport(number, wrong) for number, one in enumerate(reports, 1) if (wrong := problems(one))]
        found = Validated(len(reports), bad)
        out.result = found
        out.lines = lambda: view(found)
        if bad:
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode


app = command_app(monitor_validate, result=Validated)
