"""The recorder: one row per completion in compact columns, cheap enough to leave on while a debugger runs.

A row says what came when. Why it came then is found in the same columns afterwards, see `emulator.timeline.cause`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

from emulator.device import Device
from emulator.dma.collectives import CollectiveTransfer
from emulator.dma.transfer import Transfer
from emulator.events import Event
from emulator.loaded import LoadedWord
from emulator.observers import Occupation, Resource
from emulator.sequencer import Sequencer
from emulator.timeline.served import Served
from emulator.timeline.track import EngineTrack, Owner, QueueTrack, Rows, Track
from formats.named_tuple import NamedTuple

__all__ = ["Changes", "Hold", "Holds", "Owner", "PortUse", "Recorder"]

_NONE = array("q")
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

    __slots__ = ("number", "time", "value")

    def __init__(self) -> None:
        self.number, self.time, self.value = array("q"), array("q"), array("q")

    def truncate(self, number: int) -> None:
        """Forget the changes from event `number` on."""
        keep = bisect_left(self.number, number)
        del self.number[keep:], self.time[keep:], self.value[keep:]


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
        self._engines: dict[tuple[int, str], EngineTrack] = {}
        self._queues: dict[tuple[int, str], QueueTrack] = {}
        self._last = -1
        for core in device.cores:
            for name, engine in core.engines.items():
                self._add_engine(engine, core.index, name)

    def _add_engine(self, engine: Sequencer, core: int, name: str) -> None:
        owner = Owner(core, name)
        track = self.tracks[owner] = self._engines[core, name] = EngineTrack(owner, engine.completed)
        for index, flight in enumerate(engine.in_flight):
            behind = len(engine.in_flight) - index
            free = engine.free_ps if behind == 1 else flight.issued_ps + flight.action.interval
            track.issue(index, flight.issued_ps, free, flight.loaded.pc, engine.position - behind)

    # --- what the device reports -------------------------------------------------------------------------------------

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Note a word that issues."""
        track = self._engines[engine.core.index, engine.name]
        index = engine.completed + len(engine.in_flight) - 1 - track.base
        if index == len(track.start):  # the usual case, without a call
            free = track.free
            before = free[-1] if index else 0
            track.waited.append(now - before if now > before else 0)
            track.start.append(now)
            free.append(engine.free_ps)
            track.pc.append(loaded.pc)
            track.position.append(engine.position - 1)
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
            use = PortUse(track.owner, index, granted.start_ps, granted.end_ps)
            for port in granted.ports:
                self.ports.setdefault((engine.core.index, port), []).append(use)
            if granted.start_ps > now:
                self.late[track.owner, index] = granted.start_ps, granted.ports

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

    def on_replan(self, transfer: Transfer) -> None:
        """Note the final times of what a transfer occupies: transfers of other queues may move them until it ends."""
        served = self._served.get(transfer.core)
        if served is not None:
            served.end(transfer.number, transfer.snapshot().pieces)
            self._stale = True

    @property
    def holds(self) -> dict[Resource, Holds]:
        """Return who occupies which resource when; pending transfers as things stand."""
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

    def on_event(self, event: Event) -> None:
        """Note a completion and the semaphores that it changed."""
        kind, number, now = event.kind, event.number, event.time_ps
        if number <= self._last:
            self.truncate(number)
        self._last = number
        if kind == "instruction" or kind == "barrier":
            track = self._engines[event.core, event.engine]
            track.completed.append(now)
            track.number.append(number)
        elif kind == "dma":
            self._transfer(event.instruction, number, now)
        for change in event.semaphores:
            key = (change.core, change.kind, change.number)
            found = self.changes.get(key)
            if found is None:
                found = self.changes[key] = Changes()
            found.number.append(number)
            found.time.append(now)
            found.value.append(change.new)

    def _transfer(self, transfer: Any, number: int, now: int) -> None:
        track = self._queues.get((transfer.core, transfer.queue))
        if track is None:
            owner = Owner(transfer.core, transfer.queue, "queue")
            track = self.tracks[owner] = self._queues[transfer.core, transfer.queue] = QueueTrack(owner)
        track.completed.append(now)
        track.number.append(number)
        started, triggered = transfer.started_ps, transfer.triggered_ps  # the first is worked out of its plan each time
        track.start.append(started)
        track.pc.append(transfer.pc)
        track.waited.append(started - triggered)
        track.triggered.append(triggered)
        track.generated.append(transfer.generated_ps)
        track.nbytes.append(transfer.nbytes)
        track.hbm_bytes.append(transfer.hbm_bytes)
        track.pieces.append(transfer.pieces)
        track.transfer.append(transfer.number)
        joint = isinstance(transfer, CollectiveTransfer)
        track.flags.append(transfer.writes_hbm | transfer.prebuilt << 1 | joint << 2)

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
