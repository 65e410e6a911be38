"""What actors know of one another: units of work with their clocks, and what reaching a value of a semaphore tells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from emulator.dma.rows import Numbers
from emulator.loaded import LoadedWord

__all__ = ["Clock", "Floors", "History", "Unit", "join"]

Clock = tuple[int, ...]


class Unit:
    """One word or transfer in the order of its actor; `clock` is what it knew of the others when it began."""

    __slots__ = ("_release", "actor", "clock", "issued_ps", "loaded", "number", "time_ps", "word")

    def __init__(
        self, actor: int, number: int, clock: Clock, word: Any, loaded: LoadedWord | None, issued_ps: int
    ) -> None:
        self.actor, self.number, self.clock, self.word, self.loaded = actor, number, clock, word, loaded
        self.issued_ps, self.time_ps = issued_ps, -1
        self._release: Clock | None = None

    def knows(self, actor: int, number: int) -> bool:
        """Return whether a unit of an actor is surely over when this one begins."""
        return actor == self.actor or self.clock[actor] >= number

    @property
    def release(self) -> Clock:
        """Return what this unit passes on when it is complete."""
        found = self._release
        if found is None:
            clock, actor = self.clock, self.actor
            found = self._release = (*clock[:actor], self.number, *clock[actor + 1 :])
        return found


class History:
    """Values a semaphore took since it last went down, and what reaching each of them tells."""

    __slots__ = ("_begun", "_clocks", "last", "raisers", "raises", "values", "waits", "writer")

    def __init__(self, value: int, clock: Clock) -> None:
        self.values = [value]
        self._clocks = [clock]  # of the first values; those behind are worked out when somebody waits for them
        self._begun = False  # whether it counts from a change that tells something by itself
        self.raises: list[Unit] = []  # who brought each value but the first about
        self.raisers: set[int] = set()
        # By waiting actor: its latest wait, the value, whether it has to be met exactly, what it knew without it.
        self.waits: dict[int, tuple[Unit, int, bool, Clock]] = {}
        # The latest change by each actor since a word set the semaphore to a number, and that word.
        self.last: dict[int, Unit] = {}
        self.writer: Unit | None = None

    def begin(self, value: int, clock: Clock) -> None:
        """Count from a value on, forgetting what raised it before."""
        self.values, self._clocks, self.raises, self.raisers = [value], [clock], [], set()
        self._begun = True
        self.waits.clear()

    def told(self, place: int) -> Clock:
        """Return what reaching the value at a place tells; -1 is the last."""
        clocks, raises = self._clocks, self.raises
        if place < 0:
            place = len(raises)
        while len(clocks) <= place:
            clocks.append(join(clocks[-1], raises[len(clocks) - 1].release))
        return clocks[place]

    def teach(self, knew: Clock, need: int) -> Clock:
        """Return what somebody knows once a wait for a value is met."""
        raises = self.raises
        place = bisect_left(self.values, need)
        if place > len(raises):
            place = len(raises)
        if not place or self._begun or len(self.raisers) > 1:
            return join(knew, self.told(place))
        # Of one actor's units the last one knows most, and who knows of a unit knows all that it knew.
        unit = raises[place - 1]
        return knew if knew[unit.actor] >= unit.number else join(knew, unit.release)

    def behind(self, need: int) -> Iterator[tuple[int, Unit, int]]:
        """Yield the first raise by each actor behind those that a value took, with the values before and after it."""
        values, seen = self.values, set[int]()
        for place in range(bisect_left(values, need), len(self.raises)):
            unit = self.raises[place]
            if unit.actor not in seen:
                seen.add(unit.actor)
                yield values[place], unit, values[place + 1]
                if len(seen) == len(self.raisers):
                    return

    def replaceable(self, waiter: int, need: int, knew: Clock, release: Clock) -> bool:
        """Return whether a raise with a release clock can take the place of one that a wait was met by.

        The wait has its engine's own raises, those it knew of, and those that are over when that raise is, in any case.
        """
        met_by = self.raises[: bisect_left(self.values, need)]
        return any(one.actor != waiter and max(release[one.actor], knew[one.actor]) < one.number for one in met_by)


def join(first: Clock, second: Clock) -> Clock:
    """Return what both of two clocks tell."""
    if first is second:
        return first
    # A call of `max` for each number takes twice as long.
    return tuple([one if one > other else other for one, other in zip(first, second, strict=True)])  # noqa: FURB136


class Floors:
    """What all units of a run from one on know, the host behind them too; so many are over."""

    def __init__(self, clocks: list[Clock], host: Clock) -> None:
        self._clocks, self._host, self.over = clocks, host, 0

    @property
    def now(self) -> Clock:
        """Return what all that are not over know."""
        return tuple(self._least[self.over].tolist())

    @cached_property
    def _least(self) -> Numbers:
        return np.minimum.accumulate(np.array([*self._clocks, self._host], np.int64)[::-1])[::-1]
