"""Columns of one engine or queue: a row per completion, in the order of completion."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple

__all__ = ["EngineTrack", "Owner", "QueueTrack", "Rows", "Track", "Unread"]

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


class Unread:
    """What a recorder has noted and nobody has looked at; `read` makes rows of the notes."""

    __slots__ = ("notes", "read")

    def __init__(self, notes: Sequence[object] = (), read: Callable[[], None] | None = None) -> None:
        self.notes, self.read = notes, read


class Columns:
    """Rows of numbers that become columns when somebody looks: to append to a dozen arrays takes far longer.

    `add` takes a row; `fresh` are those that are not in the `columns` yet, and there may be more in what is `unread`.
    """

    __slots__ = ("add", "columns", "fresh", "unread")

    def __init__(self, width: int, unread: Unread) -> None:
        self.columns = tuple([array("q") for _ in range(width)])
        self.unread = unread
        self.fresh: list[tuple[int, ...]] = []
        self.add = self.fresh.append

    def settled(self) -> tuple[array[int], ...]:
        """Return the columns, with all rows in them."""
        if self.unread.notes and self.unread.read is not None:
            self.unread.read()
        if self.fresh:
            for column, values in zip(self.columns, zip(*self.fresh, strict=True), strict=True):
                column.extend(values)
            self.fresh.clear()
        return self.columns

    def cut(self, keep: int) -> None:
        """Forget the rows from index `keep` on."""
        for column in self.settled():
            del column[keep:]


_READ = Unread()


class Column:
    """A column of some rows of the object that it is an attribute of, by the rows' name and its place among them."""

    def __init__(self, rows: str, place: int) -> None:
        self._rows, self._place = rows, place

    def __get__(self, owner: object, cls: type) -> array[int]:
        rows: Columns = getattr(owner, self._rows)
        # Whoever looks, looks often.
        return (rows.settled() if rows.unread.notes or rows.fresh else rows.columns)[self._place]


class Track:
    """Rows of one owner; columns are indexed alike, `completed` and `number` have the completed rows only.

    `start` is the issue of a word, the first data of a transfer; `base` counts what had completed before recording.
    `begun` and `ended` take what is noted of a beginning and an end, in the order of their columns.
    """

    __slots__ = ("base", "begun", "ended", "owner")
    start, pc, waited = Column("begun", 0), Column("begun", 1), Column("begun", 2)
    completed, number = Column("ended", 0), Column("ended", 1)

    def __init__(self, owner: Owner, base: int = 0, unread: Unread = _READ) -> None:
        self.owner, self.base = owner, base
        self.begun, self.ended = Columns(5, unread), Columns(2, unread)

    def settle(self) -> None:
        """Have all rows in the columns."""
        self.begun.settled()
        self.ended.settled()

    def __len__(self) -> int:
        return len(self.number)

    def truncate(self, number: int) -> None:
        """Forget the completions from event `number` on."""
        self.ended.cut(bisect_left(self.number, number))

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

    __slots__ = ("early", "free_ps", "issued")
    free, position = Column("begun", 3), Column("begun", 4)

    def __init__(self, owner: Owner, base: int = 0, unread: Unread = _READ) -> None:
        super().__init__(owner, base, unread)
        self.early: dict[int, int] = {}
        self.issued = self.free_ps = 0  # how many rows have begun, and `free` of the last one

    def shown_end(self, row: int, shown_ps: int | None = None) -> int:
        """Return when profiles show that the word of a row ended: one that they show for `shown_ps` as a rule."""
        return self.early.get(row, self.completed[row] if shown_ps is None else self.start[row] + shown_ps)

    def issue(self, index: int, issued: int, free: int, pc: int, position: int) -> None:
        """Note a word that issues; a row that is there already gives way, with all after it."""
        if index < self.issued:
            self.begun.cut(index)
            self.free_ps = self.free[-1] if index else 0
        before, self.free_ps, self.issued = self.free_ps, free, index + 1
        self.begun.add((issued, pc, max(0, issued - before), free, position))


class QueueTrack(Track):
    """Transfers of a queue: `start` is the first data, `waited` the time from the trigger to it.

    `generated` is when its descriptors began to be made, `nbytes` what it wrote, `hbm_bytes` what it moved to and from
    device memory, `pieces` its data descriptors, `transfer` its number in the order of triggers, `flags` 1 where it
    writes device memory, plus 2 where its descriptors were made at load time, plus 4 for a collective of ranks.
    """

    __slots__ = ()
    completed, number, start, pc = (Column("ended", place) for place in range(4))
    waited, triggered, generated, nbytes = (Column("ended", place) for place in range(4, 8))
    hbm_bytes, pieces, transfer, flags = (Column("ended", place) for place in range(8, 12))

    def __init__(self, owner: Owner, unread: Unread) -> None:
        super().__init__(owner, 0, unread)
        self.ended = Columns(12, unread)

    @property
    def collective(self) -> bool:
        """Return whether it is a stream of collectives: what moves there, the ranks of a machine move together."""
        return bool(self.flags) and bool(self.flags[0] & 4)
