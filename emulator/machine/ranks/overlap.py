"""What of each collective is hidden behind compute and what is exposed, and whom the next matmul waits for."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from emulator.dma.work import spans_by_engine
from emulator.events import Event
from emulator.machine.ranks.machine import Carried
from formats import isa
from formats.named_tuple import NamedTuple

__all__ = ["Activity", "Delay", "Move", "Overlap", "Share", "overlap_of", "share_of", "shares_of", "union"]

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
    core: int = 0
    spans: tuple[Span, ...] = ()  # begin and end on each DMA engine


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
                spans = spans_by_engine(transfer.plan.pieces)
                self.moves.append(Move(event.engine, begin, event.time_ps, transfer.nbytes, worked, event.core, spans))
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
    """How compute and collectives shared a DMA engine while both had work, for `both_ps`; or several, all together.

    `carried_ps` of that time went to collectives; `rates` are the picoseconds that an engine takes for a byte of
    compute and of a collective.
    """

    core: int
    engine: int
    both_ps: int
    carried_ps: int
    rates: tuple[float, float]

    @property
    def compute(self) -> float:
        """Return the share of compute in the bytes moved, 0 where the two never met."""
        mine, theirs = (self.both_ps - self.carried_ps) / self.rates[0], self.carried_ps / self.rates[1]
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


def shares_of(moves: Sequence[Move], carried: Sequence[Carried], carried_rate: float = 1.0) -> list[Share]:
    """Return how each DMA engine of a rank was shared; an engine takes `carried_rate` ps for a byte of a collective.

    An engine that has work of a collective alone serves it all the time.  So of the time that what it carries takes,
    what did not pass then has passed while there was work of both.
    """
    compute: dict[tuple[int, int], list[Span]] = {}
    for move in moves:
        for engine, span in enumerate(move.spans):
            compute.setdefault((move.core, engine), []).append(span)
    others: dict[tuple[int, int], list[Span]] = {}
    took: Counter[tuple[int, int]] = Counter()
    for one in carried:
        for core, spans in enumerate(one.spans):
            for engine, span in enumerate(spans):
                others.setdefault((core, engine), []).append(span)
                took[core, engine] += one.alone_ps
    # Short rows take an engine longer for a byte than long ones: the rate is that of the transfers that were there.
    there = union([(one.begin_ps, one.end_ps) for one in carried])
    near = [move for move in moves if _covered(there, move.begin_ps, move.end_ps)]
    nbytes = sum(move.nbytes for move in near)
    rates = sum(move.worked_ps for move in near) / nbytes if nbytes else 1.0, carried_rate
    found = []
    for place, theirs in sorted(others.items()):
        work, carrying = union(compute.get(place, ())), union(theirs)
        both = sum(_covered(work, *span) for span in carrying)
        apart = sum(end - begin for begin, end in carrying) - both
        found.append(Share(*place, both, min(max(took[place] - apart, 0), both), rates))
    return found


def share_of(moves: Sequence[Move], carried: Sequence[Carried], carried_rate: float = 1.0) -> Share:
    """Return how the DMA engines of a rank were shared, all together: times are means over them."""
    each = shares_of(moves, carried, carried_rate)
    n = max(len(each), 1)
    return Share(-1, -1, sum(one.both_ps for one in each) // n, sum(one.carried_ps for one in each) // n,
                 each[0].rates if each else (1.0, carried_rate))  # fmt: skip
