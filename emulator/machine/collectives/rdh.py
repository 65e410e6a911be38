"""Recursive doubling and halving: along the axes of a hypercube, one peer at a time (collectives.md 3, 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.steps import Piece, Spans, Wait, joined, size_of

__all__ = ["rdh_gather", "rdh_scatter"]

Ready = dict[int, tuple[Wait, ...]]


def _cube(group: Group, flat: bool) -> tuple[dict[tuple[int, int], int], int, int]:
    """Return the position in the group by (number in the chip, label of the chip), axes, ranks of a chip.

    Flat: every rank is a chip of its own, numbered in the group's order.
    """
    if flat:
        return {(0, at): at for at in range(group.size)}, (group.size - 1).bit_length(), 1
    index = {rank: at for at, rank in enumerate(group.ranks)}
    labels = group.axes or []
    places = {
        (number, labels[chip]): index[rank]
        for chip, ranks in enumerate(group.by_chip.values())
        for number, rank in enumerate(ranks)
    }
    return places, (group.chips - 1).bit_length(), group.per_chip


def rdh_gather(b: Builder, group: Group, chunks: Sequence[Spans], buffer: str, phase: str, first: int, ready: Ready,
               *, flat: bool) -> int:  # fmt: skip
    """Exchange all that a rank has along one axis after the other, then inside chips; return the number of steps."""
    places, axes, per = _cube(group, flat)
    ranks = group.ranks
    has = {at: [chunks[at]] for at in range(group.size)}
    waits = dict(ready)
    for step, axis in enumerate(reversed(range(axes))):
        before = {at: joined(spans) for at, spans in has.items()}
        for (number, label), at in places.items():
            peer = places[number, label ^ (1 << axis)]
            b.move(ranks[at], [b.at(ranks[at], buffer, before[at])], [b.at(ranks[peer], buffer, before[at])],
                   step=first + step, phase=phase, waits=waits[ranks[at]])  # fmt: skip
            has[peer].append(before[at])
        waits = {rank: b.settled(rank) for rank in ranks}
    if per == 1:
        return axes
    for (number, label), at in places.items():
        spans = joined(has[at])
        for turn in range(1, per):
            peer = places[(number + turn) % per, label]
            b.move(ranks[at], [b.at(ranks[at], buffer, spans)], [b.at(ranks[peer], buffer, spans)], step=first + axes,
                   phase=phase, waits=waits[ranks[at]] if turn == 1 else ())  # fmt: skip
    return axes + 1


def rdh_scatter(b: Builder, group: Group, chunks: Sequence[Spans], source: str, result: Callable[[int, Spans], Piece],
                phase: str, first: int, ready: Ready, *, flat: bool) -> int:  # fmt: skip
    """Fold inside chips, then halve along one axis after the other; return the number of steps.

    A rank folds its own part and then what came, so a chunk is folded as a binary tree over the labels.
    """
    places, axes, per = _cube(group, flat)
    ranks, step = group.ranks, first
    number_of = {at: number for (number, _), at in places.items()}
    label_of = {at: label for (_, label), at in places.items()}
    # Where the partial sum of each chunk that a rank still answers for lies.
    parts: dict[int, dict[int, Piece]] = {}
    waits = dict(ready)
    if per > 1:
        for at in range(group.size):
            mates = [places[other, label_of[at]] for other in range(per) if other != number_of[at]]
            b.tell(ranks[at], [ranks[other] for other in mates], ready[ranks[at]], phase)
        opened = {rank: b.settled(rank) for rank in ranks}
        for at, rank in enumerate(ranks):
            mine = [places[number_of[at], label] for label in range(1 << axes)]
            chip = [places[number, label_of[at]] for number in range(per)]
            area = b.slot(rank, sum(size_of(chunks[to]) for to in mine))
            parts[at] = _cut(area, [(to, size_of(chunks[to])) for to in mine])
            spans = joined(chunks[to] for to in mine)
            b.move(rank, [b.at(ranks[owner], source, spans) for owner in chip], [area], step=step, phase=phase,
                   waits=opened[rank])  # fmt: skip
        waits = {rank: b.settled(rank) for rank in ranks}
        step += 1
    else:
        for at, rank in enumerate(ranks):
            parts[at] = {to: b.at(rank, source, chunks[to]) for to in range(group.size)}
    for axis in range(axes):
        came: dict[int, Piece] = {}
        keeps: dict[int, list[int]] = {}
        for (number, label), at in places.items():
            peer = places[number, label ^ (1 << axis)]
            goes = [to for to in parts[at] if (label_of[to] ^ label) >> axis & 1]
            keeps[at] = [to for to in parts[at] if to not in set(goes)]
            slot = came[peer] = b.slot(ranks[peer], sum(size_of(chunks[to]) for to in goes))
            b.move(ranks[at], [_together(parts[at][to] for to in goes)], [slot], step=step, phase=phase,
                   waits=waits[ranks[at]])  # fmt: skip
        settled = {rank: b.settled(rank) for rank in ranks}
        for at, rank in enumerate(ranks):
            last = axis == axes - 1
            area = (result(rank, chunks[at]) if last
                    else b.slot(rank, sum(size_of(chunks[to]) for to in keeps[at])))  # fmt: skip
            b.move(rank, [_together(parts[at][to] for to in keeps[at]), came[at]], [area], step=-1, phase=phase,
                   waits=settled[rank])  # fmt: skip
            if not last:
                parts[at] = _cut(area, [(to, size_of(chunks[to])) for to in keeps[at]])
        waits = {rank: b.settled(rank) for rank in ranks}
        step += 1
    if not axes:
        for at, rank in enumerate(ranks):
            b.move(rank, [parts[at][at]], [result(rank, chunks[at])], step=-1, phase=phase, waits=waits[rank])
    return step - first


def _cut(area: Piece, sizes: Sequence[tuple[int, int]]) -> dict[int, Piece]:
    """Return the pieces of an area that belong to chunks, one behind the other."""
    start, found = area.spans[0][0] if area.spans else 0, {}
    for chunk, size in sizes:
        found[chunk] = area._replace(spans=((start, start + size),) if size else ())
        start += size
    return found


def _together(pieces: object) -> Piece:
    """Return pieces of one buffer as one."""
    every = list(pieces)  # type: ignore[call-overload]
    first: Piece = every[0]
    return first._replace(spans=joined(piece.spans for piece in every))
