"""What each engine knows to be complete, so that a wait is written only where nothing implies it.

Actors are the five engines, then DMA queues. Each completes its units (words that touch data, transfers) in order.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.isa import ENGINES

__all__ = ["ACTORS", "Knowledge"]

ACTORS = len(ENGINES) + 8  # at most six queues, and both directions of the exchange between cores

Clock = tuple[int, ...]
_NOTHING: Clock = (-1,) * ACTORS


class Knowledge:
    """Vector clocks: per engine the last unit of every actor that it knows to be complete, -1 for none.

    A unit keeps what its engine knew when it started. What an engine knows only grows, so a later unit knows no less.
    """

    __slots__ = ("_frozen", "_known", "_units")

    def __init__(self) -> None:
        self._known: list[list[int]] = [[-1] * ACTORS for _ in ENGINES]
        self._frozen: list[Clock | None] = [None] * len(ENGINES)
        self._units: list[list[Clock]] = [[] for _ in range(ACTORS)]

    def count(self, actor: int) -> int:
        """Return the number of units an actor has so far."""
        return len(self._units[actor])

    def knows(self, engine: int, actor: int, unit: int) -> bool:
        """Tell whether an engine knows that a unit is complete."""
        return self._known[engine][actor] >= unit

    def unknown(self, engine: int, wanted: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the (actor, unit) pairs that the engine has to wait for; what one of them implies is left out."""
        known = self._known[engine]
        missing = [pair for pair in wanted if known[pair[0]] < pair[1]]
        if len(missing) > 1:
            missing.sort()
            units = self._units
            missing = [
                (actor, unit)
                for actor, unit in missing
                if not any(units[a][u][actor] >= unit for a, u in missing if a != actor)
            ]
        return missing

    def wait(self, engine: int, actor: int, unit: int) -> None:
        """Let the engine know a unit, and all that was known when it started."""
        known = self._known[engine]
        known[:] = map(max, known, self._units[actor][unit])
        if known[actor] < unit:
            known[actor] = unit
        self._frozen[engine] = None

    def unit(self, engine: int, actor: int | None = None) -> int:
        """Append a unit that starts with what the engine knows now; return its number.

        `actor` is the queue that executes a transfer, the engine itself otherwise.
        """
        frozen = self._frozen[engine]
        if frozen is None:
            frozen = self._frozen[engine] = tuple(self._known[engine])
        units = self._units[engine if actor is None else actor]
        units.append(frozen)
        return len(units) - 1

    def everything(self) -> None:
        """Let every engine know every unit there is: all have met and nothing is under way."""
        clock = [len(units) - 1 for units in self._units]
        for engine in range(len(self._known)):
            self._known[engine] = list(clock)
            self._frozen[engine] = None

    def arrival(self, actor: int) -> int:
        """Append a unit of an actor outside this core, about which nothing else is known; return its number."""
        self._units[actor].append(_NOTHING)
        return len(self._units[actor]) - 1
