"""Execute step lists: CC-cores that walk through them, transfers over links, receive counts, credits, proxies.

One event order over all ranks and collectives.  Times are whole picoseconds; events of one time happen in the order in
which they were made, or in one drawn by a seed: a correct program gives the same bits for every seed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from emulator.machine.collectives.counters import Counters
from emulator.machine.collectives.plan import Plan
from emulator.machine.collectives.proxy import Proxy
from emulator.machine.collectives.steps import Move, uncollected
from emulator.machine.machine import Hop, Machine
from formats.errors import FormatError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.machine.collectives.memory import Array, Buffers

__all__ = ["Blocked", "Engine", "Faults", "Job", "Transfer"]

_NS = 1000  # picoseconds


class Faults(NamedTuple):
    """What goes wrong on purpose: ranks that stop at a step, slow links, transfers that never arrive, dead proxies."""

    stopped: Mapping[int, int] = {}
    slow: Mapping[str, float] = {}
    lost: frozenset[tuple[int, int, int]] = frozenset()  # source, target, number of the transfer between them
    dead_proxies: frozenset[int] = frozenset()


class Blocked(NamedTuple):
    """Why a CC-core stands still: it waits for a rank to start, for a receive count, for a credit, or was stopped."""

    job: int
    rank: int
    channel: int
    step: int
    phase: str
    reason: str  # "trigger", "receive", "credit", "stopped"
    peer: int
    have: int
    want: int


class Transfer(NamedTuple):
    """A move that is complete, for a timeline."""

    job: int
    rank: int
    channel: int
    move: Move
    begin_ps: int
    end_ps: int


@dataclass
class Job:
    """One collective in execution."""

    number: int
    plan: Plan
    item: int
    stream: int = 0
    name: str = ""
    buffers: Buffers | None = None
    started: dict[int, int] = field(default_factory=dict)
    finished: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    proxies: dict[int, Proxy] = field(default_factory=dict)
    on_finish: Callable[[int, int], None] | None = None

    @property
    def done(self) -> bool:
        """Return whether every rank is through."""
        return len(self.finished) == len(self.plan.ranks)


Until = Callable[[], int]
"""Says when bytes are through as far as is known: work that DMA engines get meanwhile puts it off."""


class _Course(NamedTuple):
    """When a transfer is through: what links and memories say, and what the DMA engines do, which may change."""

    ends_ps: float
    latency_ps: int
    until: Until | None

    @property
    def through_ps(self) -> int:
        """Return when it is through, as far as is known."""
        ends = self.ends_ps if self.until is None else max(self.ends_ps, self.until())
        return round(ends) + self.latency_ps


class _Landing:
    """A transfer that is to arrive at a time, or has."""

    __slots__ = ("end_ps", "landed")

    def __init__(self, end_ps: int) -> None:
        self.end_ps, self.landed = end_ps, False


Core = tuple[int, int, int]  # job, rank, channel
Count = tuple[int, int, int, int]  # job, target, source, channel


class Engine:
    """All CC-cores of a machine and the links between them."""

    def __init__(self, machine: Machine, *, seed: int = 0, faults: Faults | None = None, record: bool = False) -> None:
        self.machine, self.faults = machine, faults or Faults()
        self.now = 0
        self.jobs: list[Job] = []
        self.transfers: list[Transfer] = []
        self._record = record
        # What moves the bytes of a rank where programs use its DMA engines too.
        self.carry: Callable[[Job, int, int], Until] | None = None
        self._chance = random.Random(seed) if seed else None
        self._events: list[tuple[int, float, int, Callable[[], None]]] = []
        self._serial = 0
        self._pc: dict[Core, int] = {}
        self._free: dict[str, float] = defaultdict(float)
        self._came: dict[Count, int] = defaultdict(int)
        self._credits: dict[Count, int] = defaultdict(int)
        self._sent: dict[tuple[int, int, int], int] = defaultdict(int)
        self._last: dict[Count, _Landing] = {}
        self._waiting: dict[object, list[Core]] = defaultdict(list)
        self.blocked: dict[Core, Blocked] = {}
        self._ways: dict[tuple[int, int], tuple[Hop, ...]] = {}
        self._onward: dict[tuple[int, int], dict[int, Callable[[int], None]]] = {}
        figures = {name: fact.value for name, fact in machine.figures.items()}
        self._rank_rate, self._hbm_rate = figures["rank_rate"] / 1e12, figures["hbm_rate"] / 1e12
        self._issue, self._local = int(figures["issue"] * _NS), int(figures["local_latency"] * _NS)

    # -- jobs -------------------------------------------------------------------------------------------------------

    def add(self, plan: Plan, item: int, *, buffers: Buffers | None = None, stream: int = 0, name: str = "") -> Job:
        """Take on a collective of elements of `item` bytes; its ranks start when they are triggered."""
        if not 1 <= item <= 8:
            raise FormatError("bytes of an element", expected="1 to 8", got=item)
        job = Job(len(self.jobs), plan, item, stream, name, buffers)
        across = len({self.machine.place(rank).node for rank in plan.ranks}) > 1
        for rank in plan.ranks:
            job.left[rank] = sum(map(len, plan.programs[rank].values()))
            if across:
                job.proxies[rank] = Proxy(rank, failed=rank in self.faults.dead_proxies)
        self.jobs.append(job)
        return job

    def trigger(self, job: Job, rank: int, time_ps: int) -> None:
        """Start a rank's CC-cores at a time; events before it are still to come."""
        self.at(time_ps, lambda: self._start(job, rank))

    def _start(self, job: Job, rank: int) -> None:
        job.started[rank] = self.now
        if rank in job.proxies:
            job.proxies[rank].shake()
        self._ended(job, rank)  # one that has nothing to do is through
        for channel in job.plan.programs[rank]:
            self._pc[job.number, rank, channel] = 0
            self._advance((job.number, rank, channel))
        self._wake(("trigger", job.number, rank))

    def _finish(self, job: Job, rank: int) -> None:
        job.finished[rank] = self.now
        if job.on_finish is not None:
            job.on_finish(rank, self.now)

    # -- events -----------------------------------------------------------------------------------------------------

    def at(self, time_ps: int, what: Callable[[], None]) -> None:
        """Let something happen at a time; what is due at one time goes in the order in which it was asked for."""
        self._serial += 1
        tie = self._chance.random() if self._chance else 0.0
        heappush(self._events, (time_ps, tie, self._serial, what))

    @property
    def next_ps(self) -> int | None:
        """Return the time of the next event, None where nothing is under way."""
        return self._events[0][0] if self._events else None

    def step(self) -> None:
        """Let the next event happen."""
        self.now, _, _, what = heappop(self._events)
        what()

    def run(self, until_ps: int | None = None) -> None:
        """Let all events happen, or those up to a time."""
        with uncollected():
            while self._events and (until_ps is None or self._events[0][0] <= until_ps):
                self.step()

    # -- CC-cores ---------------------------------------------------------------------------------------------------

    def _wake(self, key: object) -> None:
        for core in self._waiting.pop(key, ()):
            self._advance(core)

    def _advance(self, core: Core) -> None:
        """Issue the next move of a CC-core, or note what it waits for."""
        number, rank, channel = core
        job = self.jobs[number]
        program = job.plan.programs[rank][channel]
        at = self._pc[core]
        if at == len(program):
            return
        move = program[at]
        held = self._held(job, core, move)
        if held is not None:
            self.blocked[core], key = held
            if key is not None:
                self._waiting[key].append(core)
            return
        self.blocked.pop(core, None)
        self._pc[core] = at + 1
        self._issued(job, core, move)
        if at + 1 < len(program):
            self.at(self.now + self._issue, lambda: self._advance(core))

    def _held(self, job: Job, core: Core, move: Move) -> tuple[Blocked, object] | None:
        number, rank, channel = core

        def blocked(reason: str, peer: int, have: int, want: int) -> Blocked:
            return Blocked(number, rank, channel, move.step, move.phase, reason, peer, have, want)

        stop = self.faults.stopped.get(rank)
        if stop is not None and move.step >= stop:
            return blocked("stopped", rank, 0, 0), None
        for wait in move.waits:
            have = self._came[number, rank, wait.source, wait.channel]
            if have < wait.value:
                key = ("receive", number, rank, wait.source, wait.channel)
                return blocked("receive", wait.source, have, wait.value), key
        for piece in (*move.reads, *move.writes):
            if piece.rank != rank and piece.rank not in job.started:
                return blocked("trigger", piece.rank, 0, 1), ("trigger", number, piece.rank)
        if move.credit:
            target = move.writes[0].rank
            have = self._credits[number, rank, target, channel]
            if have < move.credit:
                return blocked("credit", target, have, move.credit), ("credit", number, rank, target, channel)
        return None

    # -- transfers --------------------------------------------------------------------------------------------------

    def _way(self, source: int, target: int) -> tuple[Hop, ...]:
        found = self._ways.get((source, target))
        if found is None:
            found = self.machine.way(source, target)
            if self.faults.slow:
                found = tuple(hop._replace(rate=hop.rate / self.faults.slow.get(hop.name, 1.0)) for hop in found)
            self._ways[source, target] = found
        return found

    def _issued(self, job: Job, core: Core, move: Move) -> None:
        """Start a transfer: its bytes queue at every resource they pass, and its value is what is there now."""
        rank = core[1]
        begin, count = self.now, move.size
        value = None if job.buffers is None or not move.writes else job.buffers.value(move)
        job.counters.add(self.machine, rank, move, job.item)
        network = [
            piece.rank for piece in move.writes if self.machine.place(piece.rank).node != self.machine.place(rank).node
        ]
        if network:
            self._post(job, core, move, value, network[0])
            return
        self._landing(job, core, move, value, begin, self._moved(job, rank, move, count * job.item))

    def _moved(self, job: Job, rank: int, move: Move, size: int) -> _Course:
        """Return when a transfer of this size is through, and take its share of every resource."""
        ends, latency, until = float(self.now), self._local if move.writes else 0, None
        if size:
            moved = size * max(len(move.reads), len(move.writes))
            if self.carry is None:
                ends = max(ends, self._use(f"dma r{rank}", moved, self._rank_rate))
            else:
                until = self.carry(job, rank, moved)
            for piece in (*move.reads, *move.writes):
                ends = max(ends, self._use(f"hbm r{piece.rank}", size, self._hbm_rate))
        for piece in move.reads:
            latency, ends = self._over(job, self._way(piece.rank, rank), size, latency, ends)
        for piece in move.writes:
            latency, ends = self._over(job, self._way(rank, piece.rank), size, latency, ends)
        for peer in move.notifies:
            latency, ends = self._over(job, self._way(rank, peer), 0, latency, ends)
        return _Course(ends, latency, until)

    def issued_to(self, job: Job, source: int, target: int, channel: int) -> int:
        """Return how many transfers of a rank to another its CC-core has started on a channel."""
        program = job.plan.programs[source].get(channel, [])[: self._pc.get((job.number, source, channel), 0)]
        return sum(target in {*(piece.rank for piece in move.writes), *move.notifies} for move in program)

    def arrived(self, job: Job, source: int, target: int, channel: int) -> int:
        """Return how many transfers of a rank have arrived at another on a channel."""
        return self._came[job.number, target, source, channel]

    def _over(self, job: Job, way: tuple[Hop, ...], size: int, latency: int, ends: float) -> tuple[int, float]:
        total = 0.0
        for hop in way:
            total += hop.latency_ns
            if size:
                job.counters.links[hop.name] += size
                ends = max(ends, self._use(hop.name, size, hop.rate / 1e12))
        return max(latency, int(total * _NS)), ends

    def _use(self, name: str, size: int, rate: float) -> float:
        """Queue bytes at a resource of `rate` bytes per picosecond; return when the last of them is through."""
        through = max(self._free[name], self.now) + size / rate
        self._free[name] = through
        return through

    def _post(self, job: Job, core: Core, move: Move, value: Array | None, target: int) -> None:
        """Give a transfer to the proxy of the rank, which puts it on the network when there is room."""
        rank = core[1]
        proxy = job.proxies[rank]
        begin = self.now

        def onward(_: int) -> None:
            course = self._moved(job, rank, move, move.size * job.item)
            self._landing(job, core, move, value, begin, course)

            def complete() -> None:
                if course.until is not None and (later := course.through_ps) > self.now:
                    self.at(later, complete)
                    return
                for transfer in proxy.sent():
                    self._queued(job, rank).pop(transfer)(transfer)
                job.proxies[target].received()

            self.at(course.through_ps, complete)

        self._serial += 1
        transfer = self._serial
        self._queued(job, rank)[transfer] = onward
        for ready in proxy.post(transfer):
            self._queued(job, rank).pop(ready)(ready)

    def _queued(self, job: Job, rank: int) -> dict[int, Callable[[int], None]]:
        return self._onward.setdefault((job.number, rank), {})

    def _landing(self, job: Job, core: Core, move: Move, value: Array | None, begin: int, course: _Course) -> None:
        """Arrange that a transfer arrives: not before an earlier one from the same core to the same rank.

        Where DMA engines were given more meanwhile, it arrives when that lets it through, and those behind it too.
        """
        number, rank, channel = core
        targets = list(dict.fromkeys([*(piece.rank for piece in move.writes), *move.notifies]))
        if self.faults.lost:
            kept = []
            for target in targets:
                nth = self._sent[number, rank, target]
                self._sent[number, rank, target] += 1
                if (rank, target, nth) not in self.faults.lost:
                    kept.append(target)
            targets = kept
        landing = _Landing(course.through_ps)
        before: list[_Landing] = []
        for target in targets:
            last = self._last.get((number, target, rank, channel))
            if last is not None and not last.landed:
                before.append(last)
                landing.end_ps = max(landing.end_ps, last.end_ps)
            self._last[number, target, rank, channel] = landing

        def arrive() -> None:
            later = max([one.end_ps for one in before if not one.landed], default=-1)
            if course.until is not None:
                later = max(later, course.through_ps)
            if later > self.now:
                landing.end_ps = later
                self.at(later, arrive)
                return
            landing.landed, end = True, self.now
            before.clear()
            if self._record:
                self.transfers.append(Transfer(number, rank, channel, move, begin, end))
            if value is not None and job.buffers is not None:
                for piece in move.writes:
                    if piece.rank in targets:
                        job.buffers.write(piece, value)
            for peer in move.frees:
                self.at(end + self._back(rank, peer), lambda peer=peer: self._freed(number, rank, peer, channel))  # type: ignore[misc]
            for target in targets:
                self._came[number, target, rank, channel] += 1
                self._wake(("receive", number, target, rank, channel))
            job.left[rank] -= 1
            self._ended(job, rank)
            for target in targets:
                self._ended(job, target)

        self.at(landing.end_ps, arrive)

    def _back(self, rank: int, peer: int) -> int:
        return int(sum(hop.latency_ns for hop in self._way(rank, peer)) * _NS)

    def _freed(self, number: int, rank: int, peer: int, channel: int) -> None:
        self._credits[number, peer, rank, channel] += 1
        self._wake(("credit", number, peer, rank, channel))

    def _ended(self, job: Job, rank: int) -> None:
        """Note that a rank is through when all its own moves are and all that others write to it have come."""
        if rank in job.finished or rank not in job.started or job.left[rank]:
            return
        expected = job.plan.expected.get(rank, {})
        if all(self._came[job.number, rank, source, channel] >= count for (source, channel), count in expected.items()):
            self._finish(job, rank)
