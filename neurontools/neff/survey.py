"""`neurontools neff survey`: how much of many NEFFs is understood."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.neff.surveying.judge import Options
from neurontools.neff.surveying.records import Survey


def survey(
    places: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders with .neff files, or files.", show_default=False)
    ],
    execute: Annotated[
        bool, typer.Option("--execute", help="Execute every file too, with random inputs (integers are zero).")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of inputs and schedule.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", metavar="N", min=1, help="Processes; one per core unless given.", show_default=False
        ),
    ] = None,
    max_memory: Annotated[
        int, typer.Option("--max-memory", metavar="MB", min=1, help="Do not execute what needs more device memory.")
    ] = 2048,
    max_steps: Annotated[
        int, typer.Option("--max-steps", metavar="N", min=1, help="Stop an execution after that many completions.")
    ] = 2_000_000,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Give files by the beginning of their sha256, not by name.")
    ] = False,
    shown: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Examples to show of each kind, 0 for all.")
    ] = 20,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Report how much of many NEFFs is understood.

    Words decoded, encoded again from their fields, and consistent; words and codes that are not known, with counts and
    examples; files that verify, and execute.  A file that cannot be read is part of the report.  The exit status is 1
    when anything is not understood.
    """
    from neurontools.command.workers import default_jobs  # deferred: start-up
    from neurontools.neff.survey_view import survey_lines  # deferred: start-up
    from neurontools.neff.surveying import collect  # deferred: start-up
    from neurontools.text.progress import counting  # deferred: start-up

    with report("neff survey", json, quiet=quiet, places=[str(place) for place in places], execute=execute) as out:
        paths = collect.find_files(places)
        options = Options(execute, seed, max_memory << 20, max_steps)
        with counting("surveyed", len(paths), "file") as tick:
            records = collect.survey(paths, options, jobs or default_jobs(), tick)
        if anonymous:
            records = collect.anonymous(records)
            out.inputs.pop("places")
        found = collect.summed(records)
        out.result = found
        out.lines = lambda: survey_lines(found, shown)
        if not all(record.understood for record in records):
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(survey, result=Survey)
