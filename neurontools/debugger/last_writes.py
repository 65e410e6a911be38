"""Which event wrote last into each 64-byte block of SBUF and PSUM, read off the journal: a run pays nothing for it.

Runs are deterministic, so a block holds the same bytes whenever the same event wrote there last: what is computed
from a block stays valid until this number changes, forwards and back.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple
from formats.regions import Region

if TYPE_CHECKING:
    from neurontools.debugger.event_log import EventLog

__all__ = ["BLOCK", "NEVER", "Box", "LastWrites", "blocks_of"]

BLOCK = 64  # bytes
NEVER = -1  # number of a block that nothing wrote
_FAR = 1 << 30  # beyond the end of any memory
_APART = 4096  # events between two copies that going back begins from, at first
_COPIES = 8  # kept; beyond that every second one goes, and they are taken half as often
_ELEMENTS = 1 << 16  # of a strided region whose blocks are worked out one by one
_BOXES = 64  # kept: who has not looked for longer looks at everything

Numbers = npt.NDArray[np.int32]
Pattern = tuple[tuple[tuple[int, int], ...], int]
_Key = tuple[str, int]


class Box(NamedTuple):
    """Partitions from `top` to below `bottom`, blocks from `left` to below `right`: where numbers changed at a turn."""

    turn: int
    top: int
    bottom: int
    left: int
    right: int


class LastWrites:
    """The numbers of one journal's device, brought up to date, or back, when they are asked for."""

    def __init__(self, journal: EventLog) -> None:
        self.journal = journal
        self._at = 0
        self._numbers: dict[_Key, Numbers] = {}
        self._copies: list[tuple[int, dict[_Key, Numbers]]] = []
        self._apart = _APART
        self._turn = self._back = 0  # counts what brought numbers up to date; the last one that went back
        self._boxes: dict[_Key, deque[Box]] = {}

    def numbers(self, space: str, core: int) -> Numbers:
        """Return (partitions, blocks) numbers of events, NEVER where nothing wrote; a view that stays up to date."""
        self._follow(len(self.journal.log))
        return self._array((space, core))

    def changed(self, space: str, core: int, since: int) -> Box:
        """Return a part of the memory that holds all `numbers` that have changed since a turn, -1 for the first one."""
        self._follow(len(self.journal.log))
        boxes = self._boxes.get((space, core)) or deque()
        # Whoever looked last before the session went back, or before what the boxes remember, looks at everything.
        if since < self._back or (len(boxes) == _BOXES and since < boxes[0].turn):
            return Box(self._turn, 0, _FAR, 0, _FAR)
        fresh = [box for box in boxes if box.turn > since]
        if not fresh:
            return Box(self._turn, 0, 0, 0, 0)
        return Box(self._turn, min(box.top for box in fresh), max(box.bottom for box in fresh),
                   min(box.left for box in fresh), max(box.right for box in fresh))  # fmt: skip

    def _array(self, key: _Key) -> Numbers:
        found = self._numbers.get(key)
        if found is None:
            rows, width = self.journal.device.cores[key[1]].memory.array(key[0]).shape
            found = self._numbers[key] = np.full((rows, -(-width // BLOCK)), NEVER, np.int32)
        return found

    def _follow(self, target: int) -> None:
        if target == self._at:
            return
        self._turn += 1
        if target < self._at:
            self._back = self._turn
            # Copies of what has been taken back are of a future that `set` may change.
            while self._copies and self._copies[-1][0] > target:
                self._copies.pop()
            self._at, kept = self._copies[-1] if self._copies else (0, {})
            for key, array in self._numbers.items():
                if key in kept:
                    np.copyto(array, kept[key])
                else:
                    array.fill(NEVER)
        while self._at < target:
            last = self._copies[-1][0] if self._copies else 0
            stop = min(target, last + self._apart)
            self._take(self._at, stop)
            self._at = stop
            if stop == last + self._apart:
                self._copy()

    def _take(self, start: int, stop: int) -> None:
        """Take over some events; of those that wrote the same region only the last one counts."""
        latest: dict[Region, int] = {}
        for entry in self.journal.log[start:stop]:
            for region in entry.regions:
                if region.space != "HBM":
                    latest[region] = entry.number
        extents: dict[_Key, list[tuple[int, int, int, int]]] = {}
        # Ascending: where regions overlap, the later number has to stay.
        for region, number in sorted(latest.items(), key=itemgetter(1)):
            key, behind = (region.space, region.core), region.behind
            self._array(key)[region.first : behind, blocks_of(*region[4:])] = number
            right = -(-region.end // BLOCK)
            extents.setdefault(key, []).append((region.first, behind, region.byte // BLOCK, right))
        for key, found in extents.items():
            tops, bottoms, lefts, rights = zip(*found, strict=True)
            boxes = self._boxes.setdefault(key, deque(maxlen=_BOXES))
            boxes.append(Box(self._turn, min(tops), max(bottoms), min(lefts), max(rights)))

    def _copy(self) -> None:
        self._copies.append((self._at, {key: array.copy() for key, array in self._numbers.items()}))
        if len(self._copies) > _COPIES:
            del self._copies[::2]
            self._apart *= 2


@lru_cache(1 << 14)
def blocks_of(byte: int, nbytes: int, pattern: Pattern | None, unit: int = BLOCK) -> slice | npt.NDArray[np.intp]:
    """Return the blocks of `unit` bytes that a range of bytes touches; `pattern` as in `Region`."""
    whole = slice(byte // unit, -(-(byte + nbytes) // unit))
    if pattern is None:
        return whole
    dims, run = pattern
    starts = np.full(1, byte, np.int64)
    for step, count in dims:
        if starts.size * count > _ELEMENTS:
            return whole
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
    # How many runs begin and end in each block: the running sum is above zero in blocks that a run touches.
    touched = np.zeros(whole.stop - whole.start + 1, np.int64)
    np.add.at(touched, starts // unit - whole.start, 1)
    np.add.at(touched, (starts + run - 1) // unit - whole.start + 1, -1)
    return np.flatnonzero(np.cumsum(touched)[:-1]) + whole.start
