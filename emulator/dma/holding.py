"""When stores hold up a generator of descriptors. Source: hardware.md 4.4.

DMA engines ask for the data of loads ahead of time, but not past a store: while stores are under way, descriptors stay
in their rings until the data in front of them have moved, and the word whose descriptors find no room waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.dma.engines import DmaEngines
from emulator.dma.queues import DmaQueue
from emulator.dma.transfer import Transfer
from emulator.dma.work import spans_by_engine

__all__ = ["held_up_until"]


def held_up_until(queue: DmaQueue, beside: Iterable[DmaQueue], engines: DmaEngines, room: float, now_ps: int) -> int:
    """Return until when what is left of a queue holds up its generator; 0 where no more than `room` is left by now.

    `beside` are all queues of its core, `room` bytes on each engine.
    """
    for transfer in reversed(queue.pending):
        nbytes = transfer.nbytes / max(len(transfer.shares), 1)
        if nbytes > room:
            begin, end = _middle(engines, transfer)
            moved = end - int((end - begin) * room / nbytes)
            if moved <= now_ps:
                return 0
            stores = [each for one in beside for each in one.pending if each.facts.writes_hbm]
            return min(moved, max((_middle(engines, each)[1] for each in stores), default=0))
        room -= nbytes
    return 0


def _middle(engines: DmaEngines, transfer: Transfer) -> tuple[int, int]:
    """Return when engines begin and end a transfer, on average, as things stand."""
    spans = spans_by_engine(engines.pieces(transfer.number, len(transfer.shares)))
    return sum(begin for begin, _ in spans) // len(spans), sum(end for _, end in spans) // len(spans)
