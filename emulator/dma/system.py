"""The DMA of a device: takes transfers, plans their time on engines and memory, completes each queue in order.

The engines of a core serve their rings first come, first served; real ones go round at packet boundaries, which
shares the same bandwidth in another order. Source: hardware.md 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.addresses import DMA_ENGINES, DMA_RINGS, address_map
from emulator.cost.dma import UNIT, dma_costs
from emulator.dma.binding import bind, place_of
from emulator.dma.queues import DmaQueue
from emulator.dma.regions import regions_of
from emulator.dma.rings import DmaEngine, Ring, Segment, share_out
from emulator.dma.transfer import Transfer
from emulator.errors import FaultError, LoadError
from emulator.events import Event
from formats.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["DmaQueue", "DmaSystem"]


class DmaSystem:
    """All DMA engines, rings and queues of one device; `engines[core][engine].rings[ring]`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.addresses = address_map(device.target.generation)
        self.costs = dma_costs(device.target.name) if device.timing else UNIT
        self.engines: list[list[DmaEngine]] = []
        self.queues: list[DmaQueue] = []
        self._by_name: dict[tuple[int, str], DmaQueue] = {}
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
            dma_engine.rings[ring].queue = name
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
        costs = self.costs
        begin = max(now_ps, queue.generator_ps)
        queue.generator_ps = begin + costs.trigger_ps(transfer.prebuilt)
        transfer.generated_ps = begin
        writes = transfer.writes_hbm
        ready = begin + costs.start_ps + costs.first_byte_ps(writes)
        pieces = transfer.pieces
        transfer.shares = share_out(pieces, costs.rows_per_engine, queue.num_queues)
        share = self._share(transfer)
        ring = queue.ring
        each = transfer.nbytes / pieces if pieces else 0
        started, end = None, ready
        for engine, (first, last) in zip(self.engines[transfer.core], transfer.shares, strict=False):
            count = last - first
            nbytes = int(count * each)
            at = max(ready, engine.free_ps)
            engine.free_ps = done = at + costs.data_ps(count, nbytes, writes, share)
            engine.busy_ps += done - at
            engine.nbytes += nbytes
            engine.rings[ring].push(Segment(transfer, first, last))
            started = at if started is None or at < started else started
            end = max(end, done)
        stack = self.addresses.hbm_of(transfer.core)
        hbm_bytes = transfer.hbm_bytes
        if hbm_bytes:
            self._hbm_free[stack] = max(self._hbm_free[stack], ready) + int(hbm_bytes * costs.hbm_ps_per_byte)
            end = max(end, self._hbm_free[stack])
        transfer.started_ps = ready if started is None else started
        planned = end + costs.completion_ps(len(transfer.shares))
        # In order inside a queue, whatever the engines did.
        transfer.planned_ps = max(planned, queue.pending[-1].planned_ps) if queue.pending else planned

    def _share(self, transfer: Transfer) -> float:
        op = transfer.op
        if op in ("copy", "cast"):
            return 1.0
        return self.costs.transpose_share if op == "transpose" else self.costs.compute_share

    def _schedule(self, queue: DmaQueue, time_ps: int) -> None:
        self._device.schedule(time_ps, lambda now_ps: self._complete(queue, now_ps))

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
        for engine, _ in zip(self.engines[transfer.core], transfer.shares, strict=False):
            engine.rings[queue.ring].pop()
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
