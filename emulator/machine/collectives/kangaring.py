"""KangaRing: only the primary of each pair is in the cycle and moves data for both (collectives.md 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.ring import SLOTS, usable
from emulator.machine.collectives.steps import Piece, Spans, Wait, joined, size_of, split

__all__ = ["kanga_gather", "kanga_scatter", "teams"]

Ready = dict[int, tuple[Wait, ...]]


def teams(group: Group, order: Sequence[int], channel: int) -> list[tuple[int, ...]]:
    """Return the pairs along a cycle, the primary first; with eight ranks a chip a primary has three secondaries.

    The roles of a pair change from cycle to cycle, so that each rank is a primary in some.
    """
    width = 4 if group.per_chip == 8 else 2
    found = []
    for start in range(0, len(order), width):
        team = tuple(sorted(order[start : start + width]))
        turn = (channel >> 1) % width  # the two directions of a cycle share their roles
        found.append(team[turn:] + team[:turn])
    return found


def kanga_gather(b: Builder, group: Group, chunks: Sequence[Spans], buffer: str, phase: str, first: int,
                 ready: Ready) -> int:  # fmt: skip
    """Pass the chunks of each pair on from primary to primary, each read once and written twice."""
    orders, ranks = usable(group.orders, chunks), group.ranks
    steps = 0
    for channel, order in enumerate(orders):
        parts = [split(chunk, len(orders))[channel] for chunk in chunks]
        cycle = teams(group, order, channel)
        n, steps = len(cycle), max(steps, len(cycle) - 1)
        for team in cycle:
            for second in team[1:]:
                b.tell(ranks[second], (ranks[team[0]],), ready[ranks[second]], phase, channel)
        base = [b.count(ranks[cycle[p - 1][0]], ranks[cycle[p][0]], channel) for p in range(n)]
        for p, team in enumerate(cycle):
            rank, onward = ranks[team[0]], ranks[cycle[(p + 1) % n][0]]
            told = tuple(Wait(ranks[s], channel, b.count(ranks[s], rank, channel)) for s in team[1:])
            waits: tuple[Wait, ...] = (*ready[rank], *told)
            for owner in team:
                others = [ranks[other] for other in team if other != owner]
                targets = others + ([onward] if n > 1 else [])
                b.move(rank, [b.at(ranks[owner], buffer, parts[owner])],
                       [b.at(target, buffer, parts[owner]) for target in targets], step=first if n > 1 else -1,
                       phase=phase, channel=channel, waits=waits)  # fmt: skip
                waits = ()
        width = len(cycle[0])
        for step in range(1, n):
            for p, team in enumerate(cycle):
                rank, onward = ranks[team[0]], ranks[cycle[(p + 1) % n][0]]
                upstream = ranks[cycle[p - 1][0]]
                spans = joined(parts[at] for at in cycle[(p - step) % n])
                targets = [ranks[s] for s in team[1:]] + ([onward] if step < n - 1 else [])
                if targets:
                    count = base[p] + width + step - 1
                    b.move(rank, [b.at(rank, buffer, spans)], [b.at(target, buffer, spans) for target in targets],
                           step=first + step if step < n - 1 else -1, phase=phase, channel=channel,
                           waits=(Wait(upstream, channel, count),))  # fmt: skip
    return steps


def kanga_scatter(b: Builder, group: Group, chunks: Sequence[Spans], source: str,
                  result: Callable[[int, Spans], Piece], phase: str, first: int, ready: Ready) -> int:  # fmt: skip
    """Fold what came, the primary's own and the secondary's, and pass one chunk on, from primary to primary."""
    orders, ranks = usable(group.orders, chunks), group.ranks
    steps = 0
    for channel, order in enumerate(orders):
        parts = [split(chunk, len(orders))[channel] for chunk in chunks]
        cycle = teams(group, order, channel)
        n, steps = len(cycle), max(steps, len(cycle) - 1)
        bundles = [joined(parts[at] for at in team) for team in cycle]
        widest = max(map(size_of, bundles))
        slots = [[b.slot(ranks[team[0]], widest) for _ in range(SLOTS)] for team in cycle]
        for team in cycle:
            for second in team[1:]:
                b.tell(ranks[second], (ranks[team[0]],), ready[ranks[second]], phase, channel)
        base = [b.count(ranks[cycle[p - 1][0]], ranks[cycle[p][0]], channel) for p in range(n)]
        for step in range(n):
            for p, team in enumerate(cycle):
                rank, upstream = ranks[team[0]], ranks[cycle[p - 1][0]]
                spans = bundles[(p - 1 - step) % n]
                came = _filled(slots[p][(step - 1) % SLOTS], 0, size_of(spans))
                waits: tuple[Wait, ...] = (Wait(upstream, channel, base[p] + step),)
                if step == 0:
                    told = tuple(Wait(ranks[s], channel, b.count(ranks[s], rank, channel)) for s in team[1:])
                    waits = (*ready[rank], *told)
                if step < n - 1:
                    reads = ([came] if step else []) + [b.at(ranks[at], source, spans) for at in team]
                    onward = _filled(slots[(p + 1) % n][step % SLOTS], 0, size_of(spans))
                    b.move(rank, reads, [onward], step=first + step, phase=phase, channel=channel, waits=waits,
                           frees=(upstream,) if step else (), credit=max(0, step + 1 - SLOTS))  # fmt: skip
                    continue
                start = 0
                for owner in team:
                    mine = parts[owner]
                    part = _filled(came, start, size_of(mine))
                    reads = ([part] if step else []) + [b.at(ranks[at], source, mine) for at in team]
                    b.move(rank, reads, [result(ranks[owner], mine)], step=-1, phase=phase, channel=channel,
                           waits=waits, frees=(upstream,) if step and owner == team[-1] else ())  # fmt: skip
                    start, waits = start + size_of(mine), ()
    return steps


def _filled(slot: Piece, start: int, size: int) -> Piece:
    """Return a part of a slot."""
    if not size:
        return Piece(slot.rank, slot.buffer, ())
    first = slot.spans[0][0] + start
    return Piece(slot.rank, slot.buffer, ((first, first + size),))
