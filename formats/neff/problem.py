"""What verification finds, and the collector that turns damage into findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple

__all__ = ["Problem", "collect", "error", "remark"]

# One broken rule can hold for every word of a stream; the first ones tell the story.
_SHOWN = 50


Severity = Literal["error", "warning"]


class Problem(NamedTuple):
    """One finding: severity "error" (a rule is broken) or "warning" (unusual, and nothing says that it is wrong)."""

    severity: Severity
    where: str
    message: str


def error(where: str, message: str) -> Problem:
    """Return a broken rule."""
    return Problem("error", where, message)


def remark(where: str, message: str) -> Problem:
    """Return something unusual."""
    return Problem("warning", where, message)


def collect(where: str, check: Iterable[Problem]) -> Iterator[Problem]:
    """Yield what a check finds, at most 50 of it; a FormatError in the middle is a finding too."""
    count = 0
    worst: Severity = "warning"
    try:
        for problem in check:
            count += 1
            if count <= _SHOWN:
                yield problem
            elif problem.severity == "error":
                worst = "error"
    except (FormatError, NotFoundError) as damage:
        yield error(where, str(damage))
    if count > _SHOWN:
        yield Problem(worst, where, f"and {count - _SHOWN} more of this kind")
