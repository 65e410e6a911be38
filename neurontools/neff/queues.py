"""`neurontools neff queues`: DMA queues, their semaphores and their transfers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile, SubgraphNumber
from neurontools.command.output import report
from neurontools.neff.rows import QueueRow, open_subgraph
from neurontools.text.table import ranges, table

if TYPE_CHECKING:
    from formats.neff import Subgraph


@dataclass(frozen=True)
class UsedQueue(QueueRow):
    """One DMA queue, and how many transfers it carries."""

    blocks: Annotated[int, "descriptor blocks of the engine's JSON member"]
    words: Annotated[int, "words that describe a transfer themselves"]


class Queues(NamedTuple):
    """The result of `neff queues`."""

    subgraph: str
    queues: list[UsedQueue]


def used_queues(graph: Subgraph) -> Queues:
    """Return the queues of a subgraph with the number of transfers each carries."""
    from formats.isa import DmaDirect2d, DmaIndirect, PseudoDmaDirect2d  # deferred: start-up

    blocks = Counter(queue for queue, _ in graph.dma_blocks)
    words = {
        engine: sum(isinstance(word, PseudoDmaDirect2d | DmaDirect2d | DmaIndirect) for word in stream)
        for engine, stream in graph.streams.items()
    }
    return Queues(graph.name, [
        UsedQueue(*one, blocks[one.name], words.get(one.engine or "", 0) if one.kind == "dynamic" else 0)
        for one in graph.queues.values()
    ])  # fmt: skip


def view(found: Queues) -> list[str]:
    """Return the queues for people."""
    rows = [
        [one.name, one.kind, one.owner, one.num_queues, ranges(sorted(one.semaphores)), one.blocks, one.words]
        for one in found.queues
    ]
    return table(["queue", "kind", "owner", "rings", "semaphores", "blocks", "transfer words"], rows)


def queues(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the DMA queues of a subgraph and what they carry.

    Transfers are descriptor blocks of the engine's JSON member, and words that describe a transfer themselves.
    """
    with report("neff queues", json, file=file, subgraph=subgraph) as out:
        found = used_queues(open_subgraph(file, subgraph))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(queues, result=Queues)
