"""`neurontools core info`: the first look at a core dump."""

from __future__ import annotations

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def info(file: CoreFile, json: Json = False) -> None:
    """Show what a core dump is of: chip, outcome, status, NEFF, size.

    Memories stay on disk, so that this takes the same time for a dump of any size.
    """
    from neurontools.render import core as render

    with report("core info", json, file=file) as out:
        core = open_core_file(file)
        out.result = render.info(core)
        tell_damage(out, core)
        out.lines = lambda: render.info_lines(file.name, out.result)


app = command_app(info)
