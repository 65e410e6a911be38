"""`neurontools core triage`: what many dumps say together."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report, write_whole
from neurontools.command.results import plain
from neurontools.triage.rank import Rank
from neurontools.triage.rows import Triage, of_summary

_TOP = 20  # entries of each list that people see
_EVERY = 500  # ranks between two signs of life


@contextmanager
def _rows(path: Path | None) -> Iterator[Callable[[Rank], None] | None]:
    """Give what writes each rank as a line of JSON, None where nobody asked for that."""
    if path is None:
        yield None
        return
    with write_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield lambda rank: print(json.dumps(plain(rank)), file=file)


def _progress() -> Callable[[int], None] | None:
    """Return what counts ranks on a terminal."""
    if not sys.stderr.isatty():
        return None
    shown = 0

    def tell(ranks: int) -> None:
        nonlocal shown
        if ranks - shown >= _EVERY:
            shown = ranks
            print(f"\r{ranks:,} ranks", end="\r", file=sys.stderr, flush=True)

    return tell


def triage(
    places: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Folders with dump directories, or fsspec URLs.", show_default=False),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.", show_default=False)
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE", help="Write every rank as one line of JSON.", show_default=False),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            help="Entries of each list; by default 20 of text and page, all of the JSON document.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, max=256, help="Processes; by default one per processor.", show_default=False
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Read on a Dask cluster: its scheduler's address, or local.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Group many dumps, find the first failure of each execution, say what is likeliest wrong.

    Reads dumps of this toolkit, and directories of the Neuron runtime as far as their format is published: names, ends
    of logs, statuses.  Ranks of one cluster id belong together; the first-failing rank is the earliest whose status
    does not follow from another rank's.  Failures that look alike (status, engine, opcode, awaited semaphore, source
    line) are counted together.  The exit status is 1 when a failure was found.
    """
    with report("core triage", json, quiet=quiet, places=places, html=html, rows=rows, top=top, dask=dask) as out:
        from neurontools.command.workers import default_jobs  # deferred: start-up
        from neurontools.triage.view import page, view  # deferred: start-up
        from neurontools.triage.work import add_up  # deferred: start-up

        for path in (html, rows):
            if path is not None:
                need_place(path)
        with _rows(rows) as each:
            summary = add_up(
                places, jobs=default_jobs() if jobs is None else jobs, dask=dask, each=each, progress=_progress()
            )
        out.warn(*summary.warnings)
        if summary.more_warnings:
            out.warn(f"{summary.more_warnings} warnings more")
        out.result = found = of_summary(summary, top if json else None)
        out.lines = lambda: view(found, top or _TOP)
        if html is not None:
            with write_whole(html) as beside:
                beside.write_text(page(found, f"Triage of {', '.join(places)}", top or _TOP), encoding="utf-8")
        if summary.ranks:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(triage, Triage)
