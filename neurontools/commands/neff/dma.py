"""`neurontools neff dma`: every transfer that a subgraph describes."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.errors import NotFoundError
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile, SubgraphNumber
from neurontools.files import open_neff_file
from neurontools.output import report


def dma(
    file: NeffFile,
    subgraph: SubgraphNumber = 0,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="NAME", help="Transfers of this queue only.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """List the transfers of a subgraph.

    Descriptor blocks come with the words that start them, then the words that describe a transfer themselves.  A side
    is dtype@variable+offset[steps][sizes], innermost first, in bytes; of the sizes only the innermost is bytes, the
    others are counts.
    """
    from neurontools.render.neff import pick_subgraph
    from neurontools.render.neff_dma import dma as found
    from neurontools.render.neff_dma import dma_lines

    with report("neff dma", json, file=file, subgraph=subgraph, queue=queue) as out:
        graph = pick_subgraph(open_neff_file(file), subgraph)
        if queue is not None and queue not in graph.queues:
            raise NotFoundError(f"no queue {queue} in {graph.name}: it has {', '.join(graph.queues) or 'none'}")
        result = found(graph, queue)
        out.result = result
        out.lines = lambda: dma_lines(result)


app = command_app(dma)
