"""`neurontools neff queues`: DMA queues, their semaphores and their transfers."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile, SubgraphNumber
from neurontools.files import open_neff_file
from neurontools.output import report


def queues(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the DMA queues of a subgraph and what they carry.

    Transfers are descriptor blocks of the engine's JSON member, and words that describe a transfer themselves.
    """
    from neurontools.render import neff as render

    with report("neff queues", json, file=file, subgraph=subgraph) as out:
        graph = render.pick_subgraph(open_neff_file(file), subgraph)
        out.result = {"subgraph": graph.name, "queues": render.queues(graph)}
        out.lines = lambda: render.queue_lines(out.result["queues"])


app = command_app(queues)
