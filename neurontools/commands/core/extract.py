"""`neurontools core extract`: a dump as plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import folder_whole, report


def extract(
    file: CoreFile,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.", show_default=False)],
    json: Json = False,
) -> None:
    """Take a core dump apart into a folder.

    It gets notes/NAME.json, instructions/ncN-ENGINE.bin and .s, memory/ncN-SPACE.bin with .json that says what stands
    where in it, tensors/NAME.npy of those that the dump holds, and log.txt.
    """
    from neurontools import core_extract
    from neurontools.render.table import bytes_text, count

    with report("core extract", json, file=file, folder=folder) as out:
        core = open_core_file(file)
        with folder_whole(folder) as beside:
            written = core_extract.extract(core, beside)
        total = sum(written.values())
        out.result = {"folder": folder, "files": written, "bytes": total}
        tell_damage(out, core)
        out.lines = lambda: [f"{folder}: {count(len(written), 'file')}, {bytes_text(total)}"]


app = command_app(extract)
