"""`neurontools neff unpack`: the archive as a folder, safe against hostile names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_folder, open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import folder_whole, report


class Unpacked(NamedTuple):
    """The result of `neff unpack`."""

    folder: str
    members: int


def unpack(
    file: NeffFile,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER]", help="Where to; the file's name without its suffix when left out.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Take a NEFF apart into a folder.

    `neurontools neff pack` gives the same bytes back.  The folder appears whole or not at all; one that holds
    something is never touched.  Absolute names, `..`, names that differ only in case, links, devices and oversize
    members are refused.
    """
    from formats import neff  # deferred: start-up

    target = folder or file.with_suffix("")
    with report("neff unpack", json, file=file, folder=target) as out:
        opened = open_neff_file(file)
        need_folder(target.parent)
        with folder_whole(target) as beside:
            neff.unpack(opened, beside)
        out.result = Unpacked(str(target), len(opened.members))
        out.lines = lambda: [f"{target}: {len(opened.members)} members"]


app = command_app(unpack, result=Unpacked)
