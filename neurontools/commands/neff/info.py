"""`neurontools neff info`: what this file is, from its header and tables alone."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def info(file: NeffFile, json: Json = False) -> None:
    """Show what a NEFF is for: header, target, tensors, sizes.

    Reads the header, the member table and the small JSON members; instructions and constants stay packed.
    """
    from neurontools.render import neff as render

    with report("neff info", json, file=file) as out:
        neff = open_neff_file(file)
        out.result = render.info(neff)
        out.lines = lambda: render.info_lines(file.name, out.result)


app = command_app(info)
