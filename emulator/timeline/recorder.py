"""The recorder: one row per completion in compact columns, cheap enough to leave on while a debugger runs.

A row says what came when. Why it came then is found in the same columns afterwards, see `emulator.timeline.cause`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from emulator.device import Device
from emulator.dma.collectives import CollectiveTransfer
from emulator.dma.transfer import Transfer, TransferPlan
from emulator.events import SemaphoreChange
from emulator.loaded import LoadedWord
from emulator.observers import Occupation, Resource
from emulator.sequencer import Sequencer
from emulator.timeline.served import Served
from emulator.timeline.track import Column, Columns, EngineTrack, Owner, QueueTrack, Rows, Track
from formats.named_tuple import NamedTuple

__all__ = ["Changes", "Hold", "Holds", "Owner", "PortUse", "Recorder"]

_NONE = array("q")
_TOGETHER = 1 << 12  # completions after which rows become columns
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

    def __init__(self) -> None:
        self.rows = Columns(3)

    def truncate(self, number: int) -> None:
        """Forget the changes from event `number` on."""
        self.rows.cut(bisect_left(self.number, number))


class Recorder:
    """An observer that keeps when every word and transfer started and completed; append it to `device.observers`.

    `tracks` are rows by owner, `changes` the history of semaphores and events, `holds` that of DMA engines and HBM
    stacks, `ports` that of memory ports by core and number, `late` which words came late to a port.
    Where the device goes back in time, `truncate`; where it then goes forward again, rows are written over.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.tracks: dict[Owner, Track] = {}
        self.changes: dict[Counter, Changes] = {}
        self._holds: dict[Resource, Holds] = {}  # those of DMA engines as they were last asked for
        self._served: dict[int, Served] = {}  # by core
        self._stale = False  # whether transfers were served since
        self.ports: dict[tuple[int, int], list[PortUse]] = {}
        self.late: dict[tuple[Owner, int], tuple[int, tuple[int, ...]]] = {}  # when it got which ports
        self._engines: dict[Sequencer, EngineTrack] = {}
        self._queues: dict[tuple[int, str], QueueTrack] = {}
        self._last = -1
        for core in device.cores:
            for name, engine in core.engines.items():
                self._add_engine(engine, core.index, name)

    def _add_engine(self, engine: Sequencer, core: int, name: str) -> None:
        owner = Owner(core, name)
        track = self.tracks[owner] = self._engines[engine] = EngineTrack(owner, engine.completed)
        for index, (loaded, bound, issued, _) in enumerate(engine.flights):
            behind = len(engine.flights) - index
            free = engine.free_ps if behind == 1 else issued + bound.action.interval
            track.issue(index, issued, free, loaded.pc, engine.position - behind)

    # --- what the device reports -------------------------------------------------------------------------------------

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Note a word that issues."""
        track = self._engines[engine]
        index = engine.completed + len(engine.flights) - 1 - track.base
        if index == track.issued:  # the usual case, without a call
            before, free = track.free_ps, engine.free_ps
            track.issued, track.free_ps = index + 1, free
            track.begun.add((now, loaded.pc, now - before if now > before else 0, free, engine.position - 1))
        else:
            self._forget_ports(track.owner, index)
            track.issue(index, now, engine.free_ps, loaded.pc, engine.position - 1)
        contention = engine.core.contention
        loaded_ps = contention.array.loaded_ps
        # a load of weights that is over before its word completes in order; see `EngineTrack`
        if loaded_ps is not None:
            contention.array.loaded_ps = None
            track.early[index] = loaded_ps
        elif contention.own_end_ps is not None:
            track.early[index], contention.own_end_ps = contention.own_end_ps, None
        # The device leaves here what the word that issues just now was given, and nobody else reads it.
        granted = contention.granted
        if granted is not None:
            contention.granted = None
            ports, start, end = granted
            use = PortUse(track.owner, index, start, end)
            for port in ports:
                self.ports.setdefault((engine.core.index, port), []).append(use)
            if start > now:
                self.late[track.owner, index] = start, ports

    def _forget_ports(self, owner: Owner, index: int) -> None:
        """Forget what the words of an engine from a row on had of ports: they issue again."""
        for key, uses in self.ports.items():
            self.ports[key] = [use for use in uses if use.owner != owner or use.row < index]
        self.late = {key: value for key, value in self.late.items() if key[0] != owner or key[1] < index}

    def on_plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Note a triggered transfer, and what it is going to occupy of device memory."""
        number, core = transfer.number, transfer.core
        if transfer.course is None:
            return  # a collective, which the ranks of a machine move together
        served = self._served.get(core)
        if served is None:
            served = self._served[core] = Served()
        elif served.transfer and served.transfer[-1] >= number:
            self._settle()  # what ended before the device went back
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

    @property
    def holds(self) -> dict[Resource, Holds]:
        """Return who occupies which resource when; pending transfers as things stand."""
        if self._stale:
            self._settle()
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

    def on_word(self, engine: Sequencer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a word that completed and the semaphores that it changed."""
        if number <= self._last:
            self.truncate(number)
        self._last = number
        self._engines[engine].ended.add((now, number))
        if changes:
            self._note(number, now, changes)
        if not (number + 1) % _TOGETHER:
            self._settle()

    def on_transfer(self, transfer: Transfer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a transfer that completed and the semaphores that it changed."""
        if number <= self._last:
            self.truncate(number)
        self._last = number
        request = transfer.request
        track = self._queues.get((request.core, request.queue))
        if track is None:
            owner = Owner(request.core, request.queue, "queue")
            track = self._queues[request.core, request.queue] = QueueTrack(owner, self._row)
            self.tracks[owner] = track
        # Its plan is that for good: until now transfers of other queues could move its times.
        track.ended.add((transfer, transfer.plan, number, now))
        self._stale = True
        if changes:
            self._note(number, now, changes)
        if not (number + 1) % _TOGETHER:
            self._settle()

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

    def _note(self, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        for index, _, value, core, kind in changes:
            found = self.changes.get((core, kind, index))
            if found is None:
                found = self.changes[core, kind, index] = Changes()
            found.rows.add((number, now, value))

    def _settle(self) -> None:
        """Have all rows in columns, which take a fifth of their memory."""
        for track in self.tracks.values():
            track.settle()
        for changes in self.changes.values():
            changes.rows.settled()

    # --- looking -----------------------------------------------------------------------------------------------------

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
        for track in self.tracks.values():
            track.truncate(number)
        for changes in self.changes.values():
            changes.truncate(number)
        self._last = number - 1
