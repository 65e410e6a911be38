"""DMA engines and their rings of descriptors, as far as a debugger looks at them.

Nothing here is kept up to date while a program runs: a ring is read off its queue when somebody looks.
Source: formats.md 8.1, hardware.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.addresses import DMA_ENGINES, DMA_RINGS
from emulator.dma.arbitration import Point, Run, serve
from emulator.dma.transfer import DmaDescriptor, Shares, Transfer

if TYPE_CHECKING:
    from emulator.dma.queues import DmaQueue

__all__ = ["DmaEngine", "Ring", "Segment", "share_out"]

_KEPT = 16      # an engine's backlog is first looked through when it is longer
RING_SIZE = 1 << 16  # descriptors; real rings hold 32 to 2**24 - 16 (formats.md 8.1), the loader's choice is ours


class Segment(NamedTuple):
    """The part of one transfer in one ring: descriptors `first` to `last` - 1 of it, then its semaphore write."""

    transfer: Transfer
    first: int
    last: int

    @property
    def size(self) -> int:
        """Return the descriptors, the semaphore write included."""
        return self.last - self.first + 1


class Ring:
    """A ring of descriptors; `head` and `tail` are positions in it, `outstanding` counts what lies between them."""

    def __init__(self, core: int, engine: int, index: int) -> None:
        self.core, self.engine, self.index = core, engine, index
        self.owner: DmaQueue | None = None
        self.size = RING_SIZE

    @property
    def queue(self) -> str | None:
        """Return the name of the queue that the ring belongs to."""
        return None if self.owner is None else self.owner.name

    @property
    def handed_over(self) -> int:
        """Return the descriptors that the engine was ever given."""
        return 0 if self.owner is None else self._count(self.owner.handed)

    @property
    def completed(self) -> int:
        """Return the descriptors that have completed."""
        return 0 if self.owner is None else self._count(self.owner.retired)

    def _count(self, counts: Mapping[Shares, int]) -> int:
        engine = self.engine
        return sum(
            times * (shares[engine][1] - shares[engine][0] + 1)
            for shares, times in counts.items()
            if engine < len(shares)
        )

    @property
    def head(self) -> int:
        """Return the position of the next descriptor to complete."""
        return self.completed % self.size

    @property
    def tail(self) -> int:
        """Return the position behind the last descriptor handed over."""
        return self.handed_over % self.size

    @property
    def outstanding(self) -> int:
        """Return the descriptors handed over and not completed."""
        return self.handed_over - self.completed

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the parts of transfers that are in the ring, the next one first."""
        pending = () if self.owner is None else self.owner.pending
        return tuple(Segment(t, *t.shares[self.engine]) for t in pending if self.engine < len(t.shares))

    @property
    def prebuilt(self) -> tuple[Segment, ...]:
        """Return what blocks of a static queue wrote into the ring at load time, in trigger order."""
        made = () if self.owner is None else self.owner.made
        return tuple(Segment(t, *shares[self.engine]) for t, shares in made if self.engine < len(shares))

    @property
    def descriptors(self) -> tuple[DmaDescriptor, ...]:
        """Return the outstanding descriptors, the next one first."""
        return tuple(_walk(self.segments))

    @property
    def prebuilt_descriptors(self) -> tuple[DmaDescriptor, ...]:
        """Return the descriptors that the loader wrote into the ring."""
        return tuple(_walk(self.prebuilt))


def _walk(segments: Iterable[Segment]) -> Iterator[DmaDescriptor]:
    for segment in segments:
        yield from segment.transfer.descriptors(segment.first, segment.last)
        yield DmaDescriptor(segment.transfer.number, 0, segment.transfer.semaphore or 0, 4, "semaphore")


class DmaEngine:
    """One DMA engine of a core; `free_ps` is when all it was given has moved, `busy_ps` how long it moved data.

    `backlog` is what it had not begun to move at `served_ps`, when it had last served `last_ring`.
    """

    __slots__ = ("_ends", "_kept", "_waiting", "backlog", "busy_ps", "core", "free_ps", "index", "last_ring", "rings",
                 "served_ps")

    def __init__(self, core: int, index: int) -> None:
        self.core, self.index = core, index
        self.rings = tuple(Ring(core, index, ring) for ring in range(DMA_RINGS))
        self.free_ps = 0
        self.busy_ps = 0
        self.served_ps = 0
        self.last_ring = DMA_RINGS - 1
        self.backlog: tuple[Run, ...] = ()
        self._waiting: set[int] = set()     # rings of the backlog
        self._kept = _KEPT                  # the backlog at which it is looked what of it has begun
        self._ends: dict[int, Point] = {}   # by ring: where what is planned changes when it gets more work

    def give(self, run: Run, now_ps: int) -> tuple[tuple[int, int, int], ...]:
        """Take over part of a transfer that was triggered now; return (transfer, begun, end) of it, behind those of
        others whose turns may have come to other times.
        """
        if self.free_ps <= now_ps:
            self.served_ps, self.backlog = self.free_ps, ()
            self._waiting.clear()
            self._ends = {}
        elif len(self.backlog) > self._kept or (
            run.ring not in self._ends and (len(self._waiting) > 1 or run.ring not in self._waiting)
        ):
            self.served_ps, self.last_ring, self.backlog, _ = serve(
                self.served_ps, self.last_ring, self.backlog, now_ps)
            self._waiting = {kept.ring for kept in self.backlog}
            self._kept = max(2 * len(self.backlog), _KEPT)
        took = run.packet_ps * (run.packets - 1) + run.last_ps
        self.backlog += (run,)
        self._waiting.add(run.ring)
        if len(self._waiting) == 1:
            begun, idle = max(self.free_ps, run.ready_ps), self.free_ps < run.ready_ps
            took += run.fill_ps if idle else 0
            self.free_ps = begun + took
            self.busy_ps += took
            self._ends = {}
            return ((run.transfer, begun, self.free_ps),)
        before = self.free_ps
        point = self._ends.get(run.ring)
        ends: dict[int, Point] = {}
        if point is None:
            served = serve(self.served_ps, self.last_ring, self.backlog, ends=ends)
        else:
            mine = run._replace(begun_ps=max(run.ready_ps, point.time_ps))
            served = serve(point.time_ps, point.last_ring, (*point.left, mine), ends=ends)
            for ring, other in self._ends.items():
                if ring not in ends and len(other.left) < _KEPT:
                    ends[ring] = other._replace(left=(*other.left, run))
        self._ends = ends
        self.free_ps = served.time_ps
        self.busy_ps += took + (run.fill_ps if before < run.ready_ps else 0)
        own = [one for one in served.finished if one[0] == run.transfer]
        return (*(one for one in served.finished if one[0] != run.transfer), *own)

    def state(self) -> tuple[Any, ...]:
        """Return what it was given as a value, for `restore`."""
        ends = tuple(self._ends.items())
        return self.free_ps, self.busy_ps, self.served_ps, self.last_ring, self.backlog, self._kept, ends

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a state."""
        self.free_ps, self.busy_ps, self.served_ps, self.last_ring, self.backlog, self._kept, ends = state
        self._ends = dict(ends)
        self._waiting = {kept.ring for kept in self.backlog}


@cache
def share_out(pieces: int, per_engine: int, engines: int = DMA_ENGINES) -> Shares:
    """Return which descriptors each engine takes, as (first, last): at least `per_engine` each, in order."""
    each = max(per_engine, -(-pieces // engines))
    return tuple((first, min(first + each, pieces)) for first in range(0, pieces, each))
