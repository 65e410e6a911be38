"""`neurontools core queues`: DMA queues and what was under way in them."""

from __future__ import annotations

from collections.abc import Sequence

from formats.core.records import QueueState
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import bytes_text, duration, ranges, table


class Queues(NamedTuple):
    """The DMA queues of all cores."""

    queues: tuple[QueueState, ...]


def view(queues: Sequence[QueueState]) -> list[str]:
    """Return the text of `core queues`."""
    rows = [
        [f"nc{q.core}", q.name, q.engine, q.kind, q.ring, q.rings, ranges(q.semaphores), q.completed, q.pending,
         bytes_text(q.nbytes)]
        for q in queues
    ]  # fmt: skip
    heads = ("core", "queue", "engine", "kind", "ring", "engines", "semaphores", "done", "pending", "moved")
    lines = table(heads, rows) if rows else ["no DMA queues"]
    for q in queues:
        for t in q.transfers:
            state = "moving" if t.moving else "queued"
            signal = "" if t.semaphore is None else f", then S[{t.semaphore}] += {t.increment}"
            lines.append(f"nc{q.core} {q.name}#{t.number} {state}: {t.text}{signal}; "
                         f"triggered by {t.engine} pc {t.pc} at {duration(t.triggered_ps)}")  # fmt: skip
        if q.pending > len(q.transfers):
            lines.append(f"nc{q.core} {q.name}: and {q.pending - len(q.transfers)} more")
    return lines


def queues(file: CoreFile, json: Json = False) -> None:
    """List the DMA queues and the transfers not complete.

    A light dump keeps the next 8 transfers of each queue, a full one 256.
    """
    with report("core queues", json, file=file) as out:
        dump = open_core_file(file)
        out.result = found = Queues(dump.queues)
        out.warn(*dump.warnings)
        out.lines = lambda: view(found.queues)


app = command_app(queues, Queues)
