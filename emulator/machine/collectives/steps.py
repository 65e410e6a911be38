"""Step lists of CC-cores: what one transfer reads, folds and writes, what it waits for, whom it tells.

A collective works in one index space that all of its ranks share: element i of buffer "out" means the same everywhere.
A piece is a set of elements of one buffer of one rank.  A move reads one piece or several of equal size, folds them in
their order, and writes the result to one place or several, as a DMA transfer does.  When it is complete it raises, at
every rank it wrote to or notifies, the receive count that belongs to it; counts of one pair of ranks and one channel
rise in the order of the moves.  A credit says that a slot may be written again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from formats.named_tuple import NamedTuple

__all__ = ["Move", "Piece", "Program", "Span", "Spans", "Wait", "joined", "size_of", "split", "uncollected"]

Span = tuple[int, int]
Spans = tuple[Span, ...]


class Piece(NamedTuple):
    """Elements of a buffer of a rank: "in", "out" or "tmp"."""

    rank: int
    buffer: str
    spans: Spans

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return size_of(self.spans)


class Wait(NamedTuple):
    """A receive count that must have reached a value: moves of `source` that arrived here on a channel."""

    source: int
    channel: int
    value: int


class Move(NamedTuple):
    """One transfer of a CC-core's program.

    `step` numbers the algorithm's steps; a move without a step (-1) is local work around them.  `credit` is the number
    of slots that the first target must have given back before this move may write there; 0 asks for none.
    """

    step: int
    phase: str
    waits: tuple[Wait, ...]
    reads: tuple[Piece, ...]
    writes: tuple[Piece, ...]
    op: str = ""
    notifies: tuple[int, ...] = ()
    frees: tuple[int, ...] = ()
    credit: int = 0

    @property
    def size(self) -> int:
        """Return the number of elements that each write carries."""
        return self.writes[0].size if self.writes else 0


Program = dict[int, list[Move]]  # by channel


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the collector of reference cycles, which would look through all moves again and again."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def size_of(spans: Iterable[Span]) -> int:
    """Return the number of elements of spans."""
    total = 0
    for start, stop in spans:
        total += stop - start
    return total


def joined(parts: Iterable[Spans]) -> Spans:
    """Return spans one behind the other, neighbours drawn together, empty ones left out."""
    found: list[Span] = []
    for spans in parts:
        for start, stop in spans:
            if start == stop:
                continue
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], stop)
            else:
                found.append((start, stop))
    return tuple(found)


def split(spans: Spans, parts: int) -> list[Spans]:
    """Return spans cut into consecutive parts whose sizes differ by one element at most."""
    if parts == 1:
        return [spans]
    total, cuts = size_of(spans), []
    for part in range(parts):
        # Products before the division: sizes that do not divide are spread over the parts, and the last is not short.
        first, last = total * part // parts, total * (part + 1) // parts
        at, mine = 0, []
        for start, stop in spans:
            low, high = max(first - at, 0), min(last - at, stop - start)
            if low < high:
                mine.append((start + low, start + high))
            at += stop - start
        cuts.append(tuple(mine))
    return cuts
