"""`neurontools neff diff`: what differs between two NEFFs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json, Quiet
from neurontools.exits import ExitStatus
from neurontools.files import open_neff_file
from neurontools.output import report


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A NEFF.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another NEFF.", show_default=False)],
    shown: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Places, and words at each, to show per engine.")
    ] = 5,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Compare two NEFFs.

    Header, tensors, members, variables, queues, and the instructions of every engine.  The exit status is 1 when
    anything differs, 0 when all content is the same. Names and hashes that differ between any two builds are told from
    what the program does.
    """
    from neurontools.render.neff_diff import diff as found
    from neurontools.render.neff_diff import diff_lines

    with report("neff diff", json, quiet=quiet, first=first, second=second) as out:
        result = found(open_neff_file(first), open_neff_file(second), shown)
        out.result = result
        out.lines = lambda: diff_lines(str(first), str(second), result)
        if not result["same"]:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(diff)
