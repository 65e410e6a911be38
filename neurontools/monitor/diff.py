"""`neurontools monitor diff`: two streams of reports beside each other."""

from __future__ import annotations

from collections import Counter

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.monitor.files import MonitorFile, ProcessSummary, StreamSummary, summary_of
from neurontools.text.table import table


class Changed(NamedTuple):
    """One number of a program that is another in the second stream; null where the program is not there."""

    tag: str
    what: str
    before: float | None
    after: float | None


class MonitorDiff(NamedTuple):
    """The result of `monitor diff`."""

    changes: list[Changed]


def compared(before: StreamSummary, after: StreamSummary) -> MonitorDiff:
    """Return the numbers that differ, program by program: tags tell which is which, pids do not."""
    first, second = _numbers(before), _numbers(after)
    keys = dict.fromkeys([*first, *second])
    return MonitorDiff(
        [Changed(*key, first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)]
    )


def _numbers(stream: StreamSummary) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    seen: Counter[str] = Counter()
    for one in stream.processes:
        # Ranks of one job often have one tag: they are told apart by their order.
        seen[one.tag] += 1
        tag = f"{one.tag} ({seen[one.tag]})" if seen[one.tag] > 1 else one.tag
        for name, number in _of(one).items():
            if number is not None:
                found[tag, name] = number
    return found


def _of(one: ProcessSummary) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {
        "device memory": one.device_memory, "host memory": one.host_memory, "p50 seconds": one.p50_seconds,
        "p99 seconds": one.p99_seconds,
    }  # fmt: skip
    numbers |= {f"executions {name}": number for name, number in one.executions.items()}
    numbers |= {f"errors {name}": number for name, number in one.errors.items()}
    for core in one.cores:
        numbers |= {f"core {core.core} busy %": round(core.mean, 2), f"core {core.core} memory": core.memory}
    return numbers


def view(found: MonitorDiff) -> list[str]:
    """Return a row for each number that differs."""
    if not found.changes:
        return ["no differences"]

    def text(number: float | None) -> str:
        return "-" if number is None else f"{number:,.6g}" if number % 1 else f"{number:,.0f}"

    rows = []
    for one in found.changes:
        ratio = "-" if not one.before or one.after is None else f"{one.after / one.before:.3f}"
        rows.append([one.tag, one.what, text(one.before), text(one.after), ratio])
    return table(["program", "what", "first", "second", "ratio"], rows)


def monitor_diff(
    first: MonitorFile, second: MonitorFile, json: Json = False, quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:  # fmt: skip
    """Compare two streams of reports of neuron-monitor.

    Programs are told apart by their tags.  The exit status is 1 when a number differs.
    """
    with report("monitor diff", json, quiet=quiet, first=first, second=second) as out:
        found = compared(summary_of(first), summary_of(second))
        out.result = found
        out.lines = lambda: view(found)
        if found.changes:
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode


app = command_app(monitor_diff, result=MonitorDiff)
