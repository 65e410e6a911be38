"""When stores hold up a generator of descriptors. Source: hardware.md 4.4.

DMA engines ask for the data of loads ahead of time, but not past a store: while stores are under way, descriptors stay
in their rings until the data in front of them have moved, and the word whose descriptors find no room waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.dma.engines import DmaEngines
from emulator.dma.queues import DmaQueue
from emulator.dma.transfer import Transfer

__all__ = ["held_up_until"]


def held_up_until(queue: DmaQueue, beside: Sequence[DmaQueue], engines: DmaEngines, room: int, now_ps: int) -> int:
    """Return until when what is left of a queue holds up its generator; 0 where that is over, or no more is left.

    `beside` are all queues of its core, `room` bytes on each engine.
    """
    storing = [each.stores for each in beside if each.stores]
    if not storing:
        return 0
    found = _latest_beyond(queue, room) if queue.is_even else _walked(queue, room)
    if found is None:
        return 0
    transfer, left = found
    course = transfer.course
    assert course is not None  # it was triggered
    if not queue.stores and engines.is_behind(transfer.number, queue.ring, course.engines):
        # Stores have their turns before loads that came before them, and mostly they are over before it begins: then it
        # is not planned, up to where the next store would change all.
        last = max([_end_ps(engines, stores[0]) for stores in storing])
        soonest = engines.soonest_ps(transfer.number, queue.ring)
        if last <= soonest and len(storing[0]) + len(storing) > 2:  # what is behind these may have to be planned
            last = max([_end_ps(engines, stores[-1]) for stores in storing])
            soonest = engines.soonest_ps(transfer.number, queue.ring)
        if last <= soonest:
            return last if last > now_ps else 0
    moved = end = _end_ps(engines, transfer)
    if end <= now_ps:
        return 0
    if left:
        moved -= int((end - _begin_ps(engines, transfer)) * left / course.share)
        if moved <= now_ps:
            return 0
    # A queue's end in order. When its oldest one does is known; what is behind that may have to be planned.
    last = max([_end_ps(engines, stores[0]) for stores in storing])
    if last < moved:
        last = max([_end_ps(engines, stores[-1]) for stores in storing])
    held = min(moved, last)
    return held if held > now_ps else 0


def _latest_beyond(queue: DmaQueue, room: int) -> tuple[Transfer, float] | None:
    """Return the latest pending transfer that the room has not space for with those behind it, and what is left of it.

    None where all fit. Which do is known from the time before but for those that came since: they only push others out.
    """
    pending, given = queue.pending, queue.given
    count = len(pending)
    if room != queue.room:
        queue.room, queue.asked = room, 0
    handed = queue.completed + count
    fits = min(queue.fits + handed - queue.asked, count)
    while fits and given - pending[-fits].ahead > room:
        fits -= 1
    queue.fits, queue.asked = fits, handed
    if fits == count:
        return None
    return pending[-fits - 1], room - (given - pending[-fits].ahead if fits else 0)


def _walked(queue: DmaQueue, room: float) -> tuple[Transfer, float] | None:
    """Return the same where some shares of engines are no whole bytes: sums of these depend on the order."""
    for transfer in reversed(queue.pending):
        assert transfer.course is not None
        share = transfer.course.share
        if share > room:
            return transfer, room
        room -= share
    return None


def _begin_ps(engines: DmaEngines, transfer: Transfer) -> int:
    """Return when engines begin a transfer, on average, as things stand."""
    course = transfer.course
    assert course is not None  # it was triggered
    count = course.engines
    served = None if engines.quiet is None else engines.quiet.served.get(transfer.number)
    if served is not None:
        if served.starts is not None:
            return sum(served.starts) // count
        ready, start, step, turn = served.ready_ps, served.start_ps, served.step_ps, served.turn_ps
        if step == turn:
            return (count * max(ready, start) + step * served.last * count // 2) // count
        return sum([max(ready + step * engine, start + turn * engine) for engine in range(count)]) // count
    begun = 0
    for first, last, (ready, later), (before, behind), _ in engines.pieces(transfer.number, count):
        if ready + later * first < before + behind * first or ready + later * last < before + behind * last:
            for engine in range(first, last + 1):
                begin, other = ready + later * engine, before + behind * engine
                begun += max(other, begin)
        else:
            begun += (last - first + 1) * ready + later * (first + last) * (last - first + 1) // 2
    return begun // count


def _end_ps(engines: DmaEngines, transfer: Transfer) -> int:
    """Return when engines end a transfer, on average, as things stand."""
    if engines.quiet is not None:
        served = engines.quiet.served.get(transfer.number)
        if served is not None:
            return served.mean_ps if served.mean_ps >= 0 else served.mean_end_ps()
    course = transfer.course
    assert course is not None  # it was triggered
    return engines.summed_ends_ps(transfer.number, course.engines) // course.engines
