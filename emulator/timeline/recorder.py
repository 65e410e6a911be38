"""The recorder: one row per completion in compact columns, cheap enough to leave on while a debugger runs.

A row says what came when. Why it came then is found in the same columns afterwards, see `emulator.timeline.cause`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

from emulator.cost.contention import Grant
from emulator.device import Device
from emulator.dma.collectives import CollectiveTransfer
from emulator.dma.transfer import Transfer, TransferPlan
from emulator.events import SemaphoreChange
from emulator.loaded import LoadedWord
from emulator.observers import Occupation, Resource
from emulator.sequencer import Sequencer
from emulator.timeline.served import Served
from emulator.timeline.track import Column, Columns, EngineTrack, Owner, QueueTrack, Rows, Track, Unread
from formats.named_tuple import NamedTuple

__all__ = ["Changes", "Hold", "Holds", "Owner", "PortUse", "Recorder"]

_NONE = array("q")
_TOGETHER = 1 << 12  # completions after which notes become columns
_ISSUED, _EXECUTED, _PLANNED, _MOVED = range(4)  # kinds of notes
Counter = tuple[int, str, int]  # core, "semaphore" or "event", number


class Hold(NamedTuple):
    """One occupation of a shared resource by a transfer."""

    transfer: int
    start_ps: int
    end_ps: int


class Holds:
    """Who occupied one resource when, in the order in which it was given out."""

    __slots__ = ("end", "start", "transfer")

    def __init__(self, *columns: array[int]) -> None:
        self.transfer, self.start, self.end = columns or (array("q"), array("q"), array("q"))

    def __len__(self) -> int:
        return len(self.transfer)

    def __getitem__(self, index: int) -> Hold:
        return Hold(self.transfer[index], self.start[index], self.end[index])

    def cut(self, transfer: int) -> None:
        """Forget what transfers from this number on were given; they are numbered in that order."""
        keep = bisect_left(self.transfer, transfer)
        del self.transfer[keep:], self.start[keep:], self.end[keep:]


class PortUse(NamedTuple):
    """One use of a memory port by the word at a row."""

    owner: Owner
    row: int
    start_ps: int
    end_ps: int


class Changes:
    """What a semaphore or event went through: value after each change, when, and by which event."""

    __slots__ = ("rows",)
    number, time, value = Column("rows", 0), Column("rows", 1), Column("rows", 2)

    def __init__(self, unread: Unread) -> None:
        self.rows = Columns(3, unread)

    def truncate(self, number: int) -> None:
        """Forget the changes from event `number` on."""
        self.rows.cut(bisect_left(self.number, number))


class Recorder:
    """An observer that keeps when every word and transfer started and completed; append it to `device.observers`.

    `tracks` are rows by owner, `changes` the history of semaphores and events, `holds` that of DMA engines and HBM
    stacks, `ports` that of memory ports by core and number, `late` which words came late to a port.
    Where the device goes back in time, `truncate`; where it then goes forward again, rows are written over.

    While the device runs nothing but notes is made, in the order in which things happen; they are read when somebody
    looks: most programs are short, and to make all of these takes longer than to run one.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._notes: list[tuple[Any, ...]] = []
        self._note = self._notes.append
        self._unread = Unread(self._notes)
        self._bases: dict[Sequencer, int] = {}  # what engines had completed before
        self._tracks: dict[Owner, Track] = {}
        self._changes: dict[Counter, Changes] = {}
        self._holds: dict[Resource, Holds] = {}  # those of DMA engines as they were last asked for
        self._served: dict[int, Served] = {}  # by core
        self._stale = False  # whether transfers were served since
        self._ports: dict[tuple[int, int], list[PortUse]] = {}
        self._late: dict[tuple[Owner, int], tuple[int, tuple[int, ...]]] = {}  # when it got which ports
        self._engines: dict[Sequencer, EngineTrack] = {}
        self._queues: dict[tuple[int, str], QueueTrack] = {}
        self._last = -1
        for core in device.cores:
            for engine in core.engines.values():
                if engine.completed or engine.flights:
                    self._begin_with(engine)

    def _begin_with(self, engine: Sequencer) -> None:
        """Note what an engine that has been under way has issued."""
        base = self._bases[engine] = engine.completed
        behind = len(engine.flights)
        for index, (loaded, bound, issued, _) in enumerate(engine.flights):
            free = engine.free_ps if index == behind - 1 else issued + bound.action.interval
            position = engine.position - behind + index
            self._note((_ISSUED, engine, loaded.pc, issued, free, position, base + index, None, None))

    # --- what the device reports -------------------------------------------------------------------------------------

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Note a word that issues."""
        contention = engine.core.contention
        # The device leaves here what is told of the word that issues just now, and nobody else reads it: when it is
        # over, where that is before it completes in order (see `EngineTrack`), and what it was granted.
        early, granted = contention.array.loaded_ps, contention.granted
        if early is not None:
            contention.array.loaded_ps = None
        elif contention.own_end_ps is not None:
            early, contention.own_end_ps = contention.own_end_ps, None
        if granted is not None:
            contention.granted = None
        index = engine.completed + len(engine.flights) - 1
        self._note((_ISSUED, engine, loaded.pc, now, engine.free_ps, engine.position - 1, index, early, granted))

    def on_plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Note a triggered transfer, and what it is going to occupy of device memory."""
        self._note((_PLANNED, transfer, memory))

    def on_word(self, engine: Sequencer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a word that completed and the semaphores that it changed."""
        self._note((_EXECUTED, engine, number, now, changes))
        if not (number + 1) % _TOGETHER:
            self._read()

    def on_transfer(self, transfer: Transfer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a transfer that completed and the semaphores that it changed."""
        # Its plan is that for good: until now transfers of other queues could move its times.
        self._note((_MOVED, transfer, number, now, changes, transfer.plan))
        if not (number + 1) % _TOGETHER:
            self._read()

    # --- reading what was noted --------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Have all that was noted in columns, which take a fifth of its memory."""
        if not self._tracks:
            self._make_tracks()
        notes = self._notes.copy()
        self._notes.clear()
        engines = self._engines
        for note in notes:
            kind = note[0]
            if kind == _ISSUED:
                _, engine, pc, now, free, position, index, early, granted = note
                track = engines[engine]
                index -= track.base
                if index == track.issued:  # the usual case, without a call
                    before = track.free_ps
                    track.issued, track.free_ps = index + 1, free
                    track.begun.add((now, pc, now - before if now > before else 0, free, position))
                else:
                    self._forget_ports(track.owner, index)
                    track.issue(index, now, free, pc, position)
                if early is not None:
                    track.early[index] = early
                if granted is not None:
                    self._grant(track.owner, index, now, granted)
            elif kind == _EXECUTED:
                _, engine, number, now, changes = note
                if number <= self._last:
                    self._cut(number)
                self._last = number
                engines[engine].ended.add((now, number))
                if changes:
                    self._change(number, now, changes)
            elif kind == _PLANNED:
                self._plan(note[1], note[2])
            else:
                _, transfer, number, now, changes, plan = note
                self._move(transfer, number, now, changes, plan)
        for each in self._tracks.values():
            each.settle()
        for changed in self._changes.values():
            changed.rows.settled()

    def _make_tracks(self) -> None:
        """Have a track for each engine, with or without rows."""
        self._unread.read = self._read
        for core in self.device.cores:
            for name, engine in core.engines.items():
                owner = Owner(core.index, name)
                track = EngineTrack(owner, self._bases.get(engine, 0), self._unread)
                self._tracks[owner] = self._engines[engine] = track

    def _look(self) -> None:
        """Have everything there for somebody who looks."""
        if self._notes or not self._tracks:
            self._read()

    def _grant(self, owner: Owner, index: int, now: int, granted: Grant) -> None:
        """Keep what the word at a row was granted of memory ports."""
        ports, start, end = granted
        use = PortUse(owner, index, start, end)
        for port in ports:
            self._ports.setdefault((owner.core, port), []).append(use)
        if start > now:
            self._late[owner, index] = start, ports

    def _forget_ports(self, owner: Owner, index: int) -> None:
        """Forget what the words of an engine from a row on had of ports: they issue again."""
        for key, uses in self._ports.items():
            self._ports[key] = [use for use in uses if use.owner != owner or use.row < index]
        self._late = {key: value for key, value in self._late.items() if key[0] != owner or key[1] < index}

    def _plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Have a row for a triggered transfer, and what it is going to occupy of device memory."""
        number, core = transfer.number, transfer.core
        if transfer.course is None:
            return  # a collective, which the ranks of a machine move together
        served = self._served.get(core)
        if served is None:
            served = self._served[core] = Served()
        engines, known = len(transfer.shares), served.width
        served.begin(number, engines)
        for engine in range(known, engines):
            # Resources are in the order in which they are first occupied; columns come when somebody asks.
            self._holds["dma", core, engine] = Holds(_NONE, _NONE, _NONE)
        self._stale = True
        if memory is not None:
            resource, start_ps, end_ps = memory
            found = self._holds.get(resource)
            if found is None:
                found = self._holds[resource] = Holds()
            elif found.transfer and found.transfer[-1] >= number:
                found.cut(number)
            found.transfer.append(number)
            found.start.append(start_ps)
            found.end.append(end_ps)

    def _move(
        self, transfer: Transfer, number: int, now: int, changes: tuple[SemaphoreChange, ...], plan: TransferPlan
    ) -> None:
        """Have a row for a transfer that completed."""
        if number <= self._last:
            self._cut(number)
        self._last = number
        request = transfer.request
        track = self._queues.get((request.core, request.queue))
        if track is None:
            owner = Owner(request.core, request.queue, "queue")
            track = self._queues[request.core, request.queue] = QueueTrack(owner, self._unread)
            self._tracks[owner] = track
        track.ended.add(self._row(transfer, plan, number, now))
        self._stale = True
        if changes:
            self._change(number, now, changes)

    def _row(self, transfer: Transfer, plan: TransferPlan, number: int, now: int) -> tuple[int, ...]:
        """Return the row of a transfer that has completed, and note when engines served it."""
        request = transfer.request
        facts = request.facts
        served = None if transfer.course is None else self._served.get(request.core)
        started = None if served is None else served.end(transfer.number, plan.pieces)
        if started is None:
            started = plan.started_ps
        flags = facts.writes_hbm | request.prebuilt << 1 | isinstance(transfer, CollectiveTransfer) << 2
        triggered = transfer.triggered_ps
        return (
            now, number, started, request.pc, started - triggered, triggered, transfer.generated_ps, facts.nbytes,
            facts.hbm_bytes, facts.pieces, transfer.number, flags,
        )  # fmt: skip

    def _change(self, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Have rows for changes of semaphores and events."""
        for index, _, value, core, kind in changes:
            found = self._changes.get((core, kind, index))
            if found is None:
                found = self._changes[core, kind, index] = Changes(self._unread)
            found.rows.add((number, now, value))

    def _cut(self, number: int) -> None:
        """Forget the events from `number` on."""
        for track in self._tracks.values():
            track.truncate(number)
        for changes in self._changes.values():
            changes.truncate(number)
        self._last = number - 1

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def tracks(self) -> dict[Owner, Track]:
        """Return the rows of each engine and queue."""
        self._look()
        return self._tracks

    @property
    def changes(self) -> dict[Counter, Changes]:
        """Return what semaphores and events went through."""
        self._look()
        return self._changes

    @property
    def ports(self) -> dict[tuple[int, int], list[PortUse]]:
        """Return who used which memory port of a core."""
        self._look()
        return self._ports

    @property
    def late(self) -> dict[tuple[Owner, int], tuple[int, tuple[int, ...]]]:
        """Return when words got which ports that they had to wait for, by owner and row."""
        self._look()
        return self._late

    @property
    def holds(self) -> dict[Resource, Holds]:
        """Return who occupies which resource when; pending transfers as things stand."""
        self._look()
        if self._stale:
            self._stale = False
            for core, served in self._served.items():
                for engine in range(served.width):
                    found = self._holds["dma", core, engine]
                    found.transfer, found.start, found.end = served.columns(engine)
        for queue in self.device.dma.queues:
            for transfer in queue.pending:
                self._stands(transfer)
        return self._holds

    def _stands(self, transfer: Transfer) -> None:
        """Note what a transfer that is under way occupies as things stand."""
        for engine, (start_ps, end_ps) in enumerate(transfer.spans):
            found = self._holds.get(("dma", transfer.core, engine))
            if found is not None:
                index = bisect_left(found.transfer, transfer.number)
                if index < len(found.transfer) and found.transfer[index] == transfer.number:
                    found.start[index], found.end[index] = start_ps, end_ps

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Return whose rows there are: engines of each core, then its queues in the order of their first transfer."""
        return tuple(sorted(self.tracks, key=lambda owner: (owner.core, owner.kind)))

    @property
    def end_ps(self) -> int:
        """Return the time of the last completion, 0 without one."""
        return max((track.completed[-1] for track in self.tracks.values() if len(track)), default=0)

    def segments(self, owner: Owner, t0_ps: int, t1_ps: int) -> Rows:
        """Return (start, end, pc, number) arrays of the rows that overlap a span of time; none for an unknown owner."""
        track = self.tracks.get(owner)
        return Track(owner).segments(t0_ps, t1_ps) if track is None else track.segments(t0_ps, t1_ps)

    def truncate(self, number: int) -> None:
        """Forget the events from `number` on: the device went back to before it."""
        self._look()
        self._cut(number)
