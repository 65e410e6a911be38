"""`neurontools core dma`: rings and descriptors."""

from __future__ import annotations

from collections.abc import Sequence

from formats.core.records import Descriptor, RingState
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import ranges, table


class Rings(NamedTuple):
    """The rings that something used."""

    rings: tuple[RingState, ...]


def view(rings: Sequence[RingState]) -> list[str]:
    """Return the text of `core dma`; neighbouring engines with the same to tell share a line."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for r in rings:
        following = _descriptor(r.descriptors[0]) if r.descriptors else "-"
        key = f"nc{r.core}", r.ring, r.queue, r.head, r.tail, r.outstanding, following
        groups.setdefault(key, []).append(r.engine)
    rows = [[core, ranges(engines), *rest] for (core, *rest), engines in groups.items()]
    heads = ("core", "DMA engines", "ring", "queue", "head", "tail", "outstanding", "next descriptor")
    return table(heads, rows) if rows else ["no ring was used"]


def _descriptor(each: Descriptor) -> str:
    if each.kind == "semaphore":
        return f"#{each.transfer} raises S[{each.destination}]"
    return f"#{each.transfer} {each.nbytes} bytes {each.source:#x} -> {each.destination:#x}"


def dma(file: CoreFile, json: Json = False) -> None:
    """List the rings of the DMA engines and their descriptors.

    Head and tail are positions in the ring; a light dump keeps the next 4 descriptors of each, a full one 64.
    """
    with report("core dma", json, file=file) as out:
        dump = open_core_file(file)
        out.result = found = Rings(dump.dma)
        out.warn(*dump.warnings)
        out.lines = lambda: view(found.rings)


app = command_app(dma, Rings)
