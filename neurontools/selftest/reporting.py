"""The options that the suites share, their progress, and how results look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.output import report, write_whole
from neurontools.selftest.rows import CaseRow, SuiteResult, summed_up
from neurontools.text.progress import counting
from neurontools.text.table import count, table

__all__ = ["Backend", "Dask", "Jobs", "Least", "Only", "Rows", "Sample", "run_command"]

Sample = Annotated[
    int | None,
    typer.Option("--sample", metavar="N", min=1, help="Run so many cases, the same each time.", show_default=False),
]
Only = Annotated[
    str | None, typer.Option("--only", metavar="TEXT", help="Run cases with TEXT in their names.", show_default=False)
]
Backend = Annotated[str, typer.Option("--backend", metavar="NAME", help="interpreter, or compiler with the emulator.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Processes; 0 takes every processor.")]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="A Dask scheduler, or 'local'.", show_default=False),
]
Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="FILE", help="Write every case as a line of JSON.", show_default=False),
]
Least = Annotated[
    int | None,
    typer.Option("--least", metavar="N", min=0, help="Exit with 1 when fewer cases agree.", show_default=False),
]
_SHOWN = 20


def run_command(
    suite: str, backend: str, sample: int | None, only: str | None, jobs: int, dask: str | None, rows: Path | None,
    least: int | None, json: bool,
) -> None:  # fmt: skip
    """Run a suite and report it."""
    with report(f"selftest {suite}", json, backend=backend, sample=sample, only=only) as out:
        from importlib import import_module  # deferred: start-up

        from neurontools.command.workers import default_jobs  # deferred: start-up
        from neurontools.selftest.backends import backend_of  # deferred: start-up
        from neurontools.selftest.work import run_suite, sampled  # deferred: start-up

        backend_of(backend)
        place = f"neurontools.selftest.{suite}_suite"
        cases = import_module(place)
        version, numbers = cases.version(), sampled(cases.count(), sample)
        if only is not None:
            numbers = [number for number in numbers if only in cases.name_of(number)]
        found: list[CaseRow] = []
        with counting(f"selftest {suite}", len(numbers), "case") as tick:
            for piece in run_suite(place, backend, numbers, jobs=jobs or default_jobs(), dask=dask):
                found += piece
                for row in piece if tick is not None else ():
                    if tick is not None:
                        tick(row)
        result = summed_up(suite, version, backend, found)
        if rows is not None:
            _write_rows(rows, found)
        out.result = result
        out.lines = lambda: _lines(result)
        if result.outcomes.get("error", 0) or (least is not None and result.agree < least):
            out.status = ExitStatus.FINDING


def _write_rows(path: Path, rows: list[CaseRow]) -> None:
    import json  # deferred: start-up

    from neurontools.command.results import plain  # deferred: start-up

    with write_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        for row in sorted(rows):
            print(json.dumps(plain(row)), file=file)


def _lines(result: SuiteResult) -> list[str]:
    words = ", ".join(f"{number:,} {kind}" for kind, number in result.outcomes.items())
    lines = [
        f"{result.suite} {result.version}, {result.backend}: {result.agree:,} of {count(result.cases, 'case')} agree "
        f"({100 * result.share:.1f} %): {words}",
        *(f"left out: {number:,}, {reason}" for reason, number in result.reasons.items()),
        "",
    ]
    lines += table(["group", "cases", "agree", "near", "differ", "unsupported", "refused", "error"], result.groups)
    if result.others:
        lines += ["", *(f"{row.outcome}: {row.name}: {row.detail}" for row in result.others[:_SHOWN])]
        if len(result.others) > _SHOWN:
            lines.append(f"and {len(result.others) - _SHOWN:,} more; --json lists them")
    return lines
