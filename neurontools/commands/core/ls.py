"""`neurontools core ls`: parts of a dump, or dumps of a folder."""

from __future__ import annotations

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def ls(file: CoreFile, json: Json = False) -> None:
    """List the parts of a core dump, or the dumps in a folder.

    CORE may be a folder: then every core dump in it and below is one line, and what is no core dump of neurontools is
    passed over.
    """
    from neurontools.render import core as render
    from neurontools.render import core_folder

    with report("core ls", json, file=file) as out:
        if file.is_dir():
            out.result = core_folder.listing(file)
            out.lines = lambda: core_folder.lines(out.result)
            return
        core = open_core_file(file)
        out.result = render.parts(core)
        tell_damage(out, core)
        out.lines = lambda: render.parts_lines(file.name, out.result)


app = command_app(ls)
