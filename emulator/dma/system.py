"""The DMA of a device: takes transfers, plans their time on engines and memory, completes each queue in order.

The engines of a core go round their rings at packet boundaries (`arbitration`); device memory serves transfers as they
come. Source: hardware.md 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import heapify
from typing import TYPE_CHECKING

from emulator.addresses import DMA_ENGINES, DMA_RINGS, address_map
from emulator.dma.arbitration import Run
from emulator.dma.binding import bind, place_of
from emulator.dma.queues import DmaQueue
from emulator.dma.regions import regions_of
from emulator.dma.rings import DmaEngine, Ring, share_out
from emulator.dma.transfer import Shares, Transfer
from emulator.errors import FaultError, LoadError
from emulator.events import Event
from formats.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from emulator.cost.dma import DmaCosts
    from emulator.device import Device

__all__ = ["DmaQueue", "DmaSystem"]

PACKET_BYTES = 4096     # of descriptors from load time, by default (hardware.md 4.1); those of generators are not cut


class DmaSystem:
    """All DMA engines, rings and queues of one device; `engines[core][engine].rings[ring]`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.addresses = address_map(device.target.generation)
        self.costs = device.costs.dma
        # What other costs for some transfers would change: the costs that a transfer is planned with.
        self.reprice: Callable[[Transfer], DmaCosts] | None = None
        self.engines: list[list[DmaEngine]] = []
        self.queues: list[DmaQueue] = []
        self._by_name: dict[tuple[int, str], DmaQueue] = {}
        self._durations: dict[tuple[Shares, int, bool, str], tuple[int, ...]] = {}
        self._hbm_free = [0] * len(self.addresses.hbm)
        self.triggered = 0

    def rings(self, core: int = 0) -> tuple[tuple[Ring, ...], ...]:
        """Return the rings of a core by engine and number."""
        return tuple(engine.rings for engine in self._engines_of(core))

    def _engines_of(self, core: int) -> list[DmaEngine]:
        while len(self.engines) <= core:
            self.engines.append([DmaEngine(len(self.engines), index) for index in range(DMA_ENGINES)])
        return self.engines[core]

    def add_queue(
        self,
        core: int,
        name: str,
        engine: str,
        num_queues: int = DMA_ENGINES,
        semaphores: tuple[int, ...] = (),
        kind: str = "dynamic",
    ) -> DmaQueue:
        """Return a new queue on the next free ring number of its core.

        Raises LoadError where the core has no ring left or the queue claims more engines than there are.
        """
        if not 1 <= num_queues <= DMA_ENGINES:
            raise LoadError(f"queue {name!r} has {num_queues} rings; a core has 1 to {DMA_ENGINES}")
        if (core, name) in self._by_name:
            raise LoadError(f"core {core} has queue {name!r} already")
        ring = sum(queue.core == core for queue in self.queues)
        if ring >= DMA_RINGS:
            raise LoadError(f"queue {name!r} is number {ring + 1} on core {core}; DMA engines have {DMA_RINGS} rings")
        queue = DmaQueue(core, name, engine, ring, num_queues, semaphores, kind)
        for dma_engine in self._engines_of(core)[:num_queues]:
            dma_engine.rings[ring].owner = queue
        self.queues.append(queue)
        self._by_name[core, name] = queue
        return queue

    def queue(self, core: int, name: str) -> DmaQueue:
        """Return a queue by core and name; LoadError where there is none."""
        try:
            return self._by_name[core, name]
        except KeyError:
            raise LoadError(f"core {core} has no queue {name!r}") from None

    def trigger(self, transfer: Transfer, now_ps: int) -> None:
        """Hand a transfer to its queue.

        Raises FaultError where it would touch bytes outside its variables or memories: before anything moves.
        """
        queue = self.queue(transfer.core, transfer.queue)
        transfer.number, self.triggered = self.triggered, self.triggered + 1
        transfer.move = bind(self._device, transfer)
        transfer.triggered_ps = now_ps
        self._plan(transfer, queue, now_ps)
        transfer.state = "queued"
        queue.pending.append(transfer)
        if len(queue.pending) == 1:
            self._schedule(queue, transfer.planned_ps)

    def _plan(self, transfer: Transfer, queue: DmaQueue, now_ps: int) -> None:
        """Reserve generator, engines and memory bandwidth and set the transfer's times."""
        costs = self.costs if self.reprice is None else self.reprice(transfer)
        begin = max(now_ps, queue.generator_ps)
        maker = "prebuilt" if transfer.prebuilt else "software" if transfer.engine == "Pool" else "hardware"
        queue.generator_ps = begin + costs.trigger_ps(maker)
        transfer.generated_ps = begin
        writes = transfer.writes_hbm
        ready = begin + costs.start_ps(writes, maker)
        fill = 0 if writes else costs.fill_ps
        stagger = costs.stagger_ps(writes)
        transfer.shares = shares = share_out(transfer.pieces, costs.rows_per_engine, queue.num_queues)
        queue.handed[shares] = queue.handed.get(shares, 0) + 1
        first = ready
        times = self._times(transfer, shares, writes, costs)
        # A packet is a descriptor; those from load time are cut.
        cuts = max(-(-transfer.nbytes // (shares[-1][1] * PACKET_BYTES)), 1) if transfer.prebuilt and shares else 1
        spans: list[tuple[int, int]] = []
        others: list[tuple[int, int, int, int]] = []    # transfers whose turns on an engine come at other times now
        for engine, duration, (low, high) in zip(self.engines[transfer.core], times, shares, strict=False):
            packets = (high - low) * cuts
            each = duration // packets
            last = duration - each * (packets - 1) + costs.signal_ps
            run = Run(transfer.number, queue.ring, ready, packets, each, last, fill)
            *given, (_, begun, end) = engine.give(run, now_ps)
            spans.append((begun, end))
            others += [(number, engine.index, other_begun, other_end) for number, other_begun, other_end in given]
            ready += stagger
        stack = self.addresses.hbm_of(transfer.core)
        hbm_bytes = transfer.hbm_bytes
        at = transfer.memory_ps = first
        if hbm_bytes:
            at = max(self._hbm_free[stack], first)
            rate = costs.hbm_write_ps_per_byte if writes else costs.hbm_read_ps_per_byte
            self._hbm_free[stack] = transfer.memory_ps = at + int(hbm_bytes * rate)
        transfer.spans = tuple(spans)
        if others:
            self._replan(transfer.core, others)
        self._set_times(transfer, queue.pending[-1].planned_ps if queue.pending else 0)
        if self._device.plan_hooks:
            holds = self._holds(transfer, range(len(spans)))
            if hbm_bytes:
                holds.append((("hbm", stack, 0), at, transfer.memory_ps))
            for hook in self._device.plan_hooks:
                hook(transfer, holds)

    def _set_times(self, transfer: Transfer, before_ps: int) -> None:
        """Set start and completion of a transfer from its spans; in order inside a queue, whatever the engines did."""
        costs = self.costs if self.reprice is None else self.reprice(transfer)
        started, end = transfer.memory_ps, transfer.memory_ps
        if transfer.spans:
            started = min(begun for begun, _ in transfer.spans)
            end = max(end, *(done for _, done in transfer.spans))
        transfer.started_ps = started
        transfer.planned_ps = max(end + costs.completion_ps(len(transfer.shares)), before_ps)

    def _holds(self, transfer: Transfer, engines: Iterable[int]) -> list[tuple[tuple[str, int, int], int, int]]:
        """Return what a transfer occupies of DMA engines, for observers, who name causes from it."""
        return [(("dma", transfer.core, engine), *transfer.spans[engine]) for engine in engines]

    def _replan(self, core: int, others: Iterable[tuple[int, int, int, int]]) -> None:
        """Give pending transfers other spans, as (transfer, engine, begun, end), and queues the times that follow."""
        queues = [queue for queue in self.queues if queue.core == core]
        pending = {transfer.number: transfer for queue in queues for transfer in queue.pending}
        changed: dict[int, list[int]] = {}
        for number, engine, begun, end in others:
            transfer = pending.get(number)
            if transfer is not None and transfer.spans[engine] != (begun, end):
                transfer.spans = (*transfer.spans[:engine], (begun, end), *transfer.spans[engine + 1 :])
                changed.setdefault(number, []).append(engine)
        for queue in queues:
            if not any(transfer.number in changed for transfer in queue.pending):
                continue
            due, before = queue.pending[0].planned_ps, 0
            for transfer in queue.pending:
                self._set_times(transfer, before)
                before = transfer.planned_ps
            if queue.pending[0].planned_ps != due:
                self._unschedule(queue)
                self._schedule(queue, queue.pending[0].planned_ps)
        for number, engines in changed.items():
            for hook in self._device.replan_hooks:
                hook(pending[number], self._holds(pending[number], engines))

    def _unschedule(self, queue: DmaQueue) -> None:
        """Take back when the queue's oldest transfer was to complete; `Device.ahead` reads it off the heap."""
        heap = self._device.heap
        heap[:] = [entry for entry in heap if not (isinstance(entry[2], partial) and entry[2].args[:1] == (queue,))]
        heapify(heap)

    def _times(self, transfer: Transfer, shares: Shares, writes: bool, costs: DmaCosts) -> tuple[int, ...]:
        """Return how long each engine is busy with its part of a transfer."""
        op = transfer.op
        key = (shares, transfer.nbytes, writes, op)
        times = self._durations.get(key) if costs is self.costs else None
        if times is None:
            share = self._share(op)
            each = transfer.nbytes / shares[-1][1] if shares else 0
            times = tuple(
                costs.data_ps(last - first, int((last - first) * each), writes, share) for first, last in shares
            )
            if costs is self.costs:
                self._durations[key] = times
        return times

    def _share(self, op: str) -> float:
        if op in ("copy", "cast"):
            return 1.0
        return self.costs.transpose_share if op == "transpose" else self.costs.compute_share

    def _schedule(self, queue: DmaQueue, time_ps: int) -> None:
        # A partial, not a lambda: `Device.ahead` reads the queue off it.
        self._device.schedule(time_ps, partial(self._complete, queue))

    def _complete(self, queue: DmaQueue, now_ps: int) -> None:
        """Move the bytes of the queue's oldest transfer, then raise its semaphores."""
        device, transfer = self._device, queue.pending[0]
        device.steps += 1
        event = None
        try:
            if device.watched:
                event = self._event(transfer, now_ps)
                for hook in device.effect_hooks:
                    hook(event)
            if transfer.move is not None:
                transfer.move()
            self._retire(queue, transfer, now_ps)
            if transfer.semaphore is not None and transfer.increment:
                device.cores[transfer.core].semaphores.add(transfer.semaphore, transfer.increment, now_ps)
            if transfer.remote is not None:
                core, semaphore, increment = transfer.remote
                device.cores[core].semaphores.add(semaphore, increment, now_ps)
        except (FaultError, FormatError, UnsupportedError) as error:
            device.changes.clear()
            device.fail(error, place_of(device, transfer))
            return
        if queue.pending:
            self._schedule(queue, max(now_ps, queue.pending[0].planned_ps))
        if event is not None:
            event.semaphores = tuple(device.changes)
            device.changes.clear()
            device.emit(event)

    def _retire(self, queue: DmaQueue, transfer: Transfer, now_ps: int) -> None:
        queue.pending.popleft()
        queue.completed += 1
        queue.nbytes += transfer.nbytes
        queue.retired[transfer.shares] = queue.retired.get(transfer.shares, 0) + 1
        transfer.state, transfer.completed_ps = "done", now_ps

    def _event(self, transfer: Transfer, now_ps: int) -> Event:
        device = self._device
        width = device.arch.sbuf_bytes.whole
        return Event(
            device.next_number(),
            now_ps,
            transfer.triggered_ps,
            transfer.core,
            transfer.queue,
            transfer.pc,
            transfer,
            "dma",
            (),
            lambda: regions_of(transfer.reads, width),
            lambda: regions_of(transfer.writes, width),
        )
