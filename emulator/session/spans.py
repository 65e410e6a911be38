"""How busy engines and queues were, in equal parts of time, from what the timeline's recorder keeps."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from emulator.timeline import Owner, Recorder, Track
from formats.isa import ENGINES

if TYPE_CHECKING:
    from emulator.session.session import Session

__all__ = ["Moment", "Spans", "known_ps", "moment_of", "record", "shares", "spans_of"]

Longs = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float32]


class Spans(NamedTuple):
    """Rows of engines and queues in columns of `step_ps` from `start_ps` on.

    `busy` is (owners, columns), the share of each column that words or transfers were under way, 1 at most; `waiting`
    the share that an engine had been free before its next word began; `completed` counts completions, which is all
    that a core dump tells. `now_ps` is where the session stands, `known_ps` the latest completion seen so far: what
    lies between them has been taken back, and will come again just so.
    """

    owners: tuple[Owner, ...]
    start_ps: int
    step_ps: int
    busy: Shares
    waiting: Shares
    completed: npt.NDArray[np.int64]
    now_ps: int
    known_ps: int


class Moment(NamedTuple):
    """What an engine or queue did last at a time: the last word or transfer that began before it ended."""

    owner: Owner
    start_ps: int
    end_ps: int
    pc: int
    number: int
    text: str


class _Rows:
    """Rows of one owner, in the order of completion, as far as they were ever seen."""

    __slots__ = ("columns", "engine")
    NAMES = ("start", "completed", "pc", "number", "waited")

    def __init__(self, engine: bool) -> None:
        self.engine = engine
        self.columns: tuple[array[int], ...] = tuple(array("q") for _ in self.NAMES)

    def take(self, track: Track) -> None:
        """Take over the completed rows of a track that are new."""
        # Where the device went back and words issued again, there are completions without a start: they are kept here.
        known = self.columns[3]
        first = bisect_right(track.number, known[-1]) if known else 0
        behind = min(len(track.number), len(track.start))
        for name, column in zip(self.NAMES, self.columns, strict=True):
            column.extend(getattr(track, name)[first:behind])

    def part(self, start_ps: int, end_ps: int) -> Longs:
        """Return the columns, (5, rows), of what overlaps a span or waited in it."""
        starts, ends = self.columns[:2]
        low = bisect_right(ends, start_ps)
        high = min(bisect_left(starts, end_ps) + 1, len(ends)) if self.engine else len(ends)
        found = np.array([column[low:high] for column in self.columns], np.int64).reshape(len(self.NAMES), -1)
        return found if self.engine else found[:, found[0] < end_ps]


class _Keeper:
    """What the recorder of a session's device has seen, and what of it the session has gone back before."""

    def __init__(self, session: Session) -> None:
        self.device = session.device
        self.known_ps = 0
        self._rows: dict[Owner, _Rows] = {}
        self._recorder: Recorder | None = None
        if session.post_mortem:
            self._take_dumped(session)
            return
        found = next((each for each in self.device.observers if isinstance(each, Recorder)), None)
        if found is None:
            found = Recorder(self.device)
            self.device.observers.append(found)
        self._recorder = found

    def _take_dumped(self, session: Session) -> None:
        """Take what a core dump keeps of its journal: when something completed, not when it began."""
        for entry in session.journal.log:
            core, name, pc, kind = entry.owner
            owner = Owner(core, name, "queue" if kind == "dma" else "engine")
            rows = self._rows.setdefault(owner, _Rows(owner.kind == "engine"))
            for column, value in zip(rows.columns, (entry.time_ps, entry.time_ps, pc, entry.number, 0), strict=True):
                column.append(value)
            self.known_ps = max(self.known_ps, entry.time_ps)

    def look(self) -> None:
        """Take over what is new: the recorder writes over rows where the session goes back and on again."""
        for owner, track in self._recorder.tracks.items() if self._recorder is not None else ():
            rows = self._rows.get(owner)
            if rows is None:
                rows = self._rows[owner] = _Rows(owner.kind == "engine")
            rows.take(track)
            if rows.columns[1]:
                self.known_ps = max(self.known_ps, rows.columns[1][-1])

    def rows(self, owner: Owner, start_ps: int, end_ps: int) -> Longs:
        """Return starts, ends, pcs, event numbers and waits of what overlaps a span of time."""
        found = self._rows.get(owner)
        return np.zeros((len(_Rows.NAMES), 0), np.int64) if found is None else found.part(start_ps, end_ps)


_keepers: WeakKeyDictionary[Session, _Keeper] = WeakKeyDictionary()


def _keeper(session: Session) -> _Keeper:
    found = _keepers.get(session)
    if found is None or found.device is not session.device:
        found = _keepers[session] = _Keeper(session)
    found.look()
    return found


def record(session: Session) -> None:
    """Begin to record what a session's engines and queues do; what completed before is not in its timeline."""
    _keeper(session)


def known_ps(session: Session) -> int:
    """Return the time of the latest completion that was ever seen, or where the session stands."""
    return max(_keeper(session).known_ps, session.time_ps)


def _owners(session: Session) -> tuple[Owner, ...]:
    """Return every engine that has words and every queue, in an order that does not change during a run."""
    device = session.device
    found = [Owner(core.index, name) for core in device.cores for name in ENGINES if core.engines[name].count]
    return (*found, *dict.fromkeys(Owner(queue.core, queue.name, "queue") for queue in device.queues))


def spans_of(session: Session, start_ps: int, step_ps: int, columns: int) -> Spans:
    """Return the timeline of a session in columns; the first call begins to record where nothing does yet."""
    keeper, owners = _keeper(session), _owners(session)
    busy = np.zeros((len(owners), columns), np.float32)
    waiting = np.zeros((len(owners), columns), np.float32)
    completed = np.zeros((len(owners), columns), np.int64)
    for row, owner in enumerate(owners):
        start, end, _, _, waited = keeper.rows(owner, start_ps, start_ps + step_ps * columns)
        busy[row] = shares(start, end, start_ps, step_ps, columns)
        waiting[row] = shares(start - waited, start, start_ps, step_ps, columns)
        inside = (end > start_ps) & (end <= start_ps + step_ps * columns)
        completed[row] = np.bincount((end[inside] - start_ps - 1) // step_ps, minlength=columns)
    return Spans(owners, start_ps, step_ps, busy, waiting, completed, session.time_ps, known_ps(session))


def shares(start: Longs, end: Longs, first_ps: int, step_ps: int, columns: int) -> Shares:
    """Return the share of each column of time that spans cover, spans that overlap counted once, 1 at most."""
    edges = first_ps + np.arange(columns + 1, dtype=np.int64) * step_ps
    last = int(edges[-1])
    inside = (end > first_ps) & (start < last) & (end > start)
    low, high = np.maximum(start[inside], first_ps), np.minimum(end[inside], last)
    if not low.size:
        return np.zeros(columns, np.float32)
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    # A span that begins after all before it have ended begins a new union.
    fresh = np.flatnonzero(np.concatenate(([True], low[1:] > high[:-1])))
    low, high = low[fresh], high[np.concatenate((fresh[1:], [low.size])) - 1]
    done = np.concatenate(([0], np.cumsum(high - low)))
    index = np.searchsorted(low, edges, side="right")
    begun = np.maximum(index - 1, 0)
    covered = np.where(index > 0, done[begun] + np.clip(edges - low[begun], 0, (high - low)[begun]), 0)
    return (np.diff(covered) / step_ps).astype(np.float32)


def moment_of(session: Session, owner: Owner, time_ps: int) -> Moment | None:
    """Return what an engine or queue was at, or had done last, at a time; None before its first."""
    keeper = _keeper(session)
    rows = keeper.rows(owner, -1, time_ps + 1)
    begun = np.flatnonzero(rows[0] <= time_ps)
    if not begun.size:
        return None
    at = int(begun[-1])
    starter = owner.name
    if owner.kind == "queue":
        queues = session.device.queues
        starter = next((q.engine for q in queues if (q.core, q.name) == (owner.core, owner.name)), owner.name)
    start, end, pc, number, _ = rows[:, at].tolist()
    return Moment(owner, start, end, pc, number, session.program.text(owner.core, starter, pc))
