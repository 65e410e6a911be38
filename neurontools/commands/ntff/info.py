"""`neurontools ntff info`: the first look at a profile capture."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.ntff.arguments import NtffFile
from neurontools.commands.options import Json
from neurontools.output import report


def info(
    file: NtffFile,
    layout: Annotated[
        bool, typer.Option("--layout", help="List the fields of trace records that are understood, and how known.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a capture holds: chip, streams, memory, records.

    Loaded words are the compiler's, without those that the runtime left out, and with those that it put before and
    behind them.
    """
    from neurontools.ntff import capture
    from neurontools.render import ntff as render

    with report("ntff info", json, file=file, layout=layout or None) as out:
        opened, _, _ = capture.open_pair(file, None)
        out.result = capture.info(opened)
        out.lines = lambda: render.layout_lines(out.result) if layout else render.info_lines(file.name, out.result)


app = command_app(info)
