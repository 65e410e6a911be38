"""How busy engines and queues were, in equal parts of time, from what the timeline's recorder keeps."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

from emulator.timeline import Owner, Recorder, Track
from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from neurontools.debugger.execution import Execution, LiveExecution

__all__ = ["Activity", "Block", "Spans", "Timeline", "shares"]

Longs = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float32]


class Spans(NamedTuple):
    """Rows of engines and queues in columns of `step_ps` from `start_ps` on.

    `busy` is (owners, columns), the share of each column in which words or transfers were in progress, 1 at most;
    `waiting` the share that an engine had been free before its next word began; `completed` counts completions, which
    is all that a core dump tells. `now_ps` is where the session stands, `known_ps` the latest completion seen so far:
    what lies between them has been taken back, and will happen again in the same way.
    """

    owners: tuple[Owner, ...]
    start_ps: int
    step_ps: int
    busy: Shares
    waiting: Shares
    completed: npt.NDArray[np.int64]
    now_ps: int
    known_ps: int


class Activity(NamedTuple):
    """What an engine or queue did last at a time: the last word or transfer that began before it ended."""

    owner: Owner
    start_ps: int
    end_ps: int
    pc: int
    number: int
    text: str


class Block(NamedTuple):
    """A word or transfer that takes whole columns of time: first, the one behind the last, its name."""

    owner: int
    start: int
    end: int
    name: str


_NO_ROWS = np.zeros((5, 0), np.int64)


class _Rows:
    """Rows of one owner, in the order of completion, as far as they have been seen."""

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

    def __len__(self) -> int:
        return len(self.columns[3])

    def between(self, start_ps: int, end_ps: int) -> Longs:
        """Return the columns, (5, rows), of what overlaps a span or waited in it."""
        starts, ends = self.columns[:2]
        # Rows stand in the order of their ends. Words of an engine begin in that order too; transfers of a queue run
        # side by side.
        low = bisect_right(ends, start_ps)
        high = min(bisect_left(starts, end_ps) + 1, len(ends)) if self.engine else len(ends)
        found = self.part(low, high)
        return found if self.engine else found[:, found[0] - found[4] < end_ps]

    def part(self, low: int, high: int | None = None) -> Longs:
        """Return the columns of some rows by their indexes."""
        return np.array([column[low:high] for column in self.columns], np.int64).reshape(len(self.NAMES), -1)

    def begun(self, time_ps: int) -> int:
        """Return the index of the last row that began up to a time, -1 without one."""
        starts = self.columns[0]
        if self.engine:
            return bisect_right(starts, time_ps, 0, len(self)) - 1
        found = np.flatnonzero(np.array(starts, np.int64) <= time_ps)
        return int(found[-1]) if found.size else -1


class _Strips:
    """The columns of one timeline, kept from one look at it to the next: completions change the last ones only."""

    def __init__(self, owners: tuple[Owner, ...], start_ps: int, step_ps: int, columns: int) -> None:
        self.view = owners, start_ps, step_ps, columns
        self.busy, self.waiting = np.zeros((2, len(owners), columns), np.float32)
        self.completed = np.zeros((len(owners), columns), np.int64)
        self._known = [0] * len(owners)  # rows of each owner that the columns tell of

    def take(self, rows: dict[Owner, _Rows]) -> None:
        """Recompute the columns of all owners in which there are new completions."""
        owners, start_ps, step_ps, columns = self.view
        found = [rows.get(owner) for owner in owners]
        first, behind = columns, 0
        for index, each in enumerate(found):
            if each is not None and len(each) > self._known[index]:
                fresh = each.part(self._known[index])
                self._known[index] = len(each)
                first = min(first, (int((fresh[0] - fresh[4]).min()) - start_ps) // step_ps)
                behind = max(behind, -(-(int(fresh[1].max()) - start_ps) // step_ps))
        first, behind = max(first, 0), min(behind, columns)
        if first >= behind:
            return
        low, width = start_ps + first * step_ps, (behind - first) * step_ps
        # Each owner has a stretch of time to itself, one after the other: one pass finds the shares of all of them.
        starts, ends, waits, over = [], [], [], []
        for index, each in enumerate(found):
            # What takes no time may lie on the last edge.
            start, end, _, _, waited = each.between(low, low + width + 1) if each is not None else _NO_ROWS
            shift = index * width - low
            starts.append(np.clip(start, low, low + width) + shift)
            ends.append(np.clip(end, low, low + width) + shift)
            waits.append(np.clip(start - waited, low, low + width) + shift)
            over.append(end[(end > low) & (end <= low + width)] + shift)
        start, part, many = np.concatenate(starts), np.s_[:, first:behind], len(owners) * (behind - first)
        self.busy[part] = shares(start, np.concatenate(ends), 0, step_ps, many).reshape(len(owners), -1)
        self.waiting[part] = shares(np.concatenate(waits), start, 0, step_ps, many).reshape(len(owners), -1)
        done = (np.concatenate(over) - 1) // step_ps
        self.completed[part] = np.bincount(done, minlength=many).reshape(len(owners), -1)


class Timeline:
    """What the recorder of a device has seen, and how much of it the session has taken back.

    It is of one device: where a session begins again on another one, a new one is made. What completed before it was
    made is not in it.
    """

    def __init__(self, execution: Execution) -> None:
        self.device, self._execution = execution.device, execution
        self._known_ps = 0
        self._rows: dict[Owner, _Rows] = {}
        self._strips = self._used = _Strips((), 0, 1, 0)
        self._recorder: Recorder | None = None
        if not isinstance(execution, LiveExecution):
            self._take_log()
            return
        observers = execution.device.observers
        self._recorder = next((each for each in observers if isinstance(each, Recorder)), None)
        if self._recorder is None:
            self._recorder = Recorder(execution.device)
            observers.append(self._recorder)

    def _take_log(self) -> None:
        """Take what a core dump keeps of its journal: when something completed, not when it began."""
        for entry in () if self._execution.log is None else self._execution.log.log:
            core, name, pc, kind = entry.owner
            owner = Owner(core, name, "queue" if kind == "dma" else "engine")
            rows = self._rows.setdefault(owner, _Rows(owner.kind == "engine"))
            for column, value in zip(rows.columns, (entry.time_ps, entry.time_ps, pc, entry.number, 0), strict=True):
                column.append(value)
            self._known_ps = max(self._known_ps, entry.time_ps)

    def look(self) -> None:
        """Take over what is new: the recorder writes over rows where the session goes back and on again."""
        for owner, track in self._recorder.tracks.items() if self._recorder is not None else ():
            rows = self._rows.get(owner)
            if rows is None:
                rows = self._rows[owner] = _Rows(owner.kind == "engine")
            rows.take(track)
            if rows.columns[1]:
                self._known_ps = max(self._known_ps, rows.columns[1][-1])

    @property
    def known_ps(self) -> int:
        """Return the time of the latest completion that was ever seen, or where the session stands."""
        self.look()
        return max(self._known_ps, self._execution.time_ps)

    def _owners(self) -> tuple[Owner, ...]:
        """Return every engine that has words and every queue, core by core, in an order that stays."""
        found = [Owner(core.index, name) for core in self.device.cores for name in ENGINES if core.engines[name].count]
        found += dict.fromkeys(Owner(queue.core, queue.name, "queue") for queue in self.device.queues)
        return tuple(sorted(found, key=lambda owner: owner.core))  # engines before queues, as they stand

    def spans(self, start_ps: int, step_ps: int, columns: int) -> Spans:
        """Return engines and queues in so many columns of time."""
        known_ps, view = self.known_ps, (self._owners(), start_ps, step_ps, columns)
        if self._strips.view != view:
            self._strips = _Strips(*view)
        self._strips.take(self._rows)
        found = self._strips
        return Spans(view[0], start_ps, step_ps, found.busy.copy(), found.waiting.copy(), found.completed.copy(),
                     self._execution.time_ps, known_ps)  # fmt: skip

    def blocks(self, start_ps: int, step_ps: int, columns: int, least: int) -> tuple[Block, ...]:
        """Return what takes `least` columns at least, by the indexes of `spans`' owners."""
        self.look()
        found = []
        for number, owner in enumerate(self._owners()):
            rows = self._rows.get(owner)
            if rows is None:
                continue
            starts, ends, pcs, _, _ = rows.between(start_ps, start_ps + columns * step_ps)
            first = np.maximum(-(-(starts - start_ps) // step_ps), 0)
            behind = np.minimum((ends - start_ps) // step_ps, columns)
            free = 0
            for at in np.flatnonzero(behind - first >= least).tolist():
                if first[at] < free:
                    continue  # transfers of one queue may run side by side
                free = int(behind[at])
                kind = "dma" if owner.kind == "queue" else "instruction"
                word = self._execution.word_of((owner.core, owner.name, int(pcs[at]), kind))
                name = self._execution.program.text(*word).split(" ", 1)[0].removeprefix("PSEUDO_")
                found.append(Block(number, int(first[at]), free, name))
        return tuple(found)

    def utilisation(self, parts: int) -> dict[Owner, tuple[float, ...]]:
        """Return how busy every engine and queue was, from the beginning on in at most `parts` equal times."""
        step = 1
        while step * parts < self._execution.time_ps:
            step *= 2  # so that most looks find the columns of the one before
        view, now_ps = (self._owners(), 0, step, parts), self._execution.time_ps
        behind = max(-(-now_ps // step), 1)
        self.look()
        last = max((each.columns[3][-1] for each in self._rows.values() if len(each)), default=-1)
        if last >= self._execution.events:  # what was taken back does not count
            return {owner: self._until(owner, step, behind) for owner in view[0]}
        if self._used.view != view:
            self._used = _Strips(*view)
        self._used.take(self._rows)
        return {owner: tuple(busy[:behind].tolist()) for owner, busy in zip(view[0], self._used.busy, strict=True)}

    def _until(self, owner: Owner, step_ps: int, columns: int) -> tuple[float, ...]:
        """Return the busy shares of what has completed where the session stands."""
        rows = self._rows.get(owner)
        if rows is None:
            return (0.0,) * columns
        found = rows.part(0, bisect_left(rows.columns[3], self._execution.events))
        return tuple(shares(found[0], found[1], 0, step_ps, columns).tolist())

    def activity(self, owner: Owner, time_ps: int) -> Activity | None:
        """Return what an engine or queue was doing, or had done last, at a time; None before its first."""
        self.look()
        rows = self._rows.get(owner)
        index = -1 if rows is None else rows.begun(time_ps)
        if rows is None or index < 0:
            return None
        start, end, pc, number, _ = (column[index] for column in rows.columns)
        word = self._execution.word_of((owner.core, owner.name, pc, "dma" if owner.kind == "queue" else "instruction"))
        return Activity(owner, start, end, pc, number, self._execution.program.text(*word))


def shares(start: Longs, end: Longs, first_ps: int, step_ps: int, columns: int) -> Shares:
    """Return the share of each column of time that spans cover, spans that overlap counted once, 1 at most."""
    low, high = np.maximum(start, first_ps), np.minimum(end, first_ps + columns * step_ps)
    inside = high > low
    low, high = low[inside], high[inside]
    if not low.size:
        return np.zeros(columns, np.float32)
    if (low[1:] < low[:-1]).any():  # words of an engine are in order
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
    high = np.maximum.accumulate(high)
    # A span that begins after all before it have ended begins a new union; one of nothing stands before the first.
    ends = np.append(low[1:] > high[:-1], True)
    begins = np.append(True, ends[:-1])
    low = np.append(first_ps - 1, low[begins])
    length = np.append(0, high[ends] - low[1:])
    before = length.cumsum() - length
    # Not `arange` with a step: it counts in floating point, and long steps would lose the last edge.
    edges = first_ps + step_ps * np.arange(columns + 1)
    index = low.searchsorted(edges, side="right") - 1
    covered = before[index] + np.minimum(edges - low[index], length[index])
    found: Shares = ((covered[1:] - covered[:-1]) / step_ps).astype(np.float32)
    return found
