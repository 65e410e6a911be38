"""The times of ranks that run one program, without their data: ranks of the same history are emulated once.

The engine of CC-cores runs for all ranks, one by one; a device only for each history (`moments`).  While a device has
nothing to do but to wait for a collective, what its DMA engines carry leaves no trace but whose ring they served last:
ranks that carried different bytes meanwhile, and are through at the same time, go on as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from time import perf_counter
from typing import Any

import numpy as np

from emulator.diagnosis.graph import Hang
from emulator.dma.binding import place_of
from emulator.dma.collectives import Arrived, Call, Caller
from emulator.dma.system import Carrying
from emulator.dma.transfer import Transfer
from emulator.errors import InputError
from emulator.faults import Place
from emulator.machine.arbitration import MAX_STREAMS, packet_sizes
from emulator.machine.collectives.engine import Engine, Job, Until
from emulator.machine.collectives.steps import uncollected
from emulator.machine.machine import Machine
from emulator.machine.ranks.communicators import Communicators
from emulator.machine.ranks.devices import RankDevice
from emulator.machine.ranks.explain import RankHang, explain
from emulator.machine.ranks.idle import Carry, Entry, IdleEngines, OnRing
from emulator.machine.ranks.moments import Moment, Seat
from emulator.pace import at_pace
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.neuron_core import DMA_ENGINES

__all__ = ["TimedEnd", "TimedMachine"]


class TimedEnd(NamedTuple):
    """How a rank ended; `device` stands there until the next one is asked for."""

    rank: int
    now_ps: int
    hang: Hang | None
    fault: None = None
    away: bool = False


class _Twin:
    """A rank: the moment where it stands, and what its idle DMA engines have carried since; `loads` are those bytes."""

    __slots__ = ("due", "engines", "loads", "moment", "rank")

    def __init__(self, rank: int, moment: Moment) -> None:
        self.rank, self.moment = rank, moment
        self.engines = IdleEngines()
        self.loads: list[_Load] = []
        self.due = 0  # nothing happens before


class _Load:
    """Bytes that a rank carries: through at `ends_ps` on idle engines, else what the device has them as."""

    __slots__ = ("carrying", "ends_ps", "twin")

    def __init__(self, twin: _Twin) -> None:
        self.twin, self.ends_ps = twin, 0
        self.carrying: tuple[Carrying, ...] = ()


class TimedMachine:
    """Ranks 0 to N - 1 of a machine, for their times; `devices` are their ends once all have come to one."""

    def __init__(
        self, machine: Machine, ranks: int, program: Neff, *, cores: int = 1, max_seconds: float | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        if not 1 <= ranks <= machine.ranks:
            raise InputError(f"{ranks} ranks; {machine.instance.name} has 1 to {machine.ranks}")
        self.machine = machine
        self.engine = Engine(machine)
        self.trigger_ps = int(machine.figures["trigger"].value * 1000)
        self.communicators = Communicators(machine, self.engine, self.trigger_ps, data=False)
        compute, self._packets = packet_sizes(None, (), MAX_STREAMS)
        rate = machine.figures["rank_rate"].value / cores / DMA_ENGINES
        device = RankDevice(0, _Nowhere(), machine.instance.target, cores, **options)
        device.dma.packet_bytes = compute
        device.load(program)
        device.checking = False
        self._ps_per_byte = 1e12 / rate
        self.seat = Seat(device, self._ps_per_byte)
        self._rings = {
            name: [OnRing(one.core, one.ring) for one in queues] for name, queues in self.seat.queues.items()
        }
        if device.timing:
            self.engine.carry = self._carry
        self._cores, self._max_seconds = cores, max_seconds
        self._twins = [_Twin(rank, self.seat.root) for rank in range(ranks)]
        self._heap: list[tuple[int, int]] = [(0, rank) for rank in range(ranks)]
        self._stopped = False
        self.devices: Sequence[TimedEnd] = ()
        self.ends: dict[Moment, tuple[int, ...]] = {}
        self.hang: RankHang | None = None

    # --- time --------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all ranks to their ends; InputError where that takes too long, Faulted where the program faults."""
        engine, heap = self.engine, self._heap
        deadline = None if self._max_seconds is None else perf_counter() + self._max_seconds
        with at_pace(), uncollected(), np.errstate(all="ignore"):
            while not self._stopped:
                while heap and self._twins[heap[0][1]].due != heap[0][0]:
                    heappop(heap)
                due = engine.next_ps
                first = heap[0][0] if heap else None
                if due is not None and (first is None or due <= first):
                    engine.step()
                elif first is not None:
                    if deadline is not None and perf_counter() > deadline:
                        raise InputError(
                            f"the times of {len(self._twins)} ranks took longer than {self._max_seconds} s"
                        )
                    self._go_on(first + self.trigger_ps if due is None else min(first + self.trigger_ps, due))
                else:
                    break
        if not self._stopped:
            self._end()

    def interrupt(self) -> None:
        """End the run soon; for signal handlers."""
        self._stopped = True

    def _go_on(self, window_ps: int) -> None:
        """Let ranks go on to a time; what they call begins behind it."""
        heap = self._heap
        calls: list[tuple[int, int, int, Call]] = []
        while heap and heap[0][0] < window_ps:
            due, rank = heappop(heap)
            twin = self._twins[rank]
            if twin.due == due:
                self._advance(twin, window_ps, calls)
        # Calls of one time begin in the order of ranks, as devices that run one after the other make them.
        for time_ps, rank, number, call in sorted(calls, key=lambda one: one[:2]):
            self.communicators.begin(rank, call, time_ps, self._teller(self._twins[rank], number))

    def _advance(self, twin: _Twin, window_ps: int, calls: list[tuple[int, int, int, Call]]) -> None:
        while True:
            here = twin.moment
            after = here.call
            if after is not None:
                if after.time_ps >= window_ps:
                    self._wake(twin, after.time_ps)
                    return
                assert after.asked is not None
                number, call = after.asked
                calls.append((after.time_ps, twin.rank, number, call))
                twin.moment = after
            elif here.quiet:
                twin.due = -1
                return
            elif here.reached_ps >= window_ps:
                self._wake(twin, here.reached_ps)
                return
            else:
                self.seat.work_out(here, window_ps)

    def _wake(self, twin: _Twin, time_ps: int) -> None:
        twin.due = time_ps
        heappush(self._heap, (time_ps, twin.rank))

    # --- what is given to a rank -------------------------------------------------------------------------------------

    def _teller(self, twin: _Twin, number: int) -> Arrived:
        def ended(now_ps: int, pieces: object, received: object) -> None:
            self._ended(twin, number, now_ps)

        return ended

    def _ended(self, twin: _Twin, number: int, now_ps: int) -> None:
        """Tell a rank that a collective is through."""
        here = twin.moment
        if here.quiet and here.idle_ps <= now_ps and twin.engines.idle_at(now_ps):
            entry = Entry(now_ps, None, number, twin.engines.rings)
            twin.moment = self.seat.give(here, entry, twin.engines.take())
            twin.loads.clear()  # they are through
        else:
            self._give(twin, Entry(now_ps, None, number))
        self._wake(twin, now_ps)

    def _carry(self, job: Job, rank: int, nbytes: int) -> Until:
        """Let the DMA engines of a rank move bytes of a collective, between those of its program."""
        twin, now = self._twins[rank], self.engine.now
        queue = self.communicators.of_job[job.number].transfers[rank].queue
        what = Carry(queue, -(-nbytes // self._cores), self._packets[job.stream])
        here, entry = twin.moment, Entry(now, what)
        queues, load = self._rings[queue], _Load(twin)
        if here.quiet and here.idle_ps <= now and twin.engines.serve_alone(queues, now):
            load.ends_ps = twin.engines.carry(entry, queues, self._ps_per_byte)
            twin.loads.append(load)
        else:
            self._give(twin, entry)
            load.carrying = twin.moment.carrying
            if not twin.moment.quiet:
                self._wake(twin, now)
        return lambda: self._until(load)

    def _until(self, load: _Load) -> int:
        """Return when bytes are through, as far as is known now."""
        if load.carrying:
            load.ends_ps = self.seat.carried_until(load.twin.moment, load.carrying, self.engine.now)
        return load.ends_ps

    def _give(self, twin: _Twin, entry: Entry) -> None:
        """Give a rank something while its device or its engines are busy: all that they carried counts."""
        for each, load in zip(twin.engines.take(), twin.loads, strict=True):
            twin.moment = self.seat.give(twin.moment, each)
            load.carrying = twin.moment.carrying
        twin.loads.clear()
        twin.moment = self.seat.give(twin.moment, entry)

    # --- the end -----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        by_moment: dict[Moment, list[int]] = {}
        for twin in self._twins:
            by_moment.setdefault(twin.moment, []).append(twin.rank)
        self.ends = {moment: tuple(ranks) for moment, ranks in by_moment.items()}
        found: dict[int, TimedEnd] = {}
        for moment, ranks in self.ends.items():
            device = self.seat.stand_at_end(moment)
            for rank in ranks:
                found[rank] = TimedEnd(rank, device.now_ps, device.hang)
        self.devices = [found[twin.rank] for twin in self._twins]
        if any(one.hang is not None for one in self.devices):
            self.hang = explain(self)

    def place_of(self, rank: int, caller: Caller) -> Place:
        """Return where in the program a rank triggered a transfer."""
        assert isinstance(caller, Transfer)
        return place_of(self.seat.device, caller)


class _Nowhere:
    """The machine around a device that no seat has yet."""

    def begin(self, *given: object) -> None:
        """Take nothing over."""

    def catch_up(self, device: RankDevice) -> None:
        """Move nothing."""
