"""`neurontools shim`: a folder with an executable `neuronx-cc` for PATH, so that real programs find this compiler."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report, write_whole


class Shim(NamedTuple):
    """The result of `shim`: the folder, and what was written there."""

    folder: str
    files: tuple[str, ...]


_SCRIPT = """\
#!{python}
# Hands its command line to neurontools: made by `neurontools shim`.
import sys

sys.path[:0] = {path!r}
from neurontools.compiler.entry import main

sys.exit(main(sys.argv[1:]))
"""


def make_shim(folder: Path) -> Shim:
    """Write the executables into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    root = str(Path(__file__).resolve().parents[2])
    script = folder / "neuronx-cc"
    with write_whole(script) as beside:
        beside.write_text(_SCRIPT.format(python=sys.executable, path=[root]), encoding="utf-8")
        beside.chmod(0o755)
    script.chmod(0o755)
    return Shim(str(folder), (script.name,))


def shim(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to fill.", show_default=False)],
    json: Json = False,
) -> None:
    """Write a folder with an executable neuronx-cc, to be put first in PATH.

    `neuronx-cc compile`, `list-operators` and `--version` do what `neurontools compile` does; every other command of
    the real one is refused.
    """
    with report("shim", json, folder=folder) as out:
        found = make_shim(folder)
        out.result = found
        out.lines = lambda: [f"{found.folder}: {', '.join(found.files)}; put it first in PATH"]


app = command_app(shim, result=Shim)
