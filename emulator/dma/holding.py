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
        nbytes = transfer.nbytes / (len(transfer.shares) or 1)
        if nbytes <= room:
            room -= nbytes
            continue
        stores = [own for one in beside if (own := [each for each in one.pending if each.facts.writes_hbm])]
        if not stores:
            return 0
        end = _end_ps(engines, transfer)
        moved = end - int((end - _begin_ps(engines, transfer)) * room / nbytes) if room else end
        if moved <= now_ps:
            return 0
        # A queue's end in order. When its oldest one does is known; what is behind that may have to be planned.
        last = max([_end_ps(engines, own[0]) for own in stores])
        if last < moved:
            last = max([_end_ps(engines, own[-1]) for own in stores])
        return min(moved, last)
    return 0


def _begin_ps(engines: DmaEngines, transfer: Transfer) -> int:
    """Return when engines begin a transfer, on average, as things stand."""
    spans = spans_by_engine(engines.pieces(transfer.number, len(transfer.shares)))
    return sum([begin for begin, _ in spans]) // len(spans)


def _end_ps(engines: DmaEngines, transfer: Transfer) -> int:
    """Return when engines end a transfer, on average, as things stand."""
    total = count = 0
    for first, last, _, _, (end, step) in engines.pieces(transfer.number, len(transfer.shares)):
        many = last - first + 1
        total += many * end + step * (first + last) * many // 2
        count += many
    return total // count
