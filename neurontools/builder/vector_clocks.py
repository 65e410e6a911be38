"""What each engine knows to be complete, so that a wait is written only where nothing implies it.

Actors are the five engines, then DMA queues. Each completes its units (words that touch data, transfers) in order.
"""

from __future__ import annotations

from formats.engines import ENGINES

__all__ = ["VectorClocks"]

# Clocks are as long as there were actors when they were made; of those that came later nothing was known.
Clock = tuple[int, ...]


class VectorClocks:
    """Vector clocks: in `known`, per engine, the last unit of every actor that it knows to be complete, -1 for none.

    A unit keeps what its engine knew when it started. What an engine knows only grows, so a later unit knows no less.
    """

    __slots__ = ("_frozen", "_units", "known")

    def __init__(self) -> None:
        self.known: list[list[int]] = [[-1] * len(ENGINES) for _ in ENGINES]
        self._frozen: list[Clock | None] = [None] * len(ENGINES)
        self._units: list[list[Clock]] = [[] for _ in ENGINES]

    def actor(self) -> int:
        """Return the number of a new actor: a queue, or somebody outside this core."""
        for known in self.known:
            known.append(-1)
        self._units.append([])
        return len(self._units) - 1

    def count(self, actor: int) -> int:
        """Return the number of units an actor has so far."""
        return len(self._units[actor])

    def counts(self) -> list[int]:
        """Return the number of units that each actor has so far."""
        return [len(units) for units in self._units]

    def common(self) -> list[int]:
        """Return the last unit of each actor that every engine knows to be complete."""
        return list(map(min, *self.known))

    def known_by(self, actor: int, unit: int) -> list[int]:
        """Return the last unit of each actor that is complete when a unit is."""
        clock = self._units[actor][unit]
        known = [*clock, *[-1] * (len(self._units) - len(clock))]
        known[actor] = unit
        return known

    def essential(self, wanted: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the (actor, unit) pairs to wait for, so that all wanted ones are known; implied ones are left out.

        `wanted` has one pair of each actor; it is sorted here.
        """
        wanted.sort()
        clocks = [(other, self._units[other][its]) for other, its in wanted]
        found = []
        for pair in wanted:
            actor, unit = pair
            for other, clock in clocks:
                # whoever waits for `other` knows by that what `other` knew when it started
                if other != actor and len(clock) > actor and clock[actor] >= unit:
                    break
            else:
                found.append(pair)
        return found

    def wait(self, engine: int, actor: int, unit: int) -> None:
        """Let the engine know a unit, and all that was known when it started."""
        known, units = self.known[engine], self._units[actor]
        clock, before = units[unit], known[actor]
        # Whoever knows an earlier unit that started with as much knows all of that.
        if before < 0 or units[before] is not clock:
            for other, its in enumerate(clock):
                if known[other] < its:
                    known[other] = its
        if known[actor] < unit:
            known[actor] = unit
        self._frozen[engine] = None

    def unit(self, engine: int, actor: int) -> None:
        """Append a unit that starts with what the engine knows now.

        `actor` is the queue that executes a transfer, or the engine itself.
        """
        frozen = self._frozen[engine]
        if frozen is None:
            frozen = self._frozen[engine] = tuple(self.known[engine])
        self._units[actor].append(frozen)

    def everything(self) -> None:
        """Let every engine know every unit there is: all have met and nothing is under way."""
        clock = [len(units) - 1 for units in self._units]
        for engine in range(len(self.known)):
            self.known[engine] = list(clock)
            self._frozen[engine] = None

    def arrival(self, actor: int) -> None:
        """Append a unit of an actor outside this core, about which nothing else is known."""
        self._units[actor].append(())
