"""Columns of one engine or queue: a row per completion, in the order of completion."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple

__all__ = ["EngineTrack", "Owner", "QueueTrack", "Rows", "Track"]

Longs = npt.NDArray[np.int64]


class Owner(NamedTuple):
    """Whose rows they are: an engine ("PE") or a DMA queue of a core; `kind` is "engine" or "queue"."""

    core: int
    name: str
    kind: str = "engine"

    @property
    def text(self) -> str:
        """Return the owner as views print it."""
        return f"nc{self.core} {self.name}"


class Rows(NamedTuple):
    """Some rows of a track as arrays; times in picoseconds, `number` the number of the completion's event."""

    start: Longs
    end: Longs
    pc: Longs
    number: Longs


def _longs() -> array[int]:
    return array("q")


class Track:
    """Rows of one owner; columns are indexed alike, `completed` and `number` have the completed rows only.

    `start` is the issue of a word, the first data of a transfer; `base` counts what had completed before recording.
    """

    __slots__ = ("base", "completed", "number", "owner", "pc", "start", "waited")

    def __init__(self, owner: Owner, base: int = 0) -> None:
        self.owner, self.base = owner, base
        self.start, self.completed, self.number = _longs(), _longs(), _longs()
        self.pc, self.waited = _longs(), _longs()

    def __len__(self) -> int:
        return len(self.number)

    def truncate(self, number: int) -> None:
        """Forget the completions from event `number` on."""
        keep = bisect_left(self.number, number)
        del self.number[keep:], self.completed[keep:]

    def segments(self, t0_ps: int, t1_ps: int) -> Rows:
        """Return the rows that overlap the time from `t0_ps` to before `t1_ps`; both orders of columns are kept."""
        count = len(self.number)
        # completions of one owner are in order, starts may not be
        low = bisect_right(self.completed, t0_ps, 0, count)
        # Starts of transfers on several engines are not in order; those of words are.
        high = bisect_left(self.start, t1_ps, 0, count) if self.owner.kind == "engine" else count
        low = min(low, high)
        found = Rows(
            *(np.array(column[low:high], np.int64) for column in (self.start, self.completed, self.pc, self.number))
        )
        if self.owner.kind == "engine":
            return found
        inside = found.start < t1_ps
        return Rows(*(column[inside] for column in found))


class EngineTrack(Track):
    """Words of an engine: `start` is the issue, `free` when the engine could issue again; `waited` lies before it.

    `position` is the index of the word in the engine's stream as it was loaded. A word completes with the one before
    it where its own latency is over earlier: engines complete in order. `early` has the ends of words that are over
    earlier, by row: profiles show those of loads of weights, and of words that take longer the first time.
    """

    __slots__ = ("early", "free", "position")

    def __init__(self, owner: Owner, base: int = 0) -> None:
        super().__init__(owner, base)
        self.free, self.position = _longs(), _longs()
        self.early: dict[int, int] = {}

    def shown_end(self, row: int, shown_ps: int | None = None) -> int:
        """Return when profiles show that the word of a row ended: one that they show for `shown_ps` as a rule."""
        return self.early.get(row, self.completed[row] if shown_ps is None else self.start[row] + shown_ps)

    def issue(self, index: int, issued: int, free: int, pc: int, position: int) -> None:
        """Note a word that issues; a row that is there already gives way, with all after it."""
        if index < len(self.start):
            for column in (self.start, self.free, self.pc, self.waited, self.position):
                del column[index:]
        before = self.free[index - 1] if index else 0
        self.waited.append(max(0, issued - before))
        self.start.append(issued)
        self.free.append(free)
        self.pc.append(pc)
        self.position.append(position)


class QueueTrack(Track):
    """Transfers of a queue: `start` is the first data, `waited` the time from the trigger to it.

    `generated` is when its descriptors began to be made, `nbytes` what it wrote, `hbm_bytes` what it moved to and from
    device memory, `pieces` its data descriptors, `transfer` its number in the order of triggers, `flags` 1 where it
    writes device memory, plus 2 where its descriptors were made at load time, plus 4 for a collective of ranks.
    """

    __slots__ = ("flags", "generated", "hbm_bytes", "nbytes", "pieces", "transfer", "triggered")
    COLUMNS = (
        "start",
        "completed",
        "number",
        "pc",
        "waited",
        "triggered",
        "generated",
        "nbytes",
        "hbm_bytes",
        "pieces",
        "transfer",
        "flags",
    )

    def __init__(self, owner: Owner, base: int = 0) -> None:
        super().__init__(owner, base)
        self.triggered, self.generated, self.nbytes, self.hbm_bytes = _longs(), _longs(), _longs(), _longs()
        self.pieces, self.transfer, self.flags = _longs(), _longs(), _longs()

    @property
    def collective(self) -> bool:
        """Return whether it is a stream of collectives: what moves there, the ranks of a machine move together."""
        return bool(self.flags) and bool(self.flags[0] & 4)

    def truncate(self, number: int) -> None:
        """Forget the completions from event `number` on."""
        self.cut(bisect_left(self.number, number))

    def cut(self, keep: int) -> None:
        """Forget the rows from index `keep` on."""
        for name in self.COLUMNS:
            del getattr(self, name)[keep:]
