"""A machine of ranks that run programs: devices, the CC-cores between them, one order of events.

Devices reach each other through collectives only, and these begin no sooner than the trigger delay after the word that
asks for them.  So every device may go on by that delay past the earliest event of all, up to the next event of the
CC-cores, without anybody noticing: what comes out is what one heap of all events would give (conservative
synchronisation, the delay as lookahead).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dma.binding import place_of
from emulator.dma.collectives import Arrival, Arrived, Call, Caller
from emulator.dma.transfer import Transfer
from emulator.errors import InputError, LoadError
from emulator.faults import Place
from emulator.machine.arbitration import MAX_STREAMS, packet_sizes
from emulator.machine.collectives.engine import Engine, Faults, Job, Until
from emulator.machine.collectives.steps import uncollected
from emulator.machine.machine import Machine
from emulator.machine.ranks.communicators import Communicators
from emulator.machine.ranks.devices import RankDevice
from emulator.machine.ranks.explain import RankHang, explain
from emulator.pace import at_pace
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.neuron_core import DMA_ENGINES

__all__ = ["USUAL_PACKETS", "Carried", "Packets", "RankedMachine"]

Array = npt.NDArray[Any]
_NEVER = 1 << 62


class Carried(NamedTuple):
    """Bytes of a collective on the DMA engines of a rank: from when to when, and how long they would take alone.

    `spans` are begin and end on each engine, core by core.
    """

    rank: int
    begin_ps: int
    end_ps: int
    alone_ps: int
    spans: tuple[tuple[tuple[int, int], ...], ...] = ()


class Packets(NamedTuple):
    """Bytes of a packet: of compute from load-time descriptors, and of collectives by stream (collectives.md 9).

    They are NEURON_RT_DBG_DMA_PACKETIZATION_SIZE and NEURON_RT_DBG_CC_DMA_PACKET_SIZE.
    """

    compute: int | None = None
    collective: tuple[int, ...] = ()


USUAL_PACKETS = Packets()


class RankedMachine:
    """Ranks 0 to N - 1 of a machine, each with a device; options as in `Device`."""

    def __init__(
        self, machine: Machine, ranks: int, *, cores: int = 1, seed: int | None = None, faults: Faults | None = None,
        record: bool = False, packets: Packets = USUAL_PACKETS, **options: Any,
    ) -> None:  # fmt: skip
        if not 1 <= ranks <= machine.ranks:
            raise InputError(f"{ranks} ranks; {machine.instance.name} has 1 to {machine.ranks}")
        self.machine = machine
        self.engine = Engine(machine, seed=0 if seed is None else seed + 1, faults=faults, record=record)
        self.hang: RankHang | None = None
        self.trigger_ps = int(machine.figures["trigger"].value * 1000)
        self.communicators = Communicators(machine, self.engine, self.trigger_ps)
        target = machine.instance.target
        self.devices = [
            RankDevice(rank, self, target, cores, seed=None if seed is None else seed * 65537 + rank, **options)
            for rank in range(ranks)
        ]
        compute, self._packets = packet_sizes(packets.compute, packets.collective, MAX_STREAMS)
        if self.devices[0].timing:
            self.engine.carry = self._carry
        for device in self.devices:
            device.dma.packet_bytes = compute
        # Each physical core moves its share with its own DMA engines.
        rate = machine.figures["rank_rate"].value / cores / DMA_ENGINES
        self.ps_per_byte = 1e12 / rate  # of one engine
        self._record = record
        self._interrupted = False
        self._touched: set[int] = set()  # ranks to which the CC-cores have done something
        self.carried: list[Carried] = []

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return len(self.devices)

    # --- programs and tensors ----------------------------------------------------------------------------------------

    def load(self, programs: Neff | Sequence[Neff | None]) -> None:
        """Load one program on all ranks, or one for each; a rank without one has ended from the start."""
        each = [programs] * self.ranks if isinstance(programs, Neff) else list(programs)
        if len(each) != self.ranks:
            raise LoadError(f"{len(each)} programs for {self.ranks} ranks")
        for device, neff in zip(self.devices, each, strict=True):
            if neff is None:
                device.stay_away()
            else:
                device.load(neff)

    def set_inputs(self, rank: int, inputs: Mapping[str, Array]) -> None:
        """Store arrays as input tensors of a rank."""
        self.devices[rank].set_inputs(inputs)

    def outputs(self, rank: int) -> dict[str, Array]:
        """Return copies of the output tensors of a rank."""
        return self.devices[rank].outputs()

    def place_of(self, rank: int, caller: Caller) -> Place:
        """Return where in the program a rank triggered a transfer."""
        assert isinstance(caller, Transfer)
        return place_of(self.devices[rank], caller)

    def _carry(self, job: Job, rank: int, nbytes: int) -> Until:
        """Let the DMA engines of a rank move bytes of a collective, between those of its program."""
        device, stream, now = self.devices[rank], job.stream, self.engine.now
        self._touched.add(rank)
        transfer = self.communicators.of_job[job.number].transfers[rank]
        share = -(-nbytes // len(device.cores))
        parts = [
            device.dma.carry(queue, share, self._packets[stream], self.ps_per_byte, now)
            for queue in device.dma.queues if queue.name == transfer.queue
        ]  # fmt: skip

        def until() -> int:
            return max(map(device.dma.carried_until, parts), default=now)

        if not self._record:
            return until
        alone = int(-(-share // DMA_ENGINES) * self.ps_per_byte)
        number = len(self.carried)
        self.carried.append(Carried(rank, now, now, alone))

        def recorded() -> int:
            ends = until()
            if ends:  # else it was through long ago
                spans = tuple(map(device.dma.carried_spans, parts))
                self.carried[number] = self.carried[number]._replace(end_ps=ends, spans=spans)
            return ends

        return recorded

    # --- time --------------------------------------------------------------------------------------------------------

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Take a collective of a rank over."""

        def told(time_ps: int, pieces: Sequence[Arrival], received: Sequence[int]) -> None:
            self._touched.add(rank)
            arrived(time_ps, pieces, received)

        self.communicators.begin(rank, call, now_ps, told)

    def run(self) -> str:
        """Run all ranks to the end; return "finished", or the worst that happened to one: "fault", "hang"."""
        with at_pace(), uncollected(), np.errstate(all="ignore"):
            while not self._interrupted and self._turn(_NEVER):
                pass
        if self._interrupted:
            for device in self.devices:
                device.stop()
        self.settle()
        return self.outcome

    def go_on(self) -> bool:
        """Let what is due first happen, and what nothing else can reach before; return whether there was something."""
        with np.errstate(all="ignore"):
            return self._turn(_NEVER)

    def interrupt(self) -> None:
        """End the run between two completions, or two events of CC-cores; for signal handlers."""
        self._interrupted = True
        for device in self.devices:
            device.interrupt()

    @property
    def outcome(self) -> str:
        """Return "fault" or "hang" where a rank ended so, "running" where one goes on, else "finished"."""
        found = {device.outcome for device in self.devices}
        return next((each for each in ("fault", "running", "hang") if each in found), "finished")

    @property
    def now_ps(self) -> int:
        """Return the time of the latest event."""
        return max(device.now_ps for device in self.devices)

    def settle(self) -> None:
        """Let every device see that nothing more will happen; note why ranks wait for each other."""
        for device in self.devices:
            device.settle()
        if self.outcome != "running":
            self.hang = explain(self)

    def _turn(self, before_ps: int, but: RankDevice | None = None) -> bool:
        """Let the earliest events before a time happen, those of one device left out; return whether there were any."""
        due = self.engine.next_ps
        first = min([at for device in self.devices if device is not but and (at := device.next_ps) is not None],
                    default=None)  # fmt: skip
        if due is not None and due < before_ps and (first is None or due <= first):
            self._carry_on(before_ps if first is None else min(before_ps, first + 1), alone=but is not None)
            return True
        if first is None or first >= before_ps:
            return False
        window = min(first + self.trigger_ps, before_ps)
        if due is not None:
            window = min(window, due)
        for device in self.devices:
            if device is not but and (at := device.next_ps) is not None and at < window:
                device.run_before(window)
        return True

    def _carry_on(self, before_ps: int, alone: bool) -> None:
        """Let the CC-cores go on until a time, or to where a device has something to do earlier; `alone` for one event.

        Devices are not asked between: while all of them wait, a ring of hundreds has events by the hundred thousand.
        """
        engine, touched = self.engine, self._touched
        while (due := engine.next_ps) is not None and due < before_ps and not self._interrupted:
            touched.clear()
            engine.step()
            if alone:
                return
            for rank in touched:
                at = self.devices[rank].next_ps
                if at is not None and at < before_ps:
                    before_ps = at + 1

    def catch_up(self, device: RankDevice) -> None:
        """Bring everything else to the time of a device's next event; where it has none, on until it has one."""
        while True:
            at = device.next_ps
            if not self._turn(_NEVER if at is None else at + 1, device):
                return
