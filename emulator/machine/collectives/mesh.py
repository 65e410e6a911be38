"""Mesh: everybody writes to everybody; two steps where several ranks share a chip (collectives.md 3, 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.steps import Piece, Spans, Wait, joined, size_of

__all__ = ["mesh_gather", "mesh_scatter", "single_step", "staged_gather", "staged_scatter"]

Ready = dict[int, tuple[Wait, ...]]


def mesh_gather(b: Builder, group: Group, chunks: Sequence[Spans], buffer: str, phase: str, first: int,
                ready: Ready) -> int:  # fmt: skip
    """Let every rank write its chunk to every other rank: one step."""
    for at, rank in enumerate(group.ranks):
        for turn in range(1, group.size):
            target = group.ranks[(at + turn) % group.size]
            b.move(rank, [b.at(rank, buffer, chunks[at])], [b.at(target, buffer, chunks[at])], step=first, phase=phase,
                   waits=ready[rank] if turn == 1 else ())  # fmt: skip
    return 1 if group.size > 1 else 0


def mesh_scatter(b: Builder, group: Group, chunks: Sequence[Spans], source: str,
                 result: Callable[[int, Spans], Piece], phase: str, first: int, ready: Ready) -> int:  # fmt: skip
    """Let every rank write each other rank its chunk, then fold what came in the order of the ranks: one step."""
    slots: dict[tuple[int, int], Piece] = {}
    for at, rank in enumerate(group.ranks):
        for turn in range(1, group.size):
            to = (at + turn) % group.size
            slot = slots[at, to] = b.slot(group.ranks[to], size_of(chunks[to]))
            b.move(rank, [b.at(rank, source, chunks[to])], [slot], step=first, phase=phase,
                   waits=ready[rank] if turn == 1 else ())  # fmt: skip
    for at, rank in enumerate(group.ranks):
        reads = [b.at(rank, source, chunks[at]) if other == at else slots[other, at] for other in range(group.size)]
        waits = b.settled(rank) if group.size > 1 else ready[rank]
        b.move(rank, reads, [result(rank, chunks[at])], step=-1, phase=phase, waits=waits)
    return 1 if group.size > 1 else 0


def single_step(b: Builder, group: Group, whole: Spans, source: str, buffer: str, phase: str, first: int,
                ready: Ready) -> int:  # fmt: skip
    """Let every rank write its whole input to every other rank, which folds all of them in the order of the ranks."""
    slots: dict[tuple[int, int], Piece] = {}
    for at, rank in enumerate(group.ranks):
        for turn in range(1, group.size):
            to = (at + turn) % group.size
            slot = slots[at, to] = b.slot(group.ranks[to], size_of(whole))
            b.move(rank, [b.at(rank, source, whole)], [slot], step=first, phase=phase,
                   waits=ready[rank] if turn == 1 else ())  # fmt: skip
    for at, rank in enumerate(group.ranks):
        reads = [b.at(rank, source, whole) if other == at else slots[other, at] for other in range(group.size)]
        b.move(rank, reads, [b.at(rank, buffer, whole)], step=-1, phase=phase, waits=b.settled(rank))
    return 1 if group.size > 1 else 0


def _chips(group: Group) -> list[tuple[int, ...]]:
    """Return the positions of the ranks of each chip."""
    index = {rank: at for at, rank in enumerate(group.ranks)}
    return [tuple(index[rank] for rank in ranks) for ranks in group.by_chip.values()]


def staged_gather(b: Builder, group: Group, chunks: Sequence[Spans], buffer: str, phase: str, first: int,
                  ready: Ready) -> int:  # fmt: skip
    """Write the chunks of each chip to one rank of every other chip, then exchange inside chips: two steps.

    Which rank of a chip serves another one, and which receives there, goes by the distance of the two in the list of
    chips, so that the fifteen others fall to four ranks as 4, 4, 4, 3.
    """
    chips = _chips(group)
    ranks, n, per = group.ranks, len(chips), len(chips[0])
    has: dict[int, list[Spans]] = {at: [chunks[at]] for at in range(group.size)}
    for chip in chips:  # a rank reads the chunks of its chip, so their owners say when they are there
        for at in chip:
            b.tell(ranks[at], [ranks[other] for other in chip if other != at], ready[ranks[at]], phase)
    opened = {rank: b.settled(rank) for rank in ranks}
    for here, chip in enumerate(chips):
        for far in range(1, n):
            there = (here + far) % n
            at, to = chip[(far - 1) % per], chips[there][(far - 1) % per]
            for owner in chip:
                b.move(
                    ranks[at],
                    [b.at(ranks[owner], buffer, chunks[owner])],
                    [b.at(ranks[to], buffer, chunks[owner])],
                    step=first,
                    phase=phase,
                    waits=opened.pop(ranks[at], ()),
                )
                has[to].append(chunks[owner])  # fmt: skip
    settled = {rank: (*opened.get(rank, ()), *b.settled(rank)) for rank in ranks}
    for chip in chips:
        for at in chip:
            waits = settled[ranks[at]]
            for turn in range(1, per):
                other = chip[(chip.index(at) + turn) % per]
                spans = joined(has[at])
                b.move(ranks[at], [b.at(ranks[at], buffer, spans)], [b.at(ranks[other], buffer, spans)], step=first + 1,
                       phase=phase, waits=waits)  # fmt: skip
                waits = ()
    return 2


def staged_scatter(b: Builder, group: Group, chunks: Sequence[Spans], source: str,
                   result: Callable[[int, Spans], Piece], phase: str, first: int, ready: Ready) -> int:  # fmt: skip
    """Fold the parts of a chip for every rank elsewhere and write one chunk there, then fold one a chip: two steps.

    The rank of a chip that serves a rank elsewhere is the one of the same number.  Both folds go in the order of the
    group: ranks of a chip, then chips.
    """
    chips = _chips(group)
    ranks, n, per = group.ranks, len(chips), len(chips[0])
    for chip in chips:
        for at in chip:
            b.tell(ranks[at], [ranks[other] for other in chip if other != at], ready[ranks[at]], phase)
    opened = {rank: b.settled(rank) for rank in ranks}
    slots: dict[tuple[int, int], Piece] = {}
    for here, chip in enumerate(chips):
        for turn in range(n):
            there = (here + 1 + turn) % n  # its own chip last: nobody waits for that
            for number, at in enumerate(chip):
                to = chips[there][number]
                slot = slots[here, to] = b.slot(ranks[to], size_of(chunks[to]))
                reads = [b.at(ranks[owner], source, chunks[to]) for owner in chip]
                b.move(ranks[at], reads, [slot], step=first if there != here else -1, phase=phase,
                       waits=opened.pop(ranks[at], ()))  # fmt: skip
    for at, rank in enumerate(ranks):
        b.move(rank, [slots[here, at] for here in range(n)], [result(rank, chunks[at])], step=first + 1, phase=phase,
               waits=b.settled(rank))  # fmt: skip
    return 2 if per else 0
