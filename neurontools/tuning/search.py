"""Which variants a search tries next: all of them, some by chance, or those that what is known speaks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

from formats.errors import UnsupportedError
from neurontools.tuning.halving import Halving
from neurontools.tuning.results import Trial
from neurontools.tuning.space import Space, Values, all_of, key_of, shuffled
from neurontools.version import install_with

__all__ = ["Search", "search_of"]

_PATIENCE = 200  # suggestions in a row that are known already, after which a search takes one by chance


class Search(Protocol):
    """One way through a space; `rung` is the problem that the variant asked for last is to run on (`Halving`)."""

    rung: int

    def ask(self) -> Values | None:
        """Return a variant that was not asked for yet; None where there is none, or none before something is told."""
        ...

    def tell(self, trial: Trial) -> None:
        """Take note of what came of a variant."""
        ...


def search_of(method: str, space: Space, seed: int, most: int | None = None, rungs: int = 0) -> Search:
    """Return a search; UnsupportedError for one that needs a package which is not installed.

    Successive halving tries `most` variants, on the first of `rungs` problems that are smaller than the script's.
    """
    if method == "halving":
        whole = math.prod(map(len, space.values()))
        return Halving(shuffled(space, seed), whole if most is None else most, rungs)
    if method == "grid":
        return _Listed(all_of(space))
    if method == "random":
        return _Listed(shuffled(space, seed))
    return _Climb(space, seed) if method == "climb" else _Tpe(space, seed)


class _Listed:
    """Variants in an order that results do not change."""

    rung = 0

    def __init__(self, variants: Iterator[Values]) -> None:
        self._variants = variants

    def ask(self) -> Values | None:
        return next(self._variants, None)

    def tell(self, trial: Trial) -> None:
        """Nothing depends on it."""


class _Climb:
    """One parameter after the other, all its values with the best of the rest; from chance again when none helps."""

    rung = 0

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._asked: set[str] = set()
        self._waiting = 0
        self._others = shuffled(space, seed)
        self._best = {name: values[0] for name, values in space.items()}
        self._best_ps = math.inf
        self._left: list[Values] = [dict(self._best)]
        self._turns = 0  # parameters in a row that brought nothing

    def ask(self) -> Values | None:
        while True:
            while self._left:
                values = self._left.pop(0)
                if (key := key_of(values)) not in self._asked:
                    self._asked.add(key)
                    self._waiting += 1
                    return values
            # What is next depends on which of these was best.
            if self._waiting:
                return None
            if not self._next():
                return None

    def _next(self) -> bool:
        """Line up the values of the next parameter; from another start where no parameter helps any more."""
        names = list(self._space)
        if self._turns < len(names):
            # The parameter that was tried goes to the end, so that all have their turn.
            name = names[0]
            self._space = {**{one: self._space[one] for one in names[1:]}, name: self._space[name]}
            self._turns += 1
            self._left = [{**self._best, name: value} for value in self._space[name]]
            return True
        other = next(self._others, None)
        if other is None:
            return False
        self._left = [other]
        return True

    def tell(self, trial: Trial) -> None:
        self._waiting -= 1
        if trial.ok and trial.time_ps < self._best_ps:
            self._best, self._best_ps, self._turns = dict(trial.values), trial.time_ps, 0


class _Tpe:
    """Optuna's tree of Parzen estimators over the values as categories."""

    rung = 0

    def __init__(self, space: Space, seed: int) -> None:
        try:
            import optuna  # deferred: optional optuna
        except ImportError:
            raise UnsupportedError(f"--method tpe needs Optuna: {install_with('tune')}") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._states = optuna.trial.TrialState
        # Categories are numbers: values may be of any kind.
        self._space = space
        self._kinds: dict[str, Any] = {name: optuna.distributions.CategoricalDistribution(list(range(len(values))))
                       for name, values in space.items()}  # fmt: skip
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=5, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(sampler=sampler)
        self._open: dict[str, Any] = {}
        self._known: dict[str, float] = {}
        self._others = shuffled(space, seed)

    def ask(self) -> Values | None:
        for _ in range(_PATIENCE):
            asked = self._study.ask(self._kinds)
            values = {name: self._space[name][asked.params[name]] for name in self._space}
            key = key_of(values)
            if key not in self._known and key not in self._open:
                self._open[key] = asked
                return values
            # Told the same again, the sampler moves on; one that is still open counts as failed.
            self._close(asked, self._known.get(key))
        for values in self._others:
            key = key_of(values)
            if key not in self._known and key not in self._open:
                numbers = {name: self._space[name].index(value) for name, value in values.items()}
                # Through the study, so that the sampler learns from a variant it did not choose.
                self._study.enqueue_trial(numbers)
                self._open[key] = self._study.ask(self._kinds)
                return values
        return None

    def tell(self, trial: Trial) -> None:
        key = key_of(trial.values)
        self._known[key] = float(trial.time_ps) if trial.ok else math.inf
        self._close(self._open.pop(key), self._known[key])

    def _close(self, asked: Any, value: float | None) -> None:
        if value is None or math.isinf(value):
            self._study.tell(asked, state=self._states.FAIL)
        else:
            self._study.tell(asked, value)
