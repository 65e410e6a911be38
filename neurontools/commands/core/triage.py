"""`neurontools core triage`: what many dumps say together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json, Quiet
from neurontools.exits import ExitStatus
from neurontools.files import need_place
from neurontools.output import report, write_whole


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
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Entries of each list.")] = 20,
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
        from neurontools.render import triage as render
        from neurontools.triage.running import run

        for path in (html, rows):
            if path is not None:
                need_place(path)
        summary = run(places, jobs, dask, rows)
        out.warn(*summary.warnings)
        if summary.more_warnings:
            out.warn(f"{summary.more_warnings} warnings more")
        out.result = data = render.result(summary, top)
        out.lines = lambda: render.lines(data)
        if html is not None:
            with write_whole(html) as beside:
                beside.write_text(render.html(data, f"Triage of {', '.join(places)}"), encoding="utf-8")
        out.status = ExitStatus.FINDING if summary.ranks else ExitStatus.OK
        if summary.ranks:
            out.exit_code = error_exitcode


app = command_app(triage)
