"""`neurontools core queues`: DMA queues and what was under way in them."""

from __future__ import annotations

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def queues(file: CoreFile, json: Json = False) -> None:
    """List the DMA queues and the transfers not complete.

    A light dump keeps the next 8 transfers of each queue, a full one 256.
    """
    from neurontools.render import core as render

    with report("core queues", json, file=file) as out:
        dump = open_core_file(file)
        out.result = render.queues(dump)
        tell_damage(out, dump)
        out.lines = lambda: render.queue_lines(out.result)


app = command_app(queues)
