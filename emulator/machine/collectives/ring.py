"""Ring and flat ring: chunks travel around directed cycles, one channel a cycle (collectives.md 3, 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.steps import Piece, Spans, Wait, size_of, split

__all__ = ["SLOTS", "flat_orders", "ring_gather", "ring_scatter", "usable"]

SLOTS = 4  # chunks that may be on their way to a rank before the first is folded; ours, credits travel back meanwhile


def usable(orders: Sequence[tuple[int, ...]], chunks: Sequence[Spans]) -> list[tuple[int, ...]]:
    """Return the cycles that are worth a channel: no more than the smallest chunk that is not empty has elements."""
    least = min((size for chunk in chunks if (size := size_of(chunk))), default=1)
    return list(orders[: max(1, least)])


def flat_orders(group: Group) -> list[tuple[int, ...]]:
    """Return cycles over all nodes that leave each node once, each from another place and in both directions."""
    index = {rank: at for at, rank in enumerate(group.ranks)}
    found = []
    for turn in range(2):
        order: list[int] = []
        for ranks in group.by_node.values():
            cut = turn * len(ranks) // 2
            order += [index[rank] for rank in (*ranks[cut:], *ranks[:cut])]
        found += [tuple(order), tuple(reversed(order))]
    return found


def ring_gather(
    b: Builder, group: Group, chunks: Sequence[Spans], orders: Sequence[tuple[int, ...]], buffer: str, phase: str,
    first: int, ready: dict[int, tuple[Wait, ...]],
) -> int:  # fmt: skip
    """Let every rank, which has its own chunk in a buffer, get all chunks; return the number of steps."""
    n, orders = group.size, usable(orders, chunks)
    for channel, order in enumerate(orders):
        parts = [split(chunk, len(orders))[channel] for chunk in chunks]
        base = [b.count(group.ranks[order[p - 1]], group.ranks[order[p]], channel) for p in range(n)]
        for step in range(n - 1):
            for p in range(n):
                rank, upstream, onward = (group.ranks[order[q % n]] for q in (p, p - 1, p + 1))
                waits = ready[rank] if step == 0 else (Wait(upstream, channel, base[p] + step),)
                spans = parts[order[(p - step) % n]]
                b.move(rank, [b.at(rank, buffer, spans)], [b.at(onward, buffer, spans)], step=first + step,
                       phase=phase, channel=channel, waits=waits)  # fmt: skip
    return n - 1


def ring_scatter(
    b: Builder, group: Group, chunks: Sequence[Spans], orders: Sequence[tuple[int, ...]], source: str,
    result: Callable[[int, Spans], Piece], phase: str, first: int, ready: dict[int, tuple[Wait, ...]],
) -> int:  # fmt: skip
    """Leave every rank with its chunk reduced over all ranks; return the number of steps.

    The chunk of position p starts at p + 1 and is folded by each rank it passes: what came, then the rank's own.  It
    goes in two slices, so that one is folded while the other travels; a slot is written again when it was given back.
    """
    n, orders = group.size, usable(orders, chunks)
    for channel, order in enumerate(orders):
        whole = [split(chunk, len(orders))[channel] for chunk in chunks]
        slices = 2 if min(size_of(part) for part in whole) > 1 else 1
        parts = [split(part, slices) for part in whole]
        widest = max(size_of(piece) for part in parts for piece in part)
        slots = [[b.slot(group.ranks[order[p]], widest) for _ in range(SLOTS * slices)] for p in range(n)]
        base = [b.count(group.ranks[order[p - 1]], group.ranks[order[p]], channel) for p in range(n)]
        for step in range(n):
            for at in range(slices):
                for p in range(n):
                    rank, upstream, _onward = (group.ranks[order[q % n]] for q in (p, p - 1, p + 1))
                    index = order[(p - 1 - step) % n]
                    spans, send = parts[index][at], step * slices + at
                    own = b.at(rank, source, spans)
                    came = _filled(slots[p][(send - slices) % len(slots[p])], size_of(spans))
                    reads = [own] if step == 0 else [came, own]
                    waits = list(ready[rank]) if send == 0 else []
                    if step:
                        waits.append(Wait(upstream, channel, base[p] + send - slices + 1))
                    frees = (upstream,) if step else ()
                    if step < n - 1:
                        target = _filled(slots[(p + 1) % n][send % len(slots[p])], size_of(spans))
                        b.move(rank, reads, [target], step=first + step, phase=phase, channel=channel, waits=waits,
                               frees=frees, credit=max(0, send + 1 - len(slots[p])))  # fmt: skip
                    else:
                        b.move(rank, reads, [result(rank, spans)], step=-1, phase=phase, channel=channel, waits=waits,
                               frees=frees)  # fmt: skip
    return n - 1


def _filled(slot: Piece, size: int) -> Piece:
    """Return the part of a slot that so many elements fill."""
    if not size:
        return Piece(slot.rank, slot.buffer, ())
    start = slot.spans[0][0]
    return slot if slot.spans[0][1] == start + size else Piece(slot.rank, slot.buffer, ((start, start + size),))
