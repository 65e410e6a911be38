"""Write step lists: channels, receive counts, slots with credits, scratch memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from emulator.machine.collectives.steps import Move, Piece, Program, Spans, Wait

__all__ = ["Builder"]


class Builder:
    """The programs of all ranks of one collective while an algorithm writes them.

    An algorithm writes moves step by step for all ranks, so the receive counts it waits for are known when they are
    written.
    """

    def __init__(self, op: str = "") -> None:
        self.op = op
        self.programs: dict[int, Program] = {}
        self.scratch: dict[int, int] = defaultdict(int)
        self.step = 0
        self._arrived: dict[tuple[int, int, int], int] = defaultdict(int)
        self._sources: dict[int, dict[tuple[int, int], None]] = defaultdict(dict)
        self._settled: dict[tuple[int, int, int], int] = defaultdict(int)

    def count(self, source: int, target: int, channel: int) -> int:
        """Return how many moves of `source` on a channel have told `target` so far."""
        return self._arrived[source, target, channel]

    def slot(self, rank: int, size: int) -> Piece:
        """Return fresh scratch memory of a rank."""
        start = self.scratch[rank]
        self.scratch[rank] = start + size
        return Piece(rank, "tmp", ((start, start + size),) if size else ())

    def move(
        self, rank: int, reads: Iterable[Piece], writes: Iterable[Piece], *, step: int, phase: str, channel: int = 0,
        waits: Iterable[Wait] = (), notifies: tuple[int, ...] = (), frees: tuple[int, ...] = (), credit: int = 0,
    ) -> None:  # fmt: skip
        """Append a move to the program of a rank; several reads are folded."""
        reads, writes = tuple(reads), tuple(writes)
        one = Move(step, phase, tuple(waits), reads, writes, self.op if len(reads) > 1 else "", notifies, frees, credit)
        self.programs.setdefault(rank, {}).setdefault(channel, []).append(one)
        for target in dict.fromkeys([*(piece.rank for piece in writes), *notifies]):
            self._arrived[rank, target, channel] += 1
            self._sources[target].setdefault((rank, channel))

    def settled(self, rank: int) -> tuple[Wait, ...]:
        """Return waits for everything that was written for a rank so far and that it has not waited for by this."""
        found = []
        for source, channel in self._sources[rank]:
            key = (source, rank, channel)
            if self._arrived[key] > self._settled[key]:
                self._settled[key] = self._arrived[key]
                found.append(Wait(source, channel, self._arrived[key]))
        return tuple(found)

    def everything(self, rank: int) -> tuple[Wait, ...]:
        """Return waits for everything that was written for a rank so far: where one phase follows another."""
        self.settled(rank)
        return tuple(Wait(source, channel, self._arrived[source, rank, channel])
                     for source, channel in self._sources[rank])  # fmt: skip

    def tell(self, rank: int, targets: Iterable[int], waits: Iterable[Wait], phase: str, channel: int = 0) -> None:
        """Let a rank tell others that it has come so far, without data."""
        self.move(rank, (), (), step=-1, phase=phase, channel=channel, waits=waits, notifies=tuple(targets))

    def expected(self) -> dict[int, dict[tuple[int, int], int]]:
        """Return every rank's receive counts at the end, by source and channel."""
        return {rank: {key: self._arrived[key[0], rank, key[1]] for key in keys}
                for rank, keys in self._sources.items()}  # fmt: skip

    @staticmethod
    def at(rank: int, buffer: str, spans: Spans) -> Piece:
        """Return a piece."""
        return Piece(rank, buffer, spans)
