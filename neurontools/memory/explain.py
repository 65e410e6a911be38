"""`neurontools mem explain`: what a report of device memory says, whether it adds up, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.memory import CATEGORIES
from neurontools.command.exits import ExitStatus
from neurontools.command.files import read_text_or_input
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.memory.plot import bar, legend
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.nrt.oom_reading import MemoryReport

_LONGEST = 64 << 20


class ReportRow(NamedTuple):
    """One row of a table: what it is of, its name, bytes by category (null where the table has n/a)."""

    label: str
    name: str | None
    total: int
    values: dict[str, int | None]


class FailureRow(NamedTuple):
    """The allocation that failed."""

    line: int
    bytes: int
    alignment: str
    usage: str
    device: int
    core: int


class ListRow(NamedTuple):
    """A list of one stack, or a block of one NEFF."""

    line: int
    name: str | None
    total: int | None
    values: dict[str, int]


class Explained(NamedTuple):
    """The result of `mem explain`."""

    failures: list[FailureRow]
    lnc: int | None
    sharing: Annotated[list[int], "cores that use the stack"]
    rows: list[ReportRow]
    lists: list[ListRow]
    blocks: list[ListRow]
    problems: Annotated[list[str], "sums that the report's own numbers contradict"]
    advice: list[str]


def explain(found: MemoryReport) -> Explained:
    """Return a report as rows, with what its numbers mean."""
    rows = [
        ReportRow(row.label.removeprefix("\\_"), found.table.names.get(row.number) if row.kind == "model" else None,
                  row.values.get("total") or row.total, {k: v for k, v in row.values.items() if k != "total"})
        for row in found.table.rows
    ]  # fmt: skip
    failures = [FailureRow(*one) for one in found.failures]
    lists = [ListRow(one.line, one.name, one.total, one.values) for one in found.lists]
    blocks = [ListRow(one.line, one.name, one.total, one.values) for one in found.blocks]
    return Explained(failures, found.lnc, list(found.sharing), rows, lists, blocks, list(found.problems),
                     _advice(found, rows, lists))  # fmt: skip


def _advice(found: MemoryReport, rows: list[ReportRow], lists: list[ListRow]) -> list[str]:
    whole: dict[str, int | None] = next((row.values for row in rows if row.label.startswith("ND ")), {})
    if not whole and lists:
        whole = dict(lists[0].values)
    advice = []
    if found.lnc == 1 and len(found.sharing) > 1:
        cores = " and ".join(f"NC {core}" for core in found.sharing)
        advice.append(f"{cores} share the stack: what is loaded on one leaves less for the other (runtime.md 3.1)")
    numbers = {key: value or 0 for key, value in whole.items() if key != "total"}
    total = sum(numbers.values())
    if not total:
        return advice
    key = max(numbers, key=lambda name: numbers[name])
    label = next(one.label for one in CATEGORIES if one.key == key)
    advice.append(f"most of it is {label}: {bytes_text(numbers[key])}, {100 * numbers[key] / total:.0f} %")
    if numbers.get("scratchpad", 0) > total // 20:
        advice.append(
            "private scratchpad: variables cross a page; larger pages (NEURON_SCRATCHPAD_PAGE_SIZE and the compiler's "
            "--hbm-scratchpad-page-size) may share it, `neurontools mem scratchpad` tells which (runtime.md 3.1)"
        )
    if numbers.get("profiler", 0):
        advice.append("profiler buffers are allocated: profile one model at a time, or none (runtime.md 3.1)")
    rings = sum(value for name, value in numbers.items() if name.startswith("rings_"))
    if rings > total // 20:
        advice.append("DMA rings: transfers whose descriptors the device makes itself (DGE) need none (runtime.md 3.1)")
    for one in found.failures:
        advice.append(f"{bytes_text(one.nbytes)} more of {one.usage} were asked for by NC {one.core}")
    return advice


def view(found: Explained) -> list[str]:
    """Return what failed, the rows with their largest categories, and advice."""
    lines = [
        f"line {one.line}: {bytes_text(one.bytes)} of {one.usage} found no room on ND {one.device}, NC {one.core}"
        for one in found.failures
    ]
    rows = []
    for row in found.rows:
        largest = sorted(((value or 0, key) for key, value in row.values.items()), reverse=True)[:3]
        rows.append([row.label, bytes_text(row.total), _largest(largest), row.name or ""])
    for one in (*found.lists, *found.blocks):
        largest = sorted(((value, key) for key, value in one.values.items()), reverse=True)[:3]
        total = "-" if one.total is None else bytes_text(one.total)
        rows.append([one.name or "stack", total, _largest(largest), f"line {one.line}"])
    lines += ["", *table(["", "bytes", "most of it", ""], rows)] if lines else table(["", "bytes", "most", ""], rows)
    whole = next((row for row in found.rows if row.label.startswith("ND ")), None)
    if whole is not None:
        values = {key: value or 0 for key, value in whole.values.items()}
        lines += ["", bar(values, whole.total), legend(values)]
    lines += [""] if found.advice or found.problems else []
    lines += [f"- {one}" for one in found.advice]
    lines += [f"does not add up: {one}" for one in found.problems]
    return lines


def _largest(values: list[tuple[int, str]]) -> str:
    labels = {one.key: one.label for one in CATEGORIES}
    return ", ".join(f"{labels[key]} {bytes_text(nbytes)}" for nbytes, key in values if nbytes)


def mem_explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A log, a table file, or - for standard input.")],
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Explain a report of device memory from a log of the runtime.

    Reads the table that the runtime prints when an allocation fails, the older list, and the block of each NEFF at its
    load. The exit status is 1 when the report's own numbers contradict each other.
    """
    from formats.nrt.oom_reading import read_memory_report  # deferred: start-up

    with report("mem explain", json, quiet=quiet, file=file) as out:
        read = read_memory_report(read_text_or_input(file, _LONGEST).splitlines(), str(file))
        if not (read.table.rows or read.lists or read.blocks or read.failures):
            raise FormatError("no report of device memory", path=str(file),
                              expected="the runtime's table, its list, or a NEFF's block")  # fmt: skip
        found = explain(read)
        out.result = found
        out.lines = lambda: view(found)
        if found.problems:
            out.status, out.exit_code = ExitStatus.FINDING, error_exitcode
            out.warn(f"{count(len(found.problems), 'sum')} of the report do not add up")


app = command_app(mem_explain, result=Explained)
