"""Rings of descriptors of DMA engines, as far as a debugger looks at them.

Nothing here is kept up to date while a program runs: a ring is read off its queue when somebody looks.
Source: formats.md 8.1, hardware.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from emulator.dma.transfer import DmaDescriptor, Shares, Transfer
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_ENGINES

if TYPE_CHECKING:
    from emulator.dma.queues import DmaQueue

__all__ = ["LARGEST_RING", "RING_SIZE", "Ring", "Segment", "share_out"]

LARGEST_RING = (1 << 24) - 16  # descriptors, of what a ring filled at load time can hold (formats.md 8.1)
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

    def __init__(self, core: int, engine: int, index: int, owner: DmaQueue | None = None) -> None:
        self.core, self.engine, self.index, self.owner = core, engine, index, owner
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


@cache
def share_out(pieces: int, per_engine: int, engines: int = DMA_ENGINES) -> Shares:
    """Return which descriptors each engine takes, as (first, last): at least `per_engine` each, in order."""
    each = max(per_engine, -(-pieces // engines))
    return tuple((first, min(first + each, pieces)) for first in range(0, pieces, each))
