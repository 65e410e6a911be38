"""Values by the bytes that they belong to: those that may share some with others are found among few."""

from __future__ import annotations

from bisect import bisect_left
from typing import Generic, TypeVar

from formats.regions import Pattern

__all__ = ["Combs", "Spans"]

Value = TypeVar("Value")


class Spans(Generic[Value]):
    """Ranges by the bits of their lengths, in order: one that shares a byte with another begins just before its end."""

    __slots__ = ("_by_length",)

    def __init__(self) -> None:
        self._by_length: dict[int, tuple[list[int], list[Value], list[int]]] = {}

    def add(self, low: int, high: int, value: Value) -> None:
        """Take a range and what belongs to it."""
        bits = (high - low).bit_length()
        found = self._by_length.get(bits)
        if found is None:
            found = self._by_length[bits] = [], [], []
        lows, values, highs = found
        place = bisect_left(lows, low)
        lows.insert(place, low)
        values.insert(place, value)
        highs.insert(place, high)

    def near(self, low: int, high: int) -> list[Value]:
        """Return what belongs to ranges that share a byte with another, in any order."""
        near: list[Value] = []
        for bits, (lows, values, highs) in self._by_length.items():
            first, behind = bisect_left(lows, low + 1 - (1 << bits)), bisect_left(lows, high)
            if first < behind:
                for place in range(first, behind):
                    if highs[place] > low:
                        near.append(values[place])
        return near

    def clear(self) -> None:
        """Forget all of them."""
        self._by_length.clear()


_NARROW = 8  # bytes of a tooth


class Combs(Generic[Value]):
    """Ranges with patterns: columns of a tile, which many words go through one by one, lie between one another."""

    __slots__ = ("_by_comb", "_by_teeth", "_others")

    def __init__(self) -> None:
        self._others: Spans[Value] = Spans()
        # By step and run of a pattern of one dimension, and by that and where in a step its teeth are.
        self._by_comb: dict[tuple[int, int], Spans[Value]] = {}
        self._by_teeth: dict[tuple[int, int, int], Spans[Value]] = {}

    def add(self, low: int, high: int, pattern: Pattern | None, value: Value) -> None:
        """Take a range with its pattern, and what belongs to it."""
        comb = _comb(pattern)
        if comb is None:
            self._others.add(low, high, value)
            return
        step, run = comb
        self._by_comb.setdefault(comb, Spans()).add(low, high, value)
        self._by_teeth.setdefault((step, run, low % step), Spans()).add(low, high, value)

    def near(self, low: int, high: int, pattern: Pattern | None) -> list[Value]:
        """Return what belongs to ranges that share a byte with another, but for some whose patterns do not."""
        near = self._others.near(low, high)
        if self._by_comb:
            mine = _comb(pattern)
            for comb, spans in self._by_comb.items():
                if comb != mine:
                    near += spans.near(low, high)
            if mine is not None:
                step, run = mine
                for place in range(low - run + 1, low + run):
                    teeth = self._by_teeth.get((step, run, place % step))
                    if teeth is not None:
                        near += teeth.near(low, high)
        return near

    def clear(self) -> None:
        """Forget all of them."""
        for spans in (self._others, *self._by_comb.values(), *self._by_teeth.values()):
            spans.clear()


def _comb(pattern: Pattern | None) -> tuple[int, int] | None:
    """Return step and run of a pattern of one dimension with narrow teeth."""
    if pattern is None or len(pattern[0]) != 1:
        return None
    step, run = pattern[0][0][0], pattern[1]
    return (step, run) if run <= _NARROW and 2 * run <= step else None
