"""Histories of ranks as a tree of moments, worked out on one device that goes from one to another.

What a device does follows from its program and from what the machine gives it, and when: bytes of collectives that its
DMA engines carry, and the ends of its collectives.  Ranks of one program that were given the same at the same times are
at one moment, and stand for each other in all that concerns time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from emulator.dma.collectives import Arrived, Call
from emulator.dma.queues import DmaQueue
from emulator.dma.system import Carrying
from emulator.dma.transfer import Transfer, TransferPlan
from emulator.faults import Fault
from emulator.machine.ranks.devices import RankDevice
from emulator.machine.ranks.idle import Entry
from emulator.timed_words import TimedWords
from formats.named_tuple import NamedTuple

__all__ = ["Faulted", "Moment", "Seat"]

_NEVER = 1 << 62
_AHEAD = 1_000_000  # picoseconds that a device goes on at once where nothing can reach it
_SAVED = 2048  # states that are kept besides that of the beginning; others are worked out again


class Faulted(Exception):  # noqa: N818  it ends the attempt to let ranks stand for each other
    """Says that the program faulted; whether it does so on every rank is not known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Moment:
    """Where ranks of one history stand: behind what they were given, or behind a collective that they called.

    `call` is the next moment where the device calls a collective if it is given nothing before; until `reached_ps` it
    calls none.  `quiet`: nothing happens any more unless something is given; the DMA engines are idle from `idle_ps`.
    """

    __slots__ = (
        "asked", "before", "call", "carrying", "entry", "given", "idle_ps", "parent", "quiet", "reached_ps", "state",
        "time_ps", "until",
    )  # fmt: skip

    def __init__(self, parent: Moment | None, time_ps: int, entry: Entry | None = None) -> None:
        self.parent, self.time_ps, self.entry = parent, time_ps, entry
        self.before: Sequence[Entry] = ()  # carried since the moment before, of no account for what comes
        self.asked: tuple[int, Call] | None = None  # the number of the collective called here, and what it asks for
        self.given: dict[Entry, Moment] = {}
        self.call: Moment | None = None
        self.reached_ps = time_ps
        self.carrying: tuple[Carrying, ...] = ()  # what was given to carry, by core
        # Until when what is carried, as it was known here at a time.
        self.until: dict[tuple[Carrying, ...], tuple[int, int]] = {}
        self.quiet = False
        self.idle_ps = 0
        self.state: _State | None = None


class _State(NamedTuple):
    reached_ps: int
    parts: tuple[Any, ...]
    carried: tuple[tuple[Carrying, int], ...]
    told: tuple[Arrived, ...]
    under_way: int
    plans: tuple[tuple[Transfer, TransferPlan], ...]


class Seat:
    """The device of one program; `at` is the moment where it stands, `reached_ps` how far it went from there."""

    def __init__(self, device: RankDevice, ps_per_byte: float) -> None:
        self.device, self.ps_per_byte = device, ps_per_byte
        device.around = self
        device.dma.moves_data = False
        for core in device.cores:
            for engine in core.engines.values():
                engine.bound = TimedWords(engine)
        self.root = self.at = Moment(None, 0)
        self.reached_ps = 0
        self.moments = 1
        self._told: list[Arrived] = []
        self._under_way = 0  # collectives that the device has called and that have not ended
        self._saved: OrderedDict[Moment, None] = OrderedDict()
        self._parts = list(_parts_of(device))
        self.queues: dict[str, list[DmaQueue]] = {}
        for queue in device.dma.queues:
            self.queues.setdefault(queue.name, []).append(queue)
        self.root.state = self._state()

    # --- what the device knows of the machine ------------------------------------------------------------------------

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Note that the device calls a collective, and stand behind that."""
        here, number = self.at, len(self._told)
        self._told.append(arrived)
        self._under_way += 1
        if here.call is None:
            # Nobody looks at what it brings: kept is only how much.
            nothing = np.broadcast_to(np.zeros((), call.source.dtype), call.source.shape)
            here.call = Moment(here, now_ps)
            here.call.asked = number, call._replace(source=nothing)
            self.moments += 1
        self.at = here.call

    def catch_up(self, device: RankDevice) -> None:
        """Leave everything else where it is."""

    # --- from moment to moment ---------------------------------------------------------------------------------------

    def work_out(self, moment: Moment, before_ps: int) -> None:
        """Find out what a device does behind a moment until a time, given nothing.

        While no collective of it is under way, nobody can give it anything: it goes on to the next one.
        """
        self._stand(moment, moment.reached_ps)
        if self._under_way:
            self._run(before_ps)
            return
        while not self._under_way and not self.at.quiet:
            due = self.device.next_ps
            self._run(_NEVER if due is None else due + _AHEAD)

    def give(self, moment: Moment, entry: Entry, before: Sequence[Entry] = ()) -> Moment:
        """Return the moment behind something given; `before` was carried by engines that are idle again."""
        found = moment.given.get(entry)
        if found is None:
            self._stand(moment, entry.time_ps)
            found = moment.given[entry] = Moment(moment, entry.time_ps, entry)
            found.before = before
            self.moments += 1
            found.carrying = self._apply(found)
            self._look()
        return found

    def carried_until(self, moment: Moment, what: tuple[Carrying, ...], now_ps: int) -> int:
        """Return when a device at a moment is through with what it carries, as far as is known at a time."""
        known_ps, ends = moment.until.get(what, (-1, 0))
        if known_ps < now_ps and (known_ps < 0 or ends > known_ps):
            self._stand(moment, now_ps)
            self._run(now_ps)
            ends = max(map(self.device.dma.carried_until, what), default=0)
            # Nothing puts it off any more where the device only waits.
            moment.until[what] = _NEVER if moment.quiet else now_ps, ends
        return ends

    def stand_at_end(self, moment: Moment) -> RankDevice:
        """Return the device at a quiet moment, when it has seen that nothing more happens."""
        self._stand(moment, _NEVER)
        self.device.settle()
        self.at = Moment(moment, self.device.now_ps)  # it is there no longer
        return self.device

    def _run(self, before_ps: int) -> None:
        if before_ps > self.reached_ps:
            self.device.run_before(before_ps)
            self.reached_ps = before_ps
        if self.device.fault is not None:
            raise Faulted(self.device.fault)
        self._look()

    def _look(self) -> None:
        """Note how far the moment is known where the device stands."""
        here, device = self.at, self.device
        here.reached_ps = max(here.reached_ps, self.reached_ps)
        if not here.quiet and device.next_ps is None:
            here.quiet, here.reached_ps = True, _NEVER
            here.idle_ps = _NEVER if device.finished else device.dma.idle_from()
            self._save()

    def _apply(self, moment: Moment) -> tuple[Carrying, ...]:
        """Give the device what leads to a moment; return what it carries of that."""
        entry = moment.entry
        carrying: tuple[Carrying, ...] = ()
        assert entry is not None
        for each in moment.before:
            self._run(each.time_ps)
            self._carry(each)
        self._run(entry.time_ps)
        if entry.carry is not None:
            carrying = self._carry(entry)
        else:
            self._under_way -= 1
            self._told[entry.call](entry.time_ps, (), ())
        self.at = moment
        return carrying

    def _carry(self, entry: Entry) -> tuple[Carrying, ...]:
        what, dma = entry.carry, self.device.dma
        assert what is not None
        return tuple(
            [dma.carry(queue, what.nbytes, what.packet, self.ps_per_byte, entry.time_ps)
             for queue in self.queues.get(what.queue, ())]
        )  # fmt: skip

    def _stand(self, moment: Moment, by_ps: int) -> None:
        """Bring the device to a moment, not beyond a time there: from the nearest moment whose state was kept."""
        if self.at is moment and self.reached_ps <= by_ps:
            return
        if self.at.state is None and self.at.parent is not None:
            self._save()
        path: list[Moment] = []
        here, limit = moment, by_ps
        while here.state is None or here.state.reached_ps > limit:
            path.append(here)
            if here.entry is not None:
                limit = here.before[0].time_ps if here.before else here.entry.time_ps
            else:
                limit = here.time_ps
            assert here.parent is not None
            here = here.parent
        self._restore(here)
        for each in reversed(path):
            if each.entry is not None:
                self._apply(each)
        if self.at is not moment:
            self._run(moment.time_ps + 1)  # it calls a collective on the way

    # --- states ------------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        here = self.at
        here.state = self._state()
        self._saved[here] = None
        self._saved.move_to_end(here)
        while len(self._saved) > _SAVED:
            self._saved.popitem(last=False)[0].state = None

    def _state(self) -> _State:
        dma = self.device.dma
        # A collective that has ended at this moment has its plan from outside.
        plans = tuple((each, each.plan) for queue in dma.queues for each in queue.pending if queue.kind == "collective")
        return _State(
            self.reached_ps,
            tuple(take() for take, _ in self._parts),
            tuple(dma.carried.items()),
            tuple(self._told),
            self._under_way,
            plans,
        )

    def _restore(self, moment: Moment) -> None:
        state = moment.state
        assert state is not None
        for (_, put), part in zip(self._parts, state.parts, strict=True):
            put(part)
        self.device.dma.carried = dict(state.carried)
        for transfer, plan in state.plans:
            transfer.plan = plan
        self._told[:], self._under_way = state.told, state.under_way
        self.at, self.reached_ps = moment, state.reached_ps


def _parts_of(device: RankDevice) -> Iterator[tuple[Any, Any]]:
    """Yield how to read and how to put back each part of a device's state; memories count for nothing in time."""
    for core in device.cores:
        yield core.contention.snapshot, core.contention.restore
        yield core.semaphores.snapshot, core.semaphores.restore
        yield core.events.snapshot, core.events.restore
        yield core.generators.snapshot, core.generators.restore
        yield core.pe.flow, core.pe.restore_flow
        for engine in core.engines.values():
            yield engine.snapshot, engine.restore
    yield device.dma.snapshot, device.dma.restore
    yield device.progress, device.restore_progress
