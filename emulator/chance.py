"""A shaken schedule: what is due at one time comes in any order, intervals and latencies are longer or shorter."""

from __future__ import annotations

import random
from itertools import count

__all__ = ["Chance"]

_JITTER = (0.5, 2.0)  # range of the random factor on times


class Chance:
    """What a seed makes of a schedule; `drawn` counts the 32-bit words that it took from its random numbers."""

    def __init__(self, seed: int) -> None:
        self._seed, self._source, self._numbers = seed, random.Random(seed), count()
        self.drawn = 0

    def order(self) -> int:
        """Return a number for the heap, none twice."""
        self.drawn += 1
        return self._source.getrandbits(30) << 40 | next(self._numbers)

    def jitter(self, time_ps: int) -> int:
        """Return a time that is stretched or shortened, never to nothing."""
        self.drawn += 2
        return max(1, int(time_ps * self._source.uniform(*_JITTER)))

    def restore(self, drawn: int) -> None:
        """Go back to where so many words had been taken."""
        self.drawn = drawn
        self._source.seed(self._seed)
        if drawn:
            self._source.getrandbits(32 * drawn)
