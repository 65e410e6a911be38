"""`neurontools ntff export`: a capture for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.ntff.arguments import CoreNumber, NeffOption, NtffFile
from neurontools.commands.options import Json, Quiet
from neurontools.files import need_place
from neurontools.output import report, write_whole


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
    from neurontools.ntff import capture
    from neurontools.ntff import export as exporting

    if form not in exporting.FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(exporting.FORMATS)}", param_hint="--format")
    with report(
        "ntff export", json, quiet=quiet, file=file, format=form, output=output, core=core, neff=neff
    ) as out:  # fmt: skip
        need_place(output)
        opened, program, odd = capture.open_pair(file, neff)
        out.warn(*odd)
        with write_whole(output) as beside:
            count = exporting.export(form, opened, program, core, beside)
        size = output.stat().st_size
        out.result = {"file": str(output), "format": form, "executions": count, "bytes": size}
        out.lines = lambda: [f"{output}: {count:,} executions, {size:,} bytes"]


app = command_app(export)
