"""Successive halving: many variants on a small problem, the best of them on larger ones, few on the script's own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from neurontools.tuning.results import Trial
from neurontools.tuning.space import Values, key_of

__all__ = ["Halving", "runs_of"]

_OF = 3  # one of so many goes on to the next rung: the usual factor (Li et al., Hyperband, 2018)


def runs_of(first: int, rungs: int) -> list[int]:
    """Return how many variants run on each rung: `first` on the smallest problem, then those of `rungs` more."""
    runs = [first]
    for _ in range(rungs):
        runs.append(-(-runs[-1] // _OF))
    return runs


class Halving:
    """Every variant of one rung is known before the next rung begins, so that what is found does not depend on jobs."""

    def __init__(self, variants: Iterable[Values], first: int, rungs: int) -> None:
        self._runs = runs_of(first, rungs)
        self._left = list(islice(variants, first))
        self._asked: dict[str, int] = {}  # of this rung, in order: equal times go by it
        self._known: list[tuple[int, int, Values]] = []
        self._waiting = 0
        self.rung = 0

    def ask(self) -> Values | None:
        """Return the next variant of this rung, or the first of the next one once all of this one are known."""
        if not self._left:
            if self._waiting or self.rung + 1 >= len(self._runs):
                return None
            self.rung += 1
            best = sorted(self._known)[: self._runs[self.rung]]
            self._left = [values for _, _, values in best]
            self._known.clear()
            self._asked.clear()
            if not self._left:  # none was right
                return None
        values = self._left.pop(0)
        self._asked[key_of(values)] = len(self._asked)
        self._waiting += 1
        return values

    def tell(self, trial: Trial) -> None:
        """Take note of what came of a variant of this rung; one that is not right goes no further."""
        self._waiting -= 1
        if trial.ok:
            self._known.append((trial.time_ps, self._asked[key_of(trial.values)], dict(trial.values)))
