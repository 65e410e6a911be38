"""`neurontools neff pack`: the inverse of unpack, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_folder, need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report, write_whole


class Packed(NamedTuple):
    """The result of `neff pack`."""

    output: str
    size: int
    method: Annotated[str, "unchanged, changed (compressed or stored anew), or recompressed by another zlib"]


def pack(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder that `neff unpack` made.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The NEFF to write.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Put an unpacked folder together into a NEFF.

    Sizes and hash are computed again; a folder whose members were not changed gives the original file, byte for byte.
    """
    from formats import neff  # deferred: start-up

    with report("neff pack", json, folder=folder, output=output) as out:
        need_folder(folder)
        need_place(output)
        if output.resolve().is_relative_to(folder.resolve()):
            raise typer.BadParameter(f"{output} is inside the folder and would be packed too", param_hint="--output")
        with write_whole(output) as beside:
            made = neff.pack(folder, beside)
        out.result = Packed(str(output), made.size, made.method)
        out.lines = lambda: [f"{output}: {made.size:,} bytes, {made.method}"]


app = command_app(pack, result=Packed)
