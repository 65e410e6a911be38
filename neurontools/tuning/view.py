"""A search as text: the best variants, what each value of each parameter is good for, and what the best one changes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from formats.times import duration
from neurontools.text.table import bold, count, table
from neurontools.tuning.results import Tuned
from neurontools.tuning.space import SCHEDULE

__all__ = ["lines"]

_SHOWN = 10
_BAR = 40


def lines(tuned: Tuned) -> Iterator[str]:
    """Yield the report for people."""
    last = len(tuned.rungs)
    right = sorted(
        (trial for trial in tuned.trials if trial.ok and trial.rung == last), key=lambda trial: trial.time_ps
    )
    wrong = [trial for trial in tuned.trials if not trial.ok]
    first = [trial for trial in tuned.trials if not trial.rung]
    yield (f"{tuned.file}: {len(first)} of {count(tuned.variants, 'variant')} tried ({tuned.method}), "
           f"{sum(trial.ok for trial in first)} right"
           + (f", {tuned.resumed} from the search before" if tuned.resumed else ""))  # fmt: skip
    for rung, arguments in enumerate([*tuned.rungs, None] if tuned.rungs else ()):
        tried = [trial for trial in tuned.trials if trial.rung == rung]
        what = "the script's own arguments" if arguments is None else shlex.join(arguments)
        yield f"  rung {rung}, {what}: {len(tried)} tried, {sum(trial.ok for trial in tried)} right"
    names = list(tuned.parameters)
    yield ""
    rows = [[duration(trial.time_ps), *(str(trial.values.get(name)) for name in names)] for trial in right[:_SHOWN]]
    yield from table(["time", *names], rows)
    for name, values in tuned.parameters.items():
        yield ""
        yield bold(f"best with each {name}" + (", on rung 0" if tuned.rungs else ""))
        yield from _bars(tuned, name, values)
    if wrong:
        yield ""
        yield bold("not right")
        states: dict[str, list[str]] = {}
        for trial in wrong:
            states.setdefault(trial.state, []).append(trial.message)
        for state, messages in states.items():
            yield f"{len(messages)} {state}: {messages[0]}"
    yield ""
    yield from _best(tuned)


def _bars(tuned: Tuned, name: str, values: list[Any]) -> Iterator[str]:
    """Yield a bar for the best time with each value of a parameter; longer is slower."""
    found = {
        str(value): min(
            (one.time_ps for one in tuned.trials if one.ok and not one.rung and one.values.get(name) == value),
            default=0,
        )
        for value in values
    }
    longest, width = max(found.values(), default=0) or 1, max(map(len, found))
    for value, time_ps in found.items():
        bar = "#" * max(round(_BAR * time_ps / longest), 1) if time_ps else ""
        yield f"{value.rjust(width)}  {bar} {duration(time_ps) if time_ps else 'not tried, or not right'}"


def _best(tuned: Tuned) -> Iterator[str]:
    """Yield what the best variant changes, and why it is better."""
    best, before = tuned.best, tuned.baseline
    if best is None or best.time_ps >= before.time_ps:
        yield f"no variant is faster than the script as it stands ({duration(before.time_ps)})"
        return
    share = 100 * (before.time_ps - best.time_ps) / before.time_ps
    yield bold(f"{duration(before.time_ps)} -> {duration(best.time_ps)}, {share:.1f} % less")
    yield f"--- {tuned.file} as it stands"
    yield f"+++ {tuned.file} best variant"
    for name, value in best.values.items():
        if name != SCHEDULE:
            yield f"+ {name}={value!r}"
        elif value == "on":
            yield f"+ {name}"
    yield f"before: {before.bottleneck}"
    yield f"after:  {best.bottleneck}"
