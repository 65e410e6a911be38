"""The DMA of a device: takes transfers, plans their time on engines and memory, completes each queue in order.

The engines of a core go round their rings at packet boundaries (`arbitration`); device memory serves transfers as they
come. Source: hardware.md 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heapify
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from emulator.addresses import address_map
from emulator.dma.binding import bind, place_of
from emulator.dma.collectives import COLLECTIVE, Arrival, CollectiveTransfer, Ranks, alone, call_of, put
from emulator.dma.course import PACKET_BYTES, Course, course_of, maker_of
from emulator.dma.engines import DmaEngines, DmaEnginesState, Stretch
from emulator.dma.holding import held_up_until
from emulator.dma.queues import DmaQueue, QueueState, descriptors_in_ring
from emulator.dma.regions import TransferRegions, regions_of
from emulator.dma.rings import RING_SIZE, Ring
from emulator.dma.transfer import UNPLANNED, Facts, Transfer, TransferPlan
from emulator.dma.work import Piece, spans_by_engine
from emulator.errors import LoadError
from emulator.events import Event
from emulator.faults import FaultError
from formats.errors import FormatError, UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_ENGINES, DMA_RINGS

if TYPE_CHECKING:
    from emulator.context import CoreContext, DeviceContext
    from emulator.cost.dma import DmaCosts

__all__ = ["Carrying", "DmaFlow", "DmaQueue", "DmaState", "DmaSystem", "carried_stretch"]

_made = tuple.__new__  # a named tuple in half the time


# Bytes are asked for when they have passed links too, whose latencies are 15 us at most: known for that long, and more.
_ASKED_PS = 100_000_000


class Carrying(NamedTuple):
    """Bytes of a collective on the engines of a core: a transfer with a number below 0."""

    core: int
    number: int


class DmaFlow(NamedTuple):
    """What the DMA of a device counts besides its engines and queues."""

    triggered: int
    hbm_free: tuple[int, ...]
    signals_free: tuple[tuple[int, int], ...]


class DmaState(NamedTuple):
    """The state of the DMA of a device; engines of each core in order."""

    flow: DmaFlow
    engines: tuple[DmaEnginesState, ...]
    queues: tuple[QueueState, ...]


class DmaSystem:
    """All DMA engines, rings and queues of one device; `engines[core].rings[engine][ring]`."""

    NOT_STATE: ClassVar = {
        **dict.fromkeys(("_device", "_stacks", "addresses", "costs", "_by_name", "ranks"), "wiring"),
        "reprice": "a what-if of the caller",
        **dict.fromkeys(("_courses", "_priced"), "a cache"),
        **dict.fromkeys(("packet_bytes", "moves_data"), "an option"),
        "carried": "what ranks move together, which a single device never does",
        "_settled": "whether plans of transfers follow the engines'; they are worked out again",
    }

    def __init__(self, device: DeviceContext) -> None:
        self._device = device
        self.addresses = address_map(device.target.generation)
        self.costs = device.costs.dma
        # What other costs for some transfers would change: the costs that a transfer is planned with.
        self.reprice: Callable[[Transfer], DmaCosts] | None = None
        self.ranks: Ranks | None = None  # the machine around the device
        self.engines: list[DmaEngines] = []
        self._stacks: list[int] = []  # of device memory, by core
        self.queues: list[DmaQueue] = []
        self._by_name: dict[tuple[int, str], DmaQueue] = {}
        self._courses: dict[tuple[Facts, int, bool, str, int], Course] = {}
        self._priced = self.costs  # what the courses cost
        self._hbm_free = [0] * len(self.addresses.hbm)
        self._signals_free: dict[int, int] = {}  # when the semaphores of a core have taken what engines wrote so far
        self._settled = False
        self.triggered = 0
        self.packet_bytes = PACKET_BYTES
        self.moves_data = True  # else transfers take their time, and leave memory as it is
        self.carried: dict[Carrying, int] = {}  # when each is through, as it seemed when somebody asked last

    def rings(self, core: int = 0) -> tuple[tuple[Ring, ...], ...]:
        """Return the rings of a core by engine and number."""
        return self._engines_of(core).rings

    def _engines_of(self, core: int) -> DmaEngines:
        while len(self.engines) <= core:
            self._stacks.append(self.addresses.hbm_of(len(self.engines)))
            self.engines.append(DmaEngines(len(self.engines), DMA_ENGINES))
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
        # A partial, not a lambda: `Device.ahead` reads the queue off it.
        queue.complete = partial(self._complete, queue)
        for rings in self._engines_of(core).rings[:num_queues]:
            rings[ring].owner = queue
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
        queue = self._by_name.get((transfer.core, transfer.queue)) or self.queue(transfer.core, transfer.queue)
        transfer.number, self.triggered = self.triggered, self.triggered + 1
        transfer.triggered_ps = now_ps
        if isinstance(transfer, CollectiveTransfer):
            transfer.state = "queued"
            queue.held += 1
            queue.pending.append(transfer)
            if len(queue.pending) == 1:
                self._begin(queue, now_ps)
            return
        transfer.move = bind(self._device, transfer)
        transfer.settle = self._settle
        queue.pending.append(transfer)
        self._plan(transfer, queue, now_ps)
        transfer.state = "queued"

    def _begin(self, queue: DmaQueue, now_ps: int) -> None:
        """Give the oldest collective of a stream to the machine; it is complete when that says so."""
        transfer = queue.pending[0]
        assert isinstance(transfer, CollectiveTransfer)
        call = call_of(self._device, transfer)
        transfer.generated_ps = now_ps

        def arrived(time_ps: int, pieces: Sequence[Arrival], received: Sequence[int]) -> None:
            transfer.move = partial(put, self._device, transfer, pieces, received)
            transfer.plan = TransferPlan(now_ps, time_ps, ())
            queue.due_ps = time_ps
            self._device.schedule(time_ps, queue.complete)

        for hook in self._device.hooks.plan:
            hook(transfer, None)
        if self.ranks is None:
            arrived(now_ps, alone(call), ())
        else:
            self.ranks.begin(call, now_ps, arrived)

    def carry(self, queue: DmaQueue, nbytes: int, packet: int, ps_per_byte: float, now_ps: int) -> Carrying:
        """Let the engines of a core move bytes of a collective, packet by packet; `carried_until` says how long.

        They go through the ring of the collective's stream: other rings have their turns between its packets.
        """
        while self.carried and self.carried_until(oldest := next(iter(self.carried))) + _ASKED_PS < now_ps:
            del self.carried[oldest]
            self.engines[oldest.core].forget(oldest.number)
        number = next(reversed(self.carried)).number - 1 if self.carried else -1
        stretch = carried_stretch(nbytes, packet, ps_per_byte)
        moved = self._engines_of(queue.core).give(number, queue.ring, now_ps, 0, (stretch,), 0, now_ps)
        self._settled = False
        if moved:
            self._reschedule(queue)
        found = Carrying(queue.core, number)
        self.carried[found] = now_ps
        return found

    def carried_until(self, what: Carrying) -> int:
        """Return when bytes of a collective are through, as far as is known: what rings get until then puts it off.

        0 for what was through long ago.
        """
        if what not in self.carried:
            return 0
        end = 0
        for first, final, _, _, (at, step) in self.engines[what.core].pieces(what.number, DMA_ENGINES):
            end = max(end, at + step * first, at + step * final)
        self.carried[what] = end
        return end

    def carried_spans(self, what: Carrying) -> tuple[tuple[int, int], ...]:
        """Return begin and end of bytes of a collective by engine, as far as is known."""
        return spans_by_engine(self.engines[what.core].pieces(what.number, DMA_ENGINES))

    def idle_from(self) -> int:
        """Return when everything of collectives is through, as far as is known."""
        return max(map(self.carried_until, self.carried), default=0)

    def _plan(self, transfer: Transfer, queue: DmaQueue, now_ps: int) -> None:
        """Reserve generator, engines and memory bandwidth and set the transfer's times."""
        transfer.course = course = self._course_of(transfer, queue)
        transfer.shares = course.shares
        queue.held += course.held
        begin = queue.generator_ps
        if begin < now_ps:
            begin = now_ps
        if queue.held > RING_SIZE and not transfer.prebuilt:
            begin = max(begin, self._room(queue))
        queue.generator_ps = begin + course.generator_ps
        transfer.generated_ps = begin
        ready = begin + course.start_ps
        is_first = not queue.completed and len(queue.pending) == 1
        is_cold = transfer.prebuilt and is_first
        stagger = course.cold_ps if is_cold else course.stagger_ps
        fill = course.cold_fill_ps if is_cold else course.fill_ps
        tally = queue.by_course.get(course)
        if tally is None:
            tally = queue.by_course[course] = queue.tally(course.shares)
        tally[0] += 1
        engines = self.engines[transfer.core]
        moved = engines.give(transfer.number, queue.ring, ready, stagger, course.stretches, fill, now_ps)
        stack = self._stacks[transfer.core]
        at = transfer.memory_ps = ready
        if course.hbm_bytes:
            if self._hbm_free[stack] > at:
                at = self._hbm_free[stack]
            self._hbm_free[stack] = transfer.memory_ps = at + course.memory_ps
        self._settled = False
        if self._device.hooks.plan:
            memory = (("hbm", stack, 0), at, transfer.memory_ps) if course.hbm_bytes else None
            for hook in self._device.hooks.plan:
                hook(transfer, memory)
        if moved:
            self._reschedule(queue)
        if len(queue.pending) == 1:
            self._schedule(queue, now_ps)

    def _course_of(self, transfer: Transfer, queue: DmaQueue) -> Course:
        """Return what a transfer has in common with others like it."""
        facts, costs = transfer.facts, self.costs
        if self.reprice is not None:
            costs = self.reprice(transfer)
            return course_of(facts, queue.num_queues, maker_of(transfer), self.packet_bytes, costs)
        if self._priced is not costs:
            self._courses.clear()
            self._priced = costs
        key = facts, queue.num_queues, transfer.prebuilt, transfer.engine, self.packet_bytes
        found = self._courses.get(key)
        if found is None:
            made = course_of(facts, queue.num_queues, maker_of(transfer), self.packet_bytes, costs)
            found = self._courses[key] = made
        return found

    def _room(self, queue: DmaQueue) -> int:
        """Return when the rings of a queue have room for the transfer that was handed over last: it waits till then.

        One that is larger than a ring goes in as the ring empties.
        """
        left, at = queue.held - RING_SIZE, queue.planned_ps
        for before in islice(queue.pending, len(queue.pending) - 1):
            at = self._planned(queue, before, at).planned_ps
            left -= descriptors_in_ring(before.shares)
            if left <= 0:
                break
        return at

    def held_up_until(self, core: int, name: str, now_ps: int) -> int:
        """Return until when what is left of a queue holds up the generator of its descriptors; 0 where nothing does."""
        queue, room = self.queue(core, name), self.costs.generate_ahead
        if not room or queue.prebuilt or queue.kind == COLLECTIVE or queue.engine == "Pool":
            return 0
        beside = [each for each in self.queues if each.core == core and each.kind != COLLECTIVE]
        return held_up_until(queue, beside, self.engines[core], room, now_ps)

    def _reschedule(self, given: DmaQueue) -> None:
        """Complete the oldest transfers of queues at other times where work that one was given changes them."""
        for queue in self.queues:
            if queue.core == given.core and len(queue.pending) > (queue is given) and queue.kind != COLLECTIVE:
                transfer = queue.pending[0]
                transfer.plan = self._planned(queue, transfer)
                due = transfer.plan.planned_ps
                if due != queue.due_ps:
                    self._unschedule(queue)
                    queue.due_ps = due
                    self._device.schedule(due, queue.complete)

    def _planned(self, queue: DmaQueue, transfer: Transfer, before_ps: int | None = None) -> TransferPlan:
        """Return the plan of a queue's oldest transfer, or of one behind another that completes at `before_ps`.

        Transfers complete in order inside a queue, whatever the engines did.
        """
        course = transfer.course
        assert course is not None  # it was triggered
        end = transfer.memory_ps
        pieces: Iterable[Piece] = ()
        if course.engines:
            ended, pieces = self.engines[transfer.core].times(transfer.number, course.engines)
            if ended > end:
                end = ended
        end += course.completion_ps
        before = queue.planned_ps if before_ps is None else before_ps
        due = max(end, before)
        if queue.signalled_ps and transfer is queue.pending[0]:
            due = queue.signalled_ps
        return _made(TransferPlan, (transfer.memory_ps, due, pieces))

    def _settle(self) -> None:
        """Work out the plans of all pending transfers."""
        if self._settled:
            return
        self._settled = True
        for queue in self.queues:
            if queue.kind == COLLECTIVE:
                continue  # the other ranks decide
            before = queue.planned_ps
            for transfer in queue.pending:
                transfer.plan = self._planned(queue, transfer, before)
                before = transfer.plan.planned_ps

    def _unschedule(self, queue: DmaQueue) -> None:
        """Take back when the queue's oldest transfer was to complete; `Device.ahead` reads it off the heap."""
        heap = self._device.heap
        heap[:] = [entry for entry in heap if entry[2] is not queue.complete]
        heapify(heap)

    def _schedule(self, queue: DmaQueue, now_ps: int) -> None:
        """Complete the queue's oldest transfer when it is planned to."""
        if queue.kind == COLLECTIVE:
            self._begin(queue, now_ps)
            return
        transfer = queue.pending[0]
        transfer.plan = self._planned(queue, transfer)
        queue.due_ps = transfer.plan.planned_ps
        self._device.schedule(max(now_ps, queue.due_ps), queue.complete)

    def _complete(self, queue: DmaQueue, now_ps: int) -> None:
        """Move the bytes of the queue's oldest transfer, then raise its semaphores."""
        device, transfer = self._device, queue.pending[0]
        if not queue.signalled_ps:
            through = self._signalled(transfer, now_ps)
            if through > now_ps:
                queue.signalled_ps = queue.due_ps = through
                transfer.plan = self._planned(queue, transfer)
                self._settled = False
                device.schedule(through, queue.complete)
                return
        device.steps += 1
        event = None
        if transfer.plan is UNPLANNED:  # the device went back to before
            transfer.plan = self._planned(queue, transfer)
        whole = False
        try:
            if device.watched:
                event = self._event(transfer, now_ps)
                for hook in device.hooks.effect:
                    hook(event)
            settled = []
            for each in device.cores:
                if each.pe.pending:
                    settled.append(each)
            if device.log is not None:
                device.log.append((transfer, tuple([each.index for each in settled]), now_ps))
            if transfer.move is not None and self.moves_data:
                for each in settled:
                    self.settle_products(each, transfer)
                transfer.move()
            self._retire(queue, transfer, now_ps)
            if transfer.semaphore is not None and transfer.increment:
                device.cores[transfer.core].semaphores.add(transfer.semaphore, transfer.increment, now_ps)
            if transfer.remote is not None:
                core, semaphore, increment = transfer.remote
                device.cores[core].semaphores.add(semaphore, increment, now_ps)
            if queue.pending:
                transfer = queue.pending[0]
                self._schedule(queue, now_ps)
            whole = True
        except (FaultError, FormatError, UnsupportedError) as error:
            device.changes.clear()
            device.fail(error, place_of(device, transfer))
            return
        finally:
            if not whole:
                for each in device.cores:
                    each.memory.unaccounted = True  # a part of what the transfer writes may be written
        if event is not None:
            event.semaphores = tuple(device.changes)
            device.changes.clear()
            device.emit(event)

    def _signalled(self, transfer: Transfer, now_ps: int) -> int:
        """Return when the semaphores of a core have taken the writes of a transfer, one of each engine.

        They are taken one after the other; a transfer that is alone has its last one taken when it completes.
        """
        if not transfer.shares or (transfer.semaphore is None and transfer.remote is None):
            return now_ps
        took = len(transfer.shares) * self.costs.signal_interval_ps
        free = max(self._signals_free.get(transfer.core, 0) + took, now_ps)
        self._signals_free[transfer.core] = free
        return free

    def settle_products(self, core: CoreContext, transfer: Transfer) -> None:
        """Have the Tensor engine add what a transfer into its core's SBUF would take from it."""
        if not any(side.space == "SBUF" for side in transfer.writes):
            return
        width = self._device.arch.sbuf_bytes.whole
        core.pe.settle((), [each for each in regions_of(transfer.writes, width) if each.core == core.index])

    def _retire(self, queue: DmaQueue, transfer: Transfer, now_ps: int) -> None:
        queue.pending.popleft()
        course = transfer.course
        if course is None:  # a collective
            queue.held -= descriptors_in_ring(transfer.shares)
            queue.tally(transfer.shares)[1] += 1
        else:
            queue.held -= course.held
            queue.by_course[course][1] += 1
        queue.completed += 1
        queue.nbytes += transfer.nbytes
        queue.planned_ps, queue.signalled_ps = transfer.plan.planned_ps, 0
        transfer.state, transfer.completed_ps = "done", now_ps
        transfer.move = None  # which holds the transfer
        for hook in self._device.hooks.replan:
            hook(transfer)
        self.engines[transfer.core].forget(transfer.number)

    def _event(self, transfer: Transfer, now_ps: int) -> Event:
        device = self._device
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
            TransferRegions(transfer, device.arch.sbuf_bytes.whole),
        )

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DmaState:
        """Return the state as a value, for `restore`."""
        engines = tuple(engines.snapshot() for engines in self.engines)
        return DmaState(self.flow(), engines, tuple(queue.snapshot() for queue in self.queues))

    def restore(self, state: DmaState) -> None:
        """Return to a state that `snapshot` gave."""
        self.restore_flow(state.flow)
        for engines, held in zip(self.engines, state.engines, strict=True):
            engines.restore(held)
        for queue, mine in zip(self.queues, state.queues, strict=True):
            queue.restore(mine)

    def flow(self) -> DmaFlow:
        """Return the state without engines and queues."""
        return DmaFlow(self.triggered, tuple(self._hbm_free), tuple(self._signals_free.items()))

    def restore_flow(self, flow: DmaFlow) -> None:
        """Return to a state, engines and queues left as they are."""
        self.triggered, self._hbm_free[:], signals = flow
        self._signals_free = dict(signals)
        self._settled = False

    def bind_again(self, transfers: Iterable[Transfer] | None = None) -> None:
        """Bind pending transfers, all or those of `transfers`, to memory whose written bytes have been put back."""
        wanted = None if transfers is None else {id(transfer) for transfer in transfers}
        for queue in self.queues:
            for transfer in queue.pending:
                if isinstance(transfer, CollectiveTransfer):
                    continue  # what arrives is bound when it does
                if wanted is None or id(transfer) in wanted:
                    transfer.move = bind(self._device, transfer)


def carried_stretch(nbytes: int, packet: int, ps_per_byte: float) -> Stretch:
    """Return what each engine of a core takes of bytes of a collective."""
    share = -(-nbytes // DMA_ENGINES)
    packets = max(1, -(-share // packet))
    one = int(min(share, packet) * ps_per_byte)
    last = max(1, int(share * ps_per_byte) - one * (packets - 1))
    return Stretch(0, DMA_ENGINES - 1, packets, one, last)
