"""The names of engines and queues on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neurontools.debugger.names import is_engine, short_engine
from neurontools.text.table import ranges

__all__ = ["SPARKS", "label", "number_ranges", "sparkline"]

SPARKS = 8  # bars of a sparkline


def label(name: str) -> str:
    """Return the short name of an engine in capitals, the name of a queue as it is."""
    return short_engine(name).upper() if is_engine(name) else name


def sparkline(shares: Sequence[float] | None) -> str:
    """Return shares of equal times as bars with their mean in percent; blanks where nothing is known."""
    if not shares:
        return " " * (SPARKS + 5)
    bars = "".join(" ▁▂▃▄▅▆▇█"[min(-int(-share * 8 // 1), 8)] for share in shares[:SPARKS])
    return f"{bars:<{SPARKS}}{sum(shares) / len(shares) * 100:>4.0f}%"


def number_ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers as ranges, "8-23" or "4,8-11"."""
    found = sorted(set(numbers))
    return ranges(found, ",") if found else ""
