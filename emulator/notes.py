"""Notes of a run: what happened, in order, for who looks at it when the run is over.

A note is a plain tuple that begins with what it is of; an engine or DMA queue makes it without asking anybody, which
takes a tenth of what it takes to make an event and tell observers of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["COMPARED", "CROWDED", "ENDED", "EXECUTED", "ISSUED", "MOVED", "Notes"]

ISSUED = 0  # engine, loaded word, the word as it is bound, time
EXECUTED = 1  # engine, loaded word, that as it is bound, when it issued, time, changes (None where it faulted)
MOVED = 2  # a transfer, time, changes (None where it faulted), regions
CROWDED = 3  # a transfer that finds rings full, descriptors in a ring, transfers under way on its queue
ENDED = 4  # the event of the fault or hang that ended the run
COMPARED = 5  # engine, loaded word, values of the registers that it compared; behind EXECUTED of a branch


class Notes(list[tuple[Any, ...]]):
    """The notes of a run; who makes them may be told of transfers, before each moves bytes and when it is noted."""

    __slots__ = ("before", "behind")

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[Any], object] | None = None
        self.behind: Callable[[Any], object] | None = None
