"""Spans by where they begin: which of many share something with another is found without going through them all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

__all__ = ["SpanIndex"]


class SpanIndex:
    """Spans that begin at `lows` and end in front of `highs`, which stay as they are."""

    __slots__ = ("_highs", "_order", "_starts", "_widest")

    def __init__(self, lows: Sequence[int], highs: Sequence[int]) -> None:
        self._highs = highs
        self._order = sorted(range(len(lows)), key=lows.__getitem__)
        self._starts = [lows[place] for place in self._order]
        self._widest = max([high - low for low, high in zip(lows, highs, strict=True)], default=0)

    def touching(self, low: int, high: int) -> list[int]:
        """Return the places, in order, of the spans that share anything with `low` to `high` - 1."""
        first = bisect_right(self._starts, low - self._widest)  # what begins before that ends before it
        found = [place for place in self._order[first : bisect_left(self._starts, high)] if self._highs[place] > low]
        found.sort()
        return found
