"""A machine whose ranks live in several processes: the CC-cores here, devices at sites.

Conservative synchronisation: a rank calls nothing that reaches another before the trigger delay has passed, and the
links' latencies are in the CC-cores' events.  So sites go on, all at a time, up to the earliest call that is possible
plus that delay, or to the next event of the CC-cores.  What comes out is what one process gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from emulator.diagnosis.graph import Hang
from emulator.dma.collectives import Arrived, Call, Caller
from emulator.faults import Fault, Place
from emulator.machine.arbitration import MAX_STREAMS, packet_sizes
from emulator.machine.collectives.engine import Engine, Job, Until
from emulator.machine.collectives.steps import uncollected
from emulator.machine.machine import Machine
from emulator.machine.ranks.communicators import Communicators
from emulator.machine.ranks.explain import RankHang, explain
from emulator.machine.ranks.idle import Carry, Entry, IdleEngines, OnRing
from emulator.pace import at_pace
from emulator.runtime.execution import Result
from emulator.runtime.site import CalledFrom, Given, Report, SiteOrder
from formats.errors import FormatError, UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_ENGINES

__all__ = ["Answer", "Asker", "SpreadMachine", "bytes_time"]


class Answer(Protocol):
    """What a site will have answered."""

    def result(self) -> Any: ...


Asker = Callable[..., Answer]
"""Ask a site: the name of a method of `Site` and its arguments."""


class _End(NamedTuple):
    """How a rank ended."""

    rank: int
    now_ps: int
    fault: Fault | None
    hang: Hang | None
    away: bool


class _Far:
    """A rank at a site: what it called that has not begun, what it was given and does not know yet."""

    __slots__ = ("calls", "engines", "given", "idle_ps", "loads", "made", "next_ps", "rank", "rings", "site")

    def __init__(self, rank: int, site: int, rings: dict[str, list[OnRing]]) -> None:
        self.rank, self.site, self.rings = rank, site, rings
        self.calls: deque[tuple[int, int, Call]] = deque()
        self.given: list[Given] = []
        self.engines = IdleEngines()
        self.loads: list[_Load] = []  # what the engines were given that are idle otherwise
        self.made = 0
        self.next_ps: int | None = 0
        self.idle_ps = 0

    @property
    def due(self) -> int | None:
        """Return a time before which it calls nothing, None where it only waits."""
        return self.calls[0][0] if self.calls else self.next_ps

    def heard(self, report: Report) -> None:
        """Take in where it stands."""
        self.calls.extend(report.calls)
        self.next_ps, self.idle_ps = report.next_ps, report.idle_ps

    def flush(self) -> list[Given]:
        """Return what it was given and does not know, for whoever tells it."""
        for each, load in zip(self.engines.take(), self.loads, strict=True):
            load.at_site = True
            self.given.append(Given(each.time_ps, each.carry, load=load.number))
        self.loads.clear()
        found, self.given = self.given, []
        return found


class _Load:
    """Bytes that a rank carries: through at `ends_ps`; `at_site`: its site knows of them, and may say otherwise."""

    __slots__ = ("at_site", "ends_ps", "far", "known_ps", "number")

    def __init__(self, far: _Far) -> None:
        self.far, self.number, self.at_site, self.ends_ps, self.known_ps = far, far.made, False, 0, -1
        far.made += 1


class SpreadMachine:
    """Ranks of a machine at sites, each asked by a function; `orders` say what runs where."""

    def __init__(self, machine: Machine, orders: Sequence[SiteOrder], seed: int | None = None) -> None:
        self.machine, self.orders = machine, orders
        self.engine = Engine(machine, seed=0 if seed is None else seed + 1)
        self.trigger_ps = int(machine.figures["trigger"].value * 1000)
        self.communicators = Communicators(machine, self.engine, self.trigger_ps)
        self.hang: RankHang | None = None
        self.devices: Sequence[_End] = ()
        self.results: list[Result] = []
        self._packets = packet_sizes(None, (), MAX_STREAMS)[1]
        self._ps_per_byte, self._cores = orders[0].ps_per_byte, orders[0].cores
        if orders[0].settings.timing:
            self.engine.carry = self._carry
        self._ranks: list[_Far] = []
        self._askers: Sequence[Asker] = ()
        self._stopped = False

    def interrupt(self) -> None:
        """End the run soon; for signal handlers."""
        self._stopped = True

    def run(self, askers: Sequence[Asker]) -> None:
        """Run all ranks to their ends, on sites that have been made of the orders."""
        self._askers = askers
        found: dict[int, _Far] = {}
        for site, answer in enumerate([ask("rings") for ask in askers]):
            found.update({rank: _Far(rank, site, rings) for rank, rings in answer.result().items()})
        self._ranks = [found[rank] for rank in sorted(found)]
        engine = self.engine
        with at_pace(), uncollected(), np.errstate(all="ignore"):
            while not self._stopped:
                due = engine.next_ps
                first = min([at for far in self._ranks if (at := far.due) is not None], default=None)
                if due is not None and (first is None or due <= first):
                    engine.step()
                elif first is not None:
                    self._go_on(first + self.trigger_ps if due is None else min(first + self.trigger_ps, due))
                else:
                    break
        if not self._stopped:
            self._end()

    def _go_on(self, window_ps: int) -> None:
        """Let all ranks go on to a time; what they call begins behind it."""
        calls: list[tuple[int, int, int, Call]] = []
        while True:
            asked: dict[int, list[tuple[int, list[Given]]]] = {}
            for far in self._ranks:
                while far.calls and far.calls[0][0] < window_ps:
                    time_ps, number, call = far.calls.popleft()
                    calls.append((time_ps, far.rank, number, call))
                if far.due is not None and far.due < window_ps:
                    asked.setdefault(far.site, []).append((far.rank, far.given))
                    far.given = []
            if not asked:
                break
            # All sites at once: that is what they are for.
            for answer in [self._askers[site]("go_on", window_ps, what) for site, what in asked.items()]:
                for report in answer.result():
                    self._ranks[report.rank].heard(report)
        for time_ps, rank, number, call in sorted(calls, key=lambda one: one[:2]):
            try:
                self.communicators.begin(rank, call, time_ps, self._teller(self._ranks[rank], number))
            except (FormatError, UnsupportedError) as error:
                self._tell(self._ranks[rank], Given(time_ps, None, number, error=error))

    # --- what is given to a rank -------------------------------------------------------------------------------------

    def _teller(self, far: _Far, number: int) -> Arrived:
        def ended(now_ps: int, pieces: Any, received: Any) -> None:
            self._tell(far, Given(now_ps, None, number, tuple(pieces), tuple(received)))

        return ended

    def _tell(self, far: _Far, given: Given) -> None:
        """Let a rank know of something when it is asked next."""
        far.given = [*far.flush(), given]
        far.next_ps = given.time_ps if far.next_ps is None else min(far.next_ps, given.time_ps)

    def _carry(self, job: Job, rank: int, nbytes: int) -> Until:
        """Let the DMA engines of a rank move bytes of a collective, between those of its program.

        Where the rank only waits, what its engines do is known here; else its site is asked.
        """
        far, now = self._ranks[rank], self.engine.now
        queue = self.communicators.of_job[job.number].transfers[rank].queue
        what, queues = Carry(queue, -(-nbytes // self._cores), self._packets[job.stream]), far.rings.get(queue, [])
        load = _Load(far)
        if far.due is None and far.idle_ps <= now and far.engines.serve_alone(queues, now):
            load.ends_ps = far.engines.carry(Entry(now, what), queues, self._ps_per_byte)
            far.loads.append(load)
        else:
            load.at_site = True
            self._tell(far, Given(now, what, load=load.number))
        return lambda: self._until(load)

    def _until(self, load: _Load) -> int:
        """Return when bytes are through, as far as is known now; a site that has said so once is not asked again."""
        far, now = load.far, self.engine.now
        if load.at_site and load.known_ps < now and (load.known_ps < 0 or load.ends_ps > load.known_ps):
            asked = far.rank, far.flush(), load.number, now
            ends, report = self._askers[far.site]("carried_until", *asked).result()
            far.heard(report)
            load.ends_ps, load.known_ps = int(ends), now
        return load.ends_ps

    # --- the end -----------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        results: dict[int, Result] = {}
        for answer in [ask("finish") for ask in self._askers]:
            results.update(dict(answer.result()))
        self.results = [results[rank] for rank in sorted(results)]
        which = [pair for order in self.orders for pair in zip(order.ranks, order.which, strict=True)]
        away = {rank for rank, program in which if program < 0}
        self.devices = [
            _End(rank, one.time_ps, one.fault, one.hang, rank in away) for rank, one in enumerate(self.results)
        ]
        self.hang = explain(self)

    def place_of(self, rank: int, caller: Caller) -> Place:
        """Return where in the program a rank called a collective."""
        assert isinstance(caller, CalledFrom)
        return caller.place


def bytes_time(machine: Machine, cores: int) -> float:
    """Return how many picoseconds a DMA engine of a core takes for a byte of a collective."""
    return 1e12 / (machine.figures["rank_rate"].value / cores / DMA_ENGINES)
