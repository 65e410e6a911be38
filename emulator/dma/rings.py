"""DMA engines and their rings of descriptors, as far as a debugger looks at them.

Source: formats.md 8.1, hardware.md 4.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from emulator.addresses import DMA_ENGINES, DMA_RINGS
from emulator.dma.transfer import DmaDescriptor, Transfer

__all__ = ["DmaEngine", "Ring", "Segment", "share_out"]

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
    """A ring of descriptors; `head` and `tail` are positions in it, `outstanding` what lies between them.

    Descriptors are made when somebody looks: a transfer is kept as a range of its rows.
    """

    def __init__(self, core: int, engine: int, index: int) -> None:
        self.core, self.engine, self.index = core, engine, index
        self.queue: str | None = None
        self.size = RING_SIZE
        self.handed_over = 0
        self.completed = 0
        self._segments: deque[Segment] = deque()
        self.prebuilt: list[Segment] = []  # written at load time, in trigger order, by blocks of a static queue

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
    def descriptors(self) -> tuple[DmaDescriptor, ...]:
        """Return the outstanding descriptors, the next one first."""
        return tuple(self._walk(self._segments))

    @property
    def prebuilt_descriptors(self) -> tuple[DmaDescriptor, ...]:
        """Return the descriptors that the loader wrote into the ring."""
        return tuple(self._walk(self.prebuilt))

    @staticmethod
    def _walk(segments: deque[Segment] | list[Segment]) -> Iterator[DmaDescriptor]:
        for segment in segments:
            yield from segment.transfer.descriptors(segment.first, segment.last)
            yield DmaDescriptor(segment.transfer.number, 0, segment.transfer.semaphore or 0, 4, "semaphore")

    def push(self, segment: Segment) -> None:
        """Hand descriptors over: the tail moves."""
        self._segments.append(segment)
        self.handed_over += segment.size

    def pop(self) -> None:
        """Complete the oldest segment: the head moves."""
        self.completed += self._segments.popleft().size


class DmaEngine:
    """One DMA engine of a core; `free_ps` is when all it was given has moved, `busy_ps` how long it moved data."""

    def __init__(self, core: int, index: int) -> None:
        self.core, self.index = core, index
        self.rings = tuple(Ring(core, index, ring) for ring in range(DMA_RINGS))
        self.free_ps = 0
        self.busy_ps = 0
        self.nbytes = 0


def share_out(pieces: int, per_engine: int, engines: int = DMA_ENGINES) -> tuple[tuple[int, int], ...]:
    """Return which descriptors each engine takes, as (first, last): at least `per_engine` each, in order."""
    each = max(per_engine, -(-pieces // engines))
    return tuple((first, min(first + each, pieces)) for first in range(0, pieces, each))
