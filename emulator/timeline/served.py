"""When each DMA engine of a core served which transfer, kept as the transfers' plans have it.

Engines that go alike share a piece of a plan: times on engine 0 and steps from engine to engine.  Pieces are kept, a
few of each transfer, and become a row per engine when somebody looks; of transfers that met another, one piece with
the ends of all engines.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from emulator.dma import served
from emulator.dma.work import Piece

__all__ = ["Served"]

_NUMBERS = 8  # of a piece: its first and last engine, and three times with their steps
_LISTED = -(1 << 62)  # in place of the last step: ends are not even, and their time is where they begin among `_ends`
_UNKNOWN = -1  # a time of a transfer that is under way


class Served:
    """The transfers of one core in the order of their numbers; `width` is the most engines that any of them has."""

    __slots__ = ("_ends", "_engines", "_first", "_last", "_pieces", "transfer", "width")

    def __init__(self) -> None:
        self.transfer, self._engines = array("q"), array("q")
        # Of each transfer: which pieces are its own.
        self._first, self._last = array("q"), array("q")
        self._pieces, self._ends = array("q"), array("q")
        self.width = 0

    def begin(self, transfer: int, engines: int) -> None:
        """Note a transfer that so many engines will serve; whatever has its number or a later one is forgotten."""
        numbers = self.transfer
        if numbers and numbers[-1] >= transfer:
            keep = bisect_left(numbers, transfer)
            for column in (numbers, self._engines, self._first, self._last):
                del column[keep:]
        numbers.append(transfer)
        self._engines.append(engines)
        self._first.append(0)
        self._last.append(0)
        if engines > self.width:
            self.width = engines

    def end(self, transfer: int, pieces: Iterable[Piece]) -> int | None:
        """Note when engines served a transfer; return when the first began, None where none did or nobody began it."""
        numbers = self.transfer
        row = len(numbers) - 1
        if row < 0 or numbers[row] != transfer:  # others were triggered since
            row = bisect_left(numbers, transfer)
            if row == len(numbers) or numbers[row] != transfer:
                return None
        kept = self._pieces
        self._first[row] = len(kept) // _NUMBERS
        begun: int | None
        if isinstance(pieces, served.Served) and pieces.starts is None:
            whole = pieces.whole
            first, last, ready, before, end = whole
            if pieces.ends is not None:
                end = len(self._ends), _LISTED
                self._ends.fromlist(pieces.ends)
            kept.fromlist([first, last, *ready, *before, *end])
            begun = whole.begun_ps
        else:
            found = []
            for piece in pieces:
                first, last, ready, before, end = piece
                kept.fromlist([first, last, *ready, *before, *end])
                found.append(piece.begun_ps)
            begun = min(found, default=None)
        self._last[row] = len(kept) // _NUMBERS
        return begun

    def columns(self, engine: int) -> tuple[array[int], array[int], array[int]]:
        """Return transfers of an engine, when each began and ended; -1 where that is not known."""
        rows = np.flatnonzero(np.frombuffer(self._engines, np.int64) > engine)
        number = np.frombuffer(self.transfer, np.int64)[rows]
        firsts, counts = np.frombuffer(self._first, np.int64)[rows], np.frombuffer(self._last, np.int64)[rows]
        counts = counts - firsts
        start, end = (np.full(rows.size, _UNKNOWN, np.int64) for _ in range(2))
        pieces, ends = np.frombuffer(self._pieces, np.int64).reshape(-1, _NUMBERS), np.frombuffer(self._ends, np.int64)
        for place in range(int(counts.max(initial=0))):
            there = np.flatnonzero(counts > place)
            own = pieces[firsts[there] + place]
            mine = (own[:, 0] <= engine) & (engine <= own[:, 1])
            there, (_, _, ready, later, before, behind, ended, step) = there[mine], own[mine].T
            start[there] = np.maximum(ready + later * engine, before + behind * engine)
            even = step != _LISTED
            end[there[even]] = ended[even] + step[even] * engine
            end[there[~even]] = ends[ended[~even] + engine]
        return _longs(number), _longs(start), _longs(end)


def _longs(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> array[int]:
    made = array("q")
    made.frombytes(numbers.tobytes())
    return made
