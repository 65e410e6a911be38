"""The DMA of a device: takes transfers, plans their time on engines and memory, completes each queue in order.

The engines of a core go round their rings at packet boundaries (`arbitration`); device memory serves transfers as they
come. Source: hardware.md 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heapify, heappush
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from emulator.addresses import address_map
from emulator.dma.binding import bind, place_of
from emulator.dma.collectives import COLLECTIVE, Arrival, CollectiveTransfer, Ranks, alone, call_of, put
from emulator.dma.course import PACKET_BYTES, Course, course_of, maker_of
from emulator.dma.engines import DmaEngines, DmaEnginesState, Stretch
from emulator.dma.holding import held_up_until
from emulator.dma.queues import DmaQueue, QueueState, descriptors_in_ring
from emulator.dma.regions import TransferRegions
from emulator.dma.rings import RING_SIZE, Ring
from emulator.dma.rows import RowsRequest
from emulator.dma.transfer import UNPLANNED, Facts, Transfer, TransferPlan
from emulator.dma.work import Piece, spans_by_engine
from emulator.errors import LoadError
from emulator.events import Event, SemaphoreChange
from emulator.faults import FaultError
from emulator.notes import CROWDED, MOVED, Notes
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
        **dict.fromkeys(("_device", "_stacks", "addresses", "costs", "_by_name", "_beside", "ranks"), "wiring"),
        "reprice": "a what-if of the caller",
        **dict.fromkeys(("_courses", "_priced"), "a cache"),
        **dict.fromkeys(("packet_bytes", "moves_data"), "an option"),
        "_carries": "wiring",
        "carried": "what ranks move together, which a single device never does",
        **dict.fromkeys(("_moving", "_late"), "set only while a transfer completes"),
        "_released": "nothing may happen after that",
        "_settled": "whether plans of transfers follow the engines'; they are worked out again",
    }

    def __init__(self, device: DeviceContext) -> None:
        self._device = device
        device.hbm.moved = self.bind_again
        self.addresses = address_map(device.target.generation)
        self.costs = device.costs.dma
        self.packet_bytes = PACKET_BYTES
        # What other costs for some transfers would change: the costs that a transfer is planned with.
        self.reprice: Callable[[Transfer], DmaCosts] | None = None
        self.ranks: Ranks | None = None  # the machine around the device
        self.engines: list[DmaEngines] = []
        self._stacks: list[int] = []  # of device memory, by core
        self.queues: list[DmaQueue] = []
        self._by_name: dict[tuple[int, str], DmaQueue] = {}
        self._beside: list[list[DmaQueue]] = []  # those of each core but its streams of collectives
        self._courses: dict[tuple[Facts, int, bool, str, int], Course] = {}
        self._priced = self.costs  # what the courses cost
        self._hbm_free = [0] * len(self.addresses.hbm)
        self._signals_free: dict[int, int] = {}  # when the semaphores of a core have taken what engines wrote so far
        self._settled = self._released = False
        self._moving: tuple[int, Transfer, int] | None = None
        self._late: Event | None = None
        self.triggered = 0
        self.moves_data = True  # else transfers take their time, and leave memory as it is
        self._carries = False  # bytes of collectives, which engines have at once
        self.carried: dict[Carrying, int] = {}  # when each is through, as it seemed when somebody asked last

    def rings(self, core: int = 0) -> tuple[tuple[Ring, ...], ...]:
        """Return the rings of a core by engine and number."""
        return self._engines_of(core).rings

    def _engines_of(self, core: int) -> DmaEngines:
        while len(self.engines) <= core:
            self._stacks.append(self.addresses.hbm_of(len(self.engines)))
            self._beside.append([])
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
        self._engines_of(core).give_rings(queue)
        self.queues.append(queue)
        if kind == COLLECTIVE:
            self._carries = True
        else:
            self._beside[core].append(queue)
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
        request = transfer.request
        core = request.core
        queue = self._by_name.get((core, request.queue)) or self.queue(core, request.queue)
        transfer.number = number = self.triggered
        self.triggered = number + 1
        transfer.triggered_ps = now_ps
        pending = queue.pending
        priced = request.priced
        course: Course
        if priced is not None and priced[0] is self.costs and priced[1] == self.packet_bytes and self.reprice is None:
            course = priced[2]
        elif isinstance(transfer, CollectiveTransfer):
            transfer.state = "queued"
            queue.held += 1
            pending.append(transfer)
            if len(pending) == 1:
                self._begin(queue, now_ps)
            return
        else:
            course = self._course_of(transfer, queue)
        device = self._device
        transfer.move = bind(device, transfer)
        transfer.settle = self._settle
        pending.append(transfer)
        is_alone = len(pending) == 1
        # Generator, engines and memory are reserved in this order.
        transfer.course = course
        queue.count(transfer, course)
        queue.held = held = queue.held + course.held
        begin = queue.generator_ps
        if begin < now_ps:
            begin = now_ps
        if held > RING_SIZE and not request.prebuilt:
            begin = max(begin, self._room(queue))
            if device.notes is not None:
                device.notes.append((CROWDED, transfer, held, len(pending)))
        queue.generator_ps = begin + course.generator_ps
        transfer.generated_ps = begin
        ready = begin + course.start_ps
        stagger, fill = course.stagger_ps, course.fill_ps
        if is_alone and request.prebuilt and not queue.completed:
            stagger, fill = course.cold_ps, course.cold_fill_ps
        tally = queue.by_course.get(course)
        if tally is None:
            tally = queue.by_course[course] = queue.tally(course.shares)
        tally[0] += 1
        # Where nothing else is carried, and all transfers cost alike, whatever comes is not ready before that either.
        soonest = now_ps if self._carries or self.reprice is not None else now_ps + course.soonest_ps
        moved = self.engines[core].give(number, queue.ring, ready, stagger, course.stretches, fill, soonest)
        stack = self._stacks[core]
        at = through = ready
        if course.hbm_bytes:
            if self._hbm_free[stack] > at:
                at = self._hbm_free[stack]
            self._hbm_free[stack] = through = at + course.memory_ps
        transfer.memory_ps = through
        self._settled = False
        if device.watched:
            memory = (("hbm", stack, 0), at, through) if course.hbm_bytes else None
            for hook in device.hooks.plan:
                hook(transfer, memory)
        if moved:
            self._reschedule(queue)
        if is_alone:
            self._schedule(queue, now_ps)
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

    def _course_of(self, transfer: Transfer, queue: DmaQueue) -> Course:
        """Return what a transfer has in common with others like it."""
        request, costs, packet_bytes = transfer.request, self.costs, self.packet_bytes
        facts = request.facts
        if self.reprice is not None:
            return course_of(facts, queue.num_queues, maker_of(request), packet_bytes, self.reprice(transfer))
        if self._priced is not costs:
            self._courses.clear()
            self._priced = costs
        key = facts, queue.num_queues, request.prebuilt, request.engine, packet_bytes
        found = self._courses.get(key)
        if found is None:
            made = course_of(facts, queue.num_queues, maker_of(request), packet_bytes, costs)
            found = self._courses[key] = made
        request.priced = costs, packet_bytes, found
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
        room = self.costs.generate_ahead
        if not room:
            return 0
        queue = self._by_name.get((core, name)) or self.queue(core, name)
        pending = queue.pending
        if not pending or not queue.generates or (queue.is_even and queue.given - pending[0].ahead <= room):
            return 0
        return held_up_until(queue, self._beside[core], self.engines[core], room, now_ps)

    def _reschedule(self, given: DmaQueue) -> None:
        """Complete the oldest transfers of queues at other times where what one was given just now changes them."""
        changed = self.engines[given.core].changed
        for queue in self._beside[given.core]:
            pending = queue.pending
            if len(pending) > (queue is given) and (changed is None or pending[0].number in changed):
                transfer = pending[0]
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
        due = memory = transfer.memory_ps
        pieces: Iterable[Piece] = ()
        if course.engines:
            ended, pieces = self.engines[queue.core].times(transfer.number, course.engines)
            if ended > due:
                due = ended
        due += course.completion_ps
        before = queue.planned_ps if before_ps is None else before_ps
        if due < before:
            due = before
        if queue.signalled_ps and transfer is queue.pending[0]:
            due = queue.signalled_ps
        return _made(TransferPlan, (memory, due, pieces))

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
        device, transfer = self._device, queue.pending[0]
        transfer.plan = self._planned(queue, transfer)
        queue.due_ps = due = transfer.plan.planned_ps
        if due < now_ps:
            due = now_ps
        if device.jitter is None:
            heappush(device.heap, (due, device.order(), queue.complete))
        else:
            device.schedule(due, queue.complete)

    def _complete(self, queue: DmaQueue, now_ps: int) -> None:
        """Move the bytes of the queue's oldest transfer, raise its semaphores, and schedule the next one.

        One long function: each transfer comes through here.
        """
        device, pending = self._device, queue.pending
        transfer = over = pending[0]
        request, course = transfer.request, transfer.course
        core, semaphore, remote = request.core, request.semaphore, request.remote
        signals = semaphore is not None or remote is not None
        if signals and course is not None and course.engines and not queue.signalled_ps:
            # The semaphores of a core take writes one after the other, one of each engine; a transfer that is alone
            # has its last one taken when it completes.
            through = self._signals_free.get(core, 0) + course.engines * self.costs.signal_interval_ps
            if through > now_ps:
                self._signals_free[core] = queue.signalled_ps = queue.due_ps = through
                if transfer.plan is not UNPLANNED:
                    memory, _, pieces = transfer.plan
                    transfer.plan = _made(TransferPlan, (memory, through, pieces))
                self._settled = False
                device.schedule(through, queue.complete)
                return
            self._signals_free[core] = now_ps
        device.steps += 1
        event, event_number = None, -1
        if transfer.plan is UNPLANNED:  # the device went back to before
            transfer.plan = self._planned(queue, transfer)
        try:
            if device.watched:
                event_number = device.numbers
                device.numbers = event_number + 1
                if device.makes_events:
                    event = self._tell_effect(event_number, transfer, now_ps)
            move = transfer.move if self.moves_data else None
            settled: list[int] = []
            if move is not None:
                for each in device.cores:
                    if each.pe.pending and self.settle_products(each, transfer):
                        settled.append(each.index)
            if device.log is not None:
                device.log.append((transfer, tuple(settled), now_ps))
            if move is not None:
                notes = device.notes
                if notes is not None:
                    self._moving = event_number, transfer, now_ps
                    if notes.before is not None:
                        notes.before(transfer)
                move()
                self._moving = None
            pending.popleft()
            if course is None:  # a collective
                queue.held -= descriptors_in_ring(transfer.shares)
                queue.tally(transfer.shares)[1] += 1
            else:
                queue.held -= course.held
                queue.by_course[course][1] += 1
                if course.writes_hbm:
                    queue.stores.popleft()
            queue.completed += 1
            queue.nbytes += request.nbytes
            queue.planned_ps, queue.signalled_ps = transfer.plan.planned_ps, 0
            transfer.state, transfer.completed_ps = "done", now_ps
            transfer.move = None  # which holds the transfer
            self.engines[core].forget(transfer.number)
            if semaphore is not None and request.increment:
                counters = device.cores[core].semaphores
                counters.add(semaphore, request.increment, now_ps)
            if remote is not None:
                peer, number, increment = remote
                device.cores[peer].semaphores.add(number, increment, now_ps)
            if pending:
                transfer = pending[0]
                self._schedule(queue, now_ps)
        except (FaultError, FormatError, UnsupportedError) as error:
            for each in device.cores:
                each.memory.unaccounted = True  # a part of what the transfer writes may be written
            device.changes.clear()
            self._moving = None
            if device.notes is not None:
                self._note(device.notes, over, now_ps, None)
            device.fail(error, place_of(device, transfer))
            return
        except BaseException:
            for each in device.cores:
                each.memory.unaccounted = True
            raise
        if event_number >= 0:
            changes = tuple(device.changes)
            device.changes.clear()
            if device.notes is not None:
                self._note(device.notes, over, now_ps, changes)
            if event is None:
                event, self._late = self._late, None
            if event is not None:
                event.semaphores = changes
                device.emit(event)
            for noted in device.hooks.transfer:
                noted(over, event_number, now_ps, changes)

    def _note(self, notes: Notes, transfer: Transfer, now_ps: int, changes: tuple[SemaphoreChange, ...] | None) -> None:
        touches = TransferRegions(transfer, self._device.arch.sbuf_bytes.whole)
        notes.append((MOVED, transfer, now_ps, changes, touches))
        if notes.behind is not None:
            notes.behind(transfer)

    @property
    def moving(self) -> Transfer | None:
        """Return the transfer that moves its bytes at this moment, if notes are made."""
        return None if self._moving is None else self._moving[1]

    def tell_moving(self) -> None:
        """Tell who has begun to watch while a transfer moves its bytes of what it is about to change."""
        if self._moving is not None:
            self._late = self._tell_effect(*self._moving)

    def settle_products(self, core: CoreContext, transfer: Transfer) -> bool:
        """Have the Tensor engine add what a transfer into its core's SBUF would take from it; return whether it did."""
        request = transfer.request
        if isinstance(request, RowsRequest) and request.rows.sides[1].space != "SBUF":
            return False
        regions = TransferRegions(transfer, self._device.arch.sbuf_bytes.whole).write_regions
        if not any(each.space == "SBUF" for each in regions):
            return False
        return core.pe.settle((), [each for each in regions if each.core == core.index])

    def _tell_effect(self, number: int, transfer: Transfer, now_ps: int) -> Event:
        """Return the event of a transfer, of which those know who see what it is about to change."""
        device = self._device
        event = Event(
            number,
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
        for hook in device.hooks.effect:
            hook(event)
        return event

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

    def release(self) -> None:
        """Give the program back; nothing may be triggered after that."""
        if self._released:
            return
        self._released = True
        for queue in self.queues:
            queue.release()
        for engines in self.engines:
            engines.release()
        del self._device

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
