"""The devices of some ranks, as one process of several holds them; all that goes in and out are values.

A device that has no collective under way can be reached by nobody: it goes on to its next call.  One that has goes on
as far as it is told, since what CC-cores move may come in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emulator.debug_stream import DebugStream
from emulator.dma.binding import place_of
from emulator.dma.collectives import Arrival, Arrived, Call
from emulator.dma.system import Carrying
from emulator.dma.transfer import Transfer
from emulator.faults import Place
from emulator.machine.ranks.communicators import group_of, signature_of
from emulator.machine.ranks.devices import RankDevice
from emulator.machine.ranks.idle import Carry, OnRing
from emulator.pace import at_pace
from emulator.runtime.execution import Result, result_of
from emulator.settings import Settings
from formats.errors import NeuronError
from formats.isa.enums import CollectiveKind as Kind
from formats.named_tuple import NamedTuple
from formats.neff import Neff, open_neff

__all__ = ["CalledFrom", "Given", "Report", "Site", "SiteOrder"]


class SiteOrder(NamedTuple):
    """What a site is to run: its ranks, their programs by number (-1 for none), and the inputs of each."""

    ranks: tuple[int, ...]
    programs: tuple[bytes, ...]
    which: tuple[int, ...]
    inputs: tuple[Mapping[str, Any], ...]
    target: str
    cores: int
    settings: Settings
    compute_packet: int
    trigger_ps: int
    ps_per_byte: float


class CalledFrom(NamedTuple):
    """Where a program called a collective: which transfer of which queue, and the place."""

    core: int
    queue: str
    number: int
    place: Place


class Given(NamedTuple):
    """What a rank is given and when: bytes to carry, or the end of its n-th collective, or that it cannot be.

    `load` is the number by which the machine asks for bytes again.
    """

    time_ps: int
    carry: Carry | None = None
    call: int = -1
    pieces: Sequence[Arrival] = ()
    received: Sequence[int] = ()
    error: NeuronError | None = None
    load: int = -1


class Report(NamedTuple):
    """Where a rank stands: what it has called since, when something happens next, when its DMA engines are idle."""

    rank: int
    calls: tuple[tuple[int, int, Call], ...]  # time, number, what it asks for
    next_ps: int | None
    idle_ps: int


class Site:
    """Devices by rank; every method returns values."""

    def __init__(self, order: SiteOrder) -> None:
        self.order = order
        settings = order.settings
        self.devices: dict[int, RankDevice] = {}
        self._calls: dict[int, list[tuple[int, int, Call]]] = {rank: [] for rank in order.ranks}
        self._told: dict[int, list[Arrived]] = {rank: [] for rank in order.ranks}
        self._places: dict[int, list[Place]] = {rank: [] for rank in order.ranks}
        self._under_way = dict.fromkeys(order.ranks, 0)
        self._loads: dict[int, dict[int, list[Carrying]]] = {rank: {} for rank in order.ranks}
        self._streams: dict[int, DebugStream | None] = {}
        opened: list[Neff] = [open_neff(each) for each in order.programs]
        for rank, which, inputs in zip(order.ranks, order.which, order.inputs, strict=True):
            seed = None if settings.seed is None else settings.seed * 65537 + rank
            device = self.devices[rank] = RankDevice(
                rank, self, order.target, order.cores, timing=settings.timing, seed=seed, act=settings.act,
                max_steps=settings.max_steps, limit_ps=settings.limit_ps, hang_timeout_ps=settings.hang_timeout_ps,
                max_seconds=settings.max_seconds,
            )  # fmt: skip
            device.dma.packet_bytes = order.compute_packet
            if which < 0:
                device.stay_away()
                continue
            device.load(opened[which])
            device.set_inputs(inputs)
            stream = self._streams[rank] = DebugStream.of(device)
            if stream is not None:
                device.observers.append(stream)

    # --- what devices know of the machine ----------------------------------------------------------------------------

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Note a collective that a rank calls; errors of the call alone are faults of its word."""
        if call.word.kind not in (Kind.RANK, Kind.RANK_IN_TURN) and group_of(call, rank):
            signature_of(call)
        assert isinstance(call.transfer, Transfer)
        place = place_of(self.devices[rank], call.transfer)
        self._places[rank].append(place)
        number = len(self._told[rank])
        self._told[rank].append(arrived)
        self._under_way[rank] += 1
        sent = call._replace(transfer=CalledFrom(call.transfer.core, call.transfer.queue, call.transfer.number, place))
        self._calls[rank].append((now_ps, number, sent))

    def catch_up(self, device: RankDevice) -> None:
        """Leave everything else where it is."""

    # --- what the machine asks ---------------------------------------------------------------------------------------

    def rings(self) -> dict[int, dict[str, list[OnRing]]]:
        """Return the rings of each queue of collectives, by rank and name."""
        found: dict[int, dict[str, list[OnRing]]] = {}
        for rank, device in self.devices.items():
            found[rank] = {}
            for queue in device.dma.queues:
                found[rank].setdefault(queue.name, []).append(OnRing(queue.core, queue.ring))
        return found

    def go_on(self, before_ps: int, given: Sequence[tuple[int, Sequence[Given]]]) -> list[Report]:
        """Give ranks what they are given, let them go on to a time, and say where they stand."""
        with at_pace(), np.errstate(all="ignore"):
            return [self._go_on(rank, what, before_ps) for rank, what in given]

    def carried_until(self, rank: int, given: Sequence[Given], load: int, now_ps: int) -> tuple[int, Report]:
        """Give a rank what it is given; return when it is through with bytes that it carries, as known at a time.

        Who has asked until they were through does not ask again.
        """
        device = self.devices[rank]
        with at_pace(), np.errstate(all="ignore"):
            for each in given:
                self._give(rank, each)
            device.run_before(now_ps)
        ends = max(map(device.dma.carried_until, self._loads[rank][load]), default=0)
        if ends <= now_ps:
            del self._loads[rank][load]
        return ends, self._report(rank)

    def finish(self) -> list[tuple[int, Result]]:
        """End: nothing will happen any more in the whole machine; return what came of each rank."""
        found = []
        for rank, device in self.devices.items():
            device.settle()
            if device.model is None:
                found.append((rank, Result({}, ())))
                continue
            stream = self._streams[rank]
            found.append((rank, result_of(device, 0.0, (), () if stream is None else stream.records())))
            device.release()
        return found

    # --- one rank ----------------------------------------------------------------------------------------------------

    def _go_on(self, rank: int, given: Sequence[Given], before_ps: int) -> Report:
        for each in given:
            self._give(rank, each)
        device = self.devices[rank]
        if self._under_way[rank]:
            device.run_before(before_ps)
        else:
            while not self._under_way[rank] and (due := device.next_ps) is not None:
                device.run_before(due + self.order.trigger_ps)
        return self._report(rank)

    def _give(self, rank: int, given: Given) -> None:
        device, now = self.devices[rank], given.time_ps
        device.run_before(now)
        if given.carry is not None:
            what = given.carry
            self._loads[rank][given.load] = [
                device.dma.carry(queue, what.nbytes, what.packet, self.order.ps_per_byte, now)
                for queue in device.dma.queues if queue.name == what.queue
            ]  # fmt: skip
            return
        self._under_way[rank] -= 1
        if given.error is not None:
            device.fail(given.error, self._places[rank][given.call])
        else:
            self._told[rank][given.call](now, given.pieces, given.received)

    def _report(self, rank: int) -> Report:
        device = self.devices[rank]
        calls, self._calls[rank] = tuple(self._calls[rank]), []
        return Report(rank, calls, device.next_ps, device.dma.idle_from())
