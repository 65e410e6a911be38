"""`neurontools core memory`: memories of a dump, bytes and tensors in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def memory(
    file: CoreFile,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS | TENSOR[SLICE]]",
            help="PARTITION:BYTE, psum:P:B, hbm:A, an engine or device address, or a tensor; ncN in front: core N.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Values, from an address on.")] = 16,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="x d u f with b h w g, or an element type.")
    ] = "xw",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npy", help="Write the values there instead.")
    ] = None,
    json: Json = False,
) -> None:
    """List the memories of a core dump, or print what is in them.

    Without a place: memories, tensors, how much of each is written and how much is in the dump.
    """
    from neurontools.render import core_memory as render

    with report("core memory", json, file=file, place=place, output=output) as out:
        dump = open_core_file(file)
        if place is None:
            if output is not None:
                raise typer.BadParameter("there is nothing to write without a place", param_hint="--output")
            out.result = render.listing(dump)
            out.lines = lambda: render.listing_lines(out.result)
        else:
            from emulator.session import UsageError

            try:
                found = render.read(dump, place, count, format)
            except UsageError as error:
                raise typer.BadParameter(str(error), param_hint="place or --format") from None
            if output is not None:
                from neurontools.arrays import export_array

                export_array(output, found.array)
            out.result = render.values(found, output)
            out.lines = lambda: render.value_lines(found, output)
        tell_damage(out, dump)


app = command_app(memory)
