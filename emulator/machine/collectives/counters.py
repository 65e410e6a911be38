"""Count what a collective does while it runs: steps, bytes by kind of way, memory touches, bytes of each link."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from emulator.machine.collectives.steps import Move
from emulator.machine.machine import Machine

__all__ = ["Counters", "RankCounters"]


@dataclass
class RankCounters:
    """Bytes of one rank's moves, by where they went; reads from other ranks of its chip are apart."""

    between_nodes: int = 0
    between_chips: int = 0
    inside_chip: int = 0
    read_inside_chip: int = 0
    hbm_reads: int = 0
    hbm_writes: int = 0
    moves: int = 0

    @property
    def sent(self) -> int:
        """Return the bytes written to other ranks."""
        return self.between_nodes + self.between_chips + self.inside_chip


@dataclass
class Counters:
    """What a whole collective did."""

    ranks: dict[int, RankCounters] = field(default_factory=lambda: defaultdict(RankCounters))
    links: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    steps: set[int] = field(default_factory=set)
    by_step: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, machine: Machine, rank: int, move: Move, item: int) -> None:
        """Count a move as it is issued."""
        mine, size = self.ranks[rank], move.size * item
        mine.moves += 1
        if move.step >= 0:
            self.steps.add(move.step)
        here = machine.place(rank)
        for piece in move.writes:
            mine.hbm_writes += size
            if piece.rank == rank:
                continue
            there = machine.place(piece.rank)
            if there.node != here.node:
                mine.between_nodes += size
            elif there.chip != here.chip:
                mine.between_chips += size
            else:
                mine.inside_chip += size
            if move.step >= 0:
                self.by_step[rank, move.step] += size
        for piece in move.reads:
            mine.hbm_reads += size
            if piece.rank != rank:
                mine.read_inside_chip += size
