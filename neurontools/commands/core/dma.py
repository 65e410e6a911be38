"""`neurontools core dma`: rings and descriptors."""

from __future__ import annotations

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def dma(file: CoreFile, json: Json = False) -> None:
    """List the rings of the DMA engines and their descriptors.

    Head and tail are positions in the ring; a light dump keeps the next 4 descriptors of each, a full one 64.
    """
    from neurontools.render import core as render

    with report("core dma", json, file=file) as out:
        dump = open_core_file(file)
        out.result = render.rings(dump)
        tell_damage(out, dump)
        out.lines = lambda: render.ring_lines(out.result)


app = command_app(dma)
