"""What of each collective is hidden behind compute and what is exposed, and whom the next matmul waits for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from emulator.events import Event
from formats import isa

__all__ = ["Activity", "Delay", "Move", "Overlap", "Share", "overlap_of", "share_of", "union"]

_COMPUTE = ("PE", "Activation", "DVE", "Pool")
# Words that compute nothing: they wait, signal or start transfers.
_IDLE = (isa.Nop, isa.EventSemaphore, isa.SetOrderingMode, isa.OpcodeCC, isa.Drain, isa.Notify, isa.ActTableLoad,
         isa.Write, isa.DmaDirect2d, isa.PseudoDmaDirect2d, isa.PseudoDmaTrigger, isa.DmaIndirect, isa.SendReceive,
         isa.Collective, isa.CoreBarrier, isa.EventSemaphoreRangeClear)  # fmt: skip

Span = tuple[int, int]


class Move(NamedTuple):
    """A transfer of compute; `worked_ps` is what its DMA engines need for it together."""

    queue: str
    begin_ps: int
    end_ps: int
    nbytes: int
    worked_ps: int


class Activity:
    """Watch one rank: when its engines compute, when the Tensor engine does, what its DMA queues move."""

    def __init__(self) -> None:
        self.findings: list[Any] = []
        self.compute: list[Span] = []
        self.matmuls: list[tuple[int, int, int]] = []  # begin, end, pc
        self.words: list[tuple[str, int, int, int, str]] = []  # engine, pc, begin, end, name
        self.moves: list[Move] = []

    def on_event(self, event: Event) -> None:
        """Take note of a completion."""
        if event.kind == "dma":
            transfer = event.instruction
            begin = max(transfer.started_ps, transfer.triggered_ps)
            if not isinstance(transfer.instruction, isa.Collective):
                worked = sum(
                    (part.last - part.first + 1) * (part.packet_ps * (part.packets - 1) + part.last_ps)
                    for part in transfer.course.stretches
                )
                self.moves.append(Move(event.engine, begin, event.time_ps, transfer.nbytes, worked))
        elif event.kind == "instruction":
            word = event.instruction
            self.words.append((event.engine, event.pc, event.issued_ps, event.time_ps, word.NAME))
            if event.engine in _COMPUTE and not isinstance(word, _IDLE):
                self.compute.append((event.issued_ps, event.time_ps))
                if event.engine == "PE":
                    self.matmuls.append((event.issued_ps, event.time_ps, event.pc))


class Delay(NamedTuple):
    """The first matmul that a rank begins after a collective, and how long the Tensor engine stood idle for it."""

    pc: int
    begin_ps: int
    idle_ps: int


class Overlap(NamedTuple):
    """One collective at one rank; `trigger_ps` passes from the word to the start of its CC-cores."""

    rank: int
    called_ps: int
    ended_ps: int
    trigger_ps: int
    hidden_ps: int
    delay: Delay | None

    @property
    def time_ps(self) -> int:
        """Return how long it takes, from the call to the end."""
        return self.ended_ps - self.called_ps

    @property
    def exposed_ps(self) -> int:
        """Return how much of it no compute covers."""
        return self.time_ps - self.hidden_ps


class Share(NamedTuple):
    """How compute and collectives shared the DMA engines of a rank while both had work, for `both_ps`.

    `alone_ps` is what the collectives would have taken in that time without compute; `rates` are the picoseconds that
    an engine takes for a byte of compute and of a collective.
    """

    both_ps: int
    alone_ps: int
    rates: tuple[float, float]

    @property
    def compute(self) -> float:
        """Return the share of compute in the bytes moved, 0 where the two never met."""
        mine, theirs = (self.both_ps - self.alone_ps) / self.rates[0], self.alone_ps / self.rates[1]
        return mine / (mine + theirs) if self.both_ps else 0.0


def union(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, those that touch drawn together."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > begin:
            found.append((begin, end))
    return found


def _covered(spans: Sequence[Span], begin: int, end: int) -> int:
    """Return how much of a stretch disjoint spans in order cover."""
    at = max(bisect_left(spans, (begin, 0)) - 1, 0)
    total = 0
    while at < len(spans) and spans[at][0] < end:
        total += max(0, min(end, spans[at][1]) - max(begin, spans[at][0]))
        at += 1
    return total


def overlap_of(
    rank: int, activity: Activity, called_ps: int, ended_ps: int, trigger_ps: int, busy: Sequence[Span] | None = None
) -> Overlap:
    """Return what compute of a rank hides of a collective, and the matmul that comes next."""
    spans = union(activity.compute) if busy is None else busy
    matmuls = activity.matmuls
    at = bisect_left(matmuls, (ended_ps, 0, 0))
    delay = None
    if at < len(matmuls):
        before = matmuls[at - 1][1] if at else called_ps
        begin = matmuls[at][0]
        # Of the time it stood idle, that in which the collective was under way.
        delay = Delay(matmuls[at][2], begin, max(0, ended_ps - max(before, called_ps)))
    trigger = min(trigger_ps, ended_ps - called_ps)
    return Overlap(rank, called_ps, ended_ps, trigger, _covered(spans, called_ps, ended_ps), delay)


def share_of(moves: Sequence[Move], carried: Sequence[tuple[int, int, int]], carried_rate: float = 1.0) -> Share:
    """Return how DMA engines were shared by transfers of compute and of collectives: those that lie within compute's.

    Of a collective they are (begin, end, time alone); an engine takes `carried_rate` picoseconds for a byte of them.
    """
    busy = union([move[1:3] for move in moves])
    both = [one for one in carried if one[0] < one[1] and _covered(busy, one[0], one[1]) == one[1] - one[0]]
    spans = union([one[:2] for one in both])
    # Short rows take an engine longer for a byte than long ones: the rate is that of the transfers that were there.
    there = [move for move in moves if _covered(spans, move.begin_ps, move.end_ps)]
    nbytes = sum(move.nbytes for move in there)
    rate = sum(move.worked_ps for move in there) / nbytes if nbytes else 1.0
    return Share(sum(end - begin for begin, end in spans), sum(one[2] for one in both), (rate, carried_rate))
