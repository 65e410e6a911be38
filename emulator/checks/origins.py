"""The reads at which undefined bytes entered a run, by number; which of them are mixed into others on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from emulator.checks.poison import Marks
from emulator.events import Event
from formats.regions import Region

__all__ = ["MOST", "Origin", "Origins", "numbers_in"]

_FEW = 4
_SHORT = 1 << 10  # marks that are sorted sooner than they are looked through several times
MOST = 30000  # reads told apart; what comes later shares a number


class Origin:
    """One read of bytes that nothing wrote; `store` is the last transfer that brought them to an output."""

    __slots__ = ("count", "event", "missing", "name", "number", "region", "store", "tensor")

    def __init__(self, number: int, event: Event, name: str, region: Region | None) -> None:
        self.number, self.event, self.name, self.region = number, event, name, region
        self.missing = 0  # bytes of the region that nothing wrote, once it is cut down to them
        self.store: Event | None = None
        self.tensor = ""
        self.count = 1


class Origins:
    """Reads by number, counted down: where two meet in one element, the larger number stays, the earlier read."""

    def __init__(self) -> None:
        self._all: list[Origin] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._mixed: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._all)

    def __getitem__(self, number: int) -> Origin:
        return self._all[MOST - number]

    @property
    def newest(self) -> Origin:
        """Return the read that was numbered last."""
        return self._all[-1]

    def number(
        self, word: tuple[int, str, int], name: str, region: Region | None, happening: Callable[[], Event]
    ) -> int:
        """Return the number of a read: one for each region that a word of the program (core, engine, pc) reads."""
        place = (*word, region)
        number = self._numbers.get(place)
        if number is None:
            if len(self._all) >= MOST:
                return 1
            number = self._numbers[place] = MOST - len(self._all)
            self._all.append(Origin(number, happening(), name, region))
        return number

    def forget(self) -> None:
        """Take back the number of a read that found nothing of its own."""
        self._all.pop()
        self._numbers.popitem()

    def mix(self, given: Iterable[Iterable[int]], made: Iterable[Iterable[int]]) -> None:
        """Note which numbers went into a result without coming out of it, although something undefined did."""
        entered = set[int]().union(*given)
        if len(entered) < 2:
            return
        left = set[int]().union(*made)
        for lost in entered - left if left else ():
            self._mixed.setdefault(lost, set()).update(left)

    def within(self, origin: Origin, reached: Iterable[int]) -> Origin | None:
        """Return the earliest of some reads that a read is mixed into, directly or by way of others."""
        seen, queue = {origin.number}, [origin.number]
        for number in queue:
            fresh = self._mixed.get(number, set()) - seen
            seen |= fresh
            queue.extend(fresh)
        found = seen.intersection(reached)
        return self[max(found)] if found else None


def numbers_in(marks: Marks) -> set[int]:
    """Return the numbers in marks but 0: nearly always one, at most a few, where the largest is found soonest."""
    if marks.size <= _SHORT:
        return set(np.unique(marks).tolist()) - {0}
    found: set[int] = set()
    while marks.size and (number := int(marks.max())):
        found.add(number)
        if len(found) > _FEW:
            return set(np.unique(marks).tolist()) - {0} | found
        marks = marks[(marks != 0) & (marks != number)]
    return found
