"""`neurontools ntff export`: a capture for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Quiet
from neurontools.command.output import report, write_whole
from neurontools.ntff.arguments import CoreNumber, NeffOption, NtffFile


class Exported(NamedTuple):
    """The result of `ntff export`: the file that was written, and how many executions are in it."""

    file: str
    format: str
    executions: int
    bytes: int


def export(
    file: NtffFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write the trace there.", show_default=False)
    ],
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="perfetto, chrome or csv.")] = "perfetto",
    core: CoreNumber = None,
    neff: NeffOption = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a capture for Perfetto, Chrome's viewer, or as CSV.

    Times count from where AWS's profiler begins to count; Perfetto and Chrome get what comes after that, CSV all.
    """
    from neurontools.ntff.capture import open_pair  # deferred: start-up
    from neurontools.ntff.tracks import FORMATS, write  # deferred: start-up

    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(FORMATS)}", param_hint="--format")
    with report("ntff export", json, quiet=quiet, file=file, format=form, output=output, core=core, neff=neff) as out:
        need_place(output)
        ntff, program, odd = open_pair(file, neff)
        out.warn(*odd)
        with write_whole(output) as beside:
            count = write(form, ntff, program, core, beside)
        size = output.stat().st_size
        out.result = Exported(str(output), form, count, size)
        out.lines = lambda: [f"{output}: {count:,} executions, {size:,} bytes"]


app = command_app(export, result=Exported)
