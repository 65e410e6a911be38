"""One in-order engine: issues a word when its waits hold and the engine is free, completes it a latency later."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from emulator.action import Action
from emulator.bound_words import ASKS, UNBOUND, BoundWord, BoundWords
from emulator.cost import Cost
from emulator.events import Event, SemaphoreChange
from emulator.faults import FaultError, Place, fault_error
from emulator.livelock import Reach, Turn, turned
from emulator.notes import COMPARED, EXECUTED, ISSUED
from emulator.semaphores import HIGHEST, LOWEST, Events, Semaphores, Waiter, holds
from emulator.standing import Awaiting, Flight, Flow, SequencerState, UnderWay, Values, WaitingOn
from formats import isa
from formats.errors import FormatError, UnsupportedError
from formats.isa import UpdateMode, WaitMode
from formats.isa.instruction import header_sync
from formats.isa.signals import BARRIER
from formats.neuron_core import WORD

if TYPE_CHECKING:
    from emulator.context import CoreContext
    from emulator.loaded import LoadedWord

__all__ = ["KEPT", "Sequencer"]

IDLE, WAITING, RUNNING, DONE = "idle", "waiting", "running", "done"
# What is kept here of an engine that views show in these states (emulator.diagnosis.states).
KEPT = {"wait": WAITING, "run": RUNNING, "stopped": RUNNING, "fault": RUNNING}

_EQ, _GT, _GE, _EVENT = int(WaitMode.SEM_EQ), int(WaitMode.SEM_GT), int(WaitMode.SEM_GE), int(WaitMode.EVENT_SET)
_INC = int(UpdateMode.SEM_INC)
_NEVER = 1 << 62

_WIRING = (
    "core", "device", "name", "_products", "_semaphores", "_contention", "_array", "_cold", "_issue", "_complete",
    "_woken", "_at_hand", "_counted",
)  # fmt: skip


class Sequencer:
    """One engine's stream and where it stands; every public attribute is for looking, the device moves it.

    `words` are loaded words, `position` the index in it of the next to issue; `registers` are 256 unsigned integers.
    """

    NOT_STATE: ClassVar = {
        **dict.fromkeys(_WIRING, "wiring"),
        "words": "the program", "count": "the program", "slots": "derived from the words",
        **dict.fromkeys(("bound", "bounds", "reaches"), "a cache"), "_is_known": "of the cache",
        "_completing": "set only while a word completes", "_dispatch_ps": "a figure of the chip",
        "_is_ahead": "a figure of the chip",
    }  # fmt: skip

    # More than the thirty attributes that objects with a dictionary find as fast.
    __slots__ = (
        *_WIRING, "words", "count", "slots", "position", "completed", "registers", "accumulators", "flights", "state",
        "_awaiting", "_waiters", "free_ps", "last_done", "path_ps", "busy_ps", "_dispatch_ps", "_is_ahead", "bound",
        "bounds", "_is_known", "_draining", "_barrier_raised", "_completing", "turn", "reaches", "__weakref__",
    )  # fmt: skip

    def __init__(self, core: CoreContext, name: str) -> None:
        self.core, self.device = core, core.device
        self.name: str = name
        self.take(())
        self.slots: list[int] | None = None
        self.completed = 0
        self.registers = [0] * core.device.arch.registers.whole
        self.accumulators = core.workspace.accumulators[name]
        self.flights: deque[Flight] = deque()
        self.state = IDLE
        self._awaiting: Awaiting | None = None
        self.free_ps = self.last_done = 0
        self.path_ps = 0  # when the data path is free; words without data may issue before
        self._dispatch_ps = (0 if name == "Pool" else core.device.costs.dispatch_ps) or _NEVER
        self._is_ahead = name == "PE"
        self.busy_ps = 0
        self.bound = BoundWords(self)
        self._products, self._semaphores, self._contention = core.pe, core.semaphores, core.contention
        self._array, self._cold = core.contention.array, core.contention.cold
        self._draining = self._barrier_raised = False
        self._completing: LoadedWord | None = None
        self._waiters: list[Waiter] | None = None
        self.turn: Turn | None = None  # its latest jump back
        self.reaches: dict[tuple[int, int], Reach] = {}
        # What goes into the event heap for each word, and to those that are waited for, made once.
        self._issue: Callable[[int], None] = self.issue
        self._complete: Callable[[int], None] = self.complete
        self._woken: Callable[[int], None] = self._wake
        semaphores = self._semaphores
        self._at_hand = self.device, self.device.heap, self.device.order, semaphores.values, semaphores.changed
        self._counted = semaphores.values, semaphores.changed, semaphores.waiters

    def take(self, words: Sequence[LoadedWord]) -> None:
        """Have these words, from the first on."""
        self.words, self.count, self.position = words, len(words), 0
        self.bounds: list[BoundWord] = [UNBOUND] * len(words)  # as they are bound
        self._is_known = False  # whether those that are known are among these

    def load(self, words: Sequence[LoadedWord]) -> None:
        """Take over a stream and ask for its first word at time 0."""
        self.take(words)
        self.state = IDLE if words else DONE
        if words:
            self.device.schedule(0, self._issue)

    @property
    def stream(self) -> Sequence[LoadedWord]:
        """Return the loaded words."""
        return self.words

    @property
    def stream_length(self) -> int:
        """Return the number of loaded words."""
        return self.count

    @property
    def current(self) -> isa.Instruction | None:
        """Return the oldest word that has not completed, None at the end."""
        loaded = self.next_loaded
        return None if loaded is None else loaded.word

    @property
    def next_loaded(self) -> LoadedWord | None:
        """Return the oldest loaded word that has not completed, None at the end."""
        if self.flights:
            return self.flights[0][0]
        return self.words[self.position] if self.position < self.count else None

    @property
    def pc(self) -> int:
        """Return the compiler pc of the oldest word that has not completed; one past the last at the end."""
        loaded = self.next_loaded
        if loaded is not None:
            return loaded.pc
        return self.words[-1].pc + 1 if self.words else 0

    @property
    def in_flight(self) -> tuple[UnderWay, ...]:
        """Return the words that have issued and not completed, the oldest first."""
        return tuple([UnderWay(loaded, issued) for loaded, _, issued, _ in self.flights])

    @property
    def waiting_on(self) -> WaitingOn | None:
        """Return what the engine waits for, None where it does not wait."""
        return None if self._awaiting is None else WaitingOn(*self._awaiting)

    @property
    def done(self) -> bool:
        """Return whether every word has completed."""
        return self.state == DONE

    @property
    def costs(self) -> dict[bytes, Cost]:
        """Return the costs of words that are known, by what they depend on."""
        return self.bound.costs

    # --- issue -------------------------------------------------------------------------------------------------------

    def issue(self, now: int) -> None:
        """Start the next word if its waits hold, else wait; called when the engine is free or has been woken.

        Where nothing else happens before the engine is free again, go on with the word behind it. This is the innermost
        function of a run, and flat for that.
        """
        device, heap, order, values, changed = self._at_hand
        words, bounds, count, position = self.words, self.bounds, self.count, self.position
        while True:
            loaded, bound = words[position], bounds[position]
            asks, index, need, action, interval, latency, claim, apart, beside = bound.course
            consumed: tuple[SemaphoreChange, ...] = ()
            if asks:
                if asks == ASKS:
                    begun = self._begin(loaded, now)
                    if begun is None:
                        return
                    bound, consumed = begun
                    _, _, _, action, interval, latency, claim, apart, beside = bound.course
                else:
                    have = values[index]
                    if have < need:
                        self._stand_by(index, need, now)
                        return
                    if have == need and changed[index] + device.propagation_ps > now:
                        self._wait(self._semaphores, _GE, index, need, now)
                        return
            if device.reprice is not None:
                interval, latency = device.reprice(self, loaded, interval, latency)
                if claim is not None:
                    claim = claim.scaled(interval, action.interval)
                if apart:
                    apart = apart * interval // action.interval
            if claim is not None:
                if claim.array:
                    if claim.weights:
                        interval, latency = self._array.load(claim.work_ps, claim.read_ps, now)
                    else:  # other words than matmuls are taken at once behind one
                        queues_next = position + 1 < count and isinstance(words[position + 1].word, isa.MatMul)
                        interval, latency = self._array.multiply(claim.work_ps, now, queues_next)
                else:
                    if claim.always or not self._cold.left.isdisjoint(claim.cold):
                        interval, latency = self._contention.take(claim, now, interval, latency)
                    if claim.cold and loaded.queue:
                        held = device.dma.held_up_until(self.core.index, loaded.queue, now + latency)
                        if held > now + latency:
                            interval, latency = interval + held - now - latency, held - now
                            self._contention.own_end_ps = held
            if device.jitter is not None:
                interval, latency = device.jitter(interval), device.jitter(latency)
            done = now + latency
            behind = self.last_done + apart
            if done < behind:
                # Results leave in order. The next word waits as well where those of this one wait for too long.
                if apart and behind - done > action.lag:
                    interval += behind - done - action.lag
                done = behind
            self.last_done = done
            self.flights.append((loaded, bound, now, consumed))
            self.state = RUNNING
            self._awaiting = None
            self.position = position = position + 1
            free = now + interval
            if not beside:
                self.path_ps = free
                if interval > self._dispatch_ps and position < count and words[position].word.BESIDE:
                    free = now + self._dispatch_ps
            elif self._is_ahead and self._array.free >= free:  # matmuls that were issued still enter then
                # The Tensor engine has fetched it long before, while words in front of it waited for the array.
                free = max(self.path_ps, now)
            elif self.path_ps > free and not (position < count and words[position].word.BESIDE):
                free = self.path_ps
            self.free_ps = free
            self.busy_ps += interval
            heappush(heap, (done, order(), self._complete))
            if device.watched:
                if device.notes is not None:
                    device.notes.append((ISSUED, self, loaded, bound, now))
                for hook in device.hooks.issue:
                    hook(self, loaded, now)
            if position >= count or action.serial:
                return
            if free > device.horizon_ps or free >= heap[0][0]:
                heappush(heap, (free, order(), self._issue))
                return
            device.now_ps = now = free

    def _begin(self, loaded: LoadedWord, now: int) -> tuple[BoundWord, tuple[SemaphoreChange, ...]] | None:
        """Return a word that issues now, and what it consumes; None where it does not: it waits, or cannot be bound."""
        word = loaded.word
        consumed: tuple[SemaphoreChange, ...] = ()
        try:
            mode, index, _, _, need = header_sync(word.raw)
            if mode and not self._ready(mode, index, need, now):
                return None
            bound = self._bound(loaded)
            action = bound.action
            if not bound.usual:
                for each in action.waits:
                    if not self._ready(each.mode, each.index, each.value, now):
                        return None
                if action.drain and self.flights:
                    self._draining, self.state = True, RUNNING
                    return None
                if action.barrier and not self._meet(word, now):
                    return None
                consumed = self._consume(word, now)
        except (FaultError, FormatError, UnsupportedError) as error:
            self.device.fail(error, self.place(loaded))
            return None
        return bound, consumed

    def _bound(self, loaded: LoadedWord) -> BoundWord:
        """Return the word that issues next, bound; behind the first, all that are known are looked up."""
        bounds, position = self.bounds, self.position
        bound = bounds[position]
        if bound is UNBOUND:
            bound = self.bound.bound(loaded)
            if not self._is_known:
                self._is_known, self.bounds[:] = True, self.bound.known(self.words)
            bounds[position] = bound
        return bound

    def _ready(self, mode: int, index: int, need: int, now: int) -> bool:
        """Return whether a wait holds; where it does not, or not visibly yet, see to it that `issue` comes again."""
        if mode not in (_GE, _EVENT, _EQ, _GT):
            raise fault_error(
                "operand",
                f"unsupported wait mode {mode}",
                operand="wait_mode",
                expected="0, 1, 4, 5 or 7",
                got=str(mode),
            )
        where: Semaphores | Events = self.core.events if mode == _EVENT else self._semaphores
        have = where.values[index]
        # A change needs time to reach the engine. Which change made the condition true is known only where the value
        # is exactly the one waited for; older ones have long been visible.
        if holds(mode, have, need) and (
            (have != need and mode != _EVENT) or where.changed[index] + self.device.propagation_ps <= now
        ):
            return True
        self._wait(where, mode, index, need, now)
        return False

    def _wait(self, where: Semaphores | Events, mode: int, index: int, need: int, now: int) -> None:
        """Come back to `issue` when a wait holds visibly; who waited for the same before has since then."""
        self.state = WAITING
        awaiting = ("event" if mode == _EVENT else "semaphore", self.core.index, index, mode, need, now)
        have = where.values[index]
        if have >= need if mode == _GE else holds(mode, have, need):
            self._awaiting, device = awaiting, self.device
            heappush(device.heap, (where.changed[index] + device.propagation_ps, device.order(), self._issue))
            return
        before = self._awaiting
        if before is None or before[:5] != awaiting[:5]:
            self._awaiting = awaiting
        self._waiters = waiters = where.waiters[index]
        waiters.append((need if mode == _GE else LOWEST, self._woken))

    def _stand_by(self, index: int, need: int, now: int) -> None:
        """Do as `_wait` for a semaphore that is not as large yet, as most wait for one."""
        self.state, before = WAITING, self._awaiting
        awaiting = "semaphore", self.core.index, index, _GE, need, now
        if before is None or before[:5] != awaiting[:5]:
            self._awaiting = awaiting
        self._waiters = waiters = self._counted[2][index]
        waiters.append((need, self._woken))

    def _wake(self, now: int) -> None:
        """Come back to `issue` if the change that calls this satisfies the wait."""
        awaiting, waiters = self._awaiting, self._waiters
        if awaiting is None or waiters is None:
            return
        kind, _, index, mode, need, _ = awaiting
        if mode != _GE:
            if not holds(mode, (self.core.events if kind == "event" else self._semaphores).values[index], need):
                return
            need = LOWEST
        if len(waiters) == 1:
            waiters.clear()
        else:
            waiters.remove((need, self._woken))
        self._waiters = None
        device, heap, order, _, _ = self._at_hand
        heappush(heap, (now + device.propagation_ps, order(), self._issue))

    def _meet(self, word: isa.Instruction, now: int) -> bool:
        """Raise the other core's semaphore once, then return whether the other core has raised ours."""
        if not self._barrier_raised:
            self._barrier_raised = True
            peer = self.device.cores[1 - self.core.index].semaphores
            for each in word.signals:
                if each.by == BARRIER:
                    peer.add(each.index, 1, now)
        return all(self._ready(each.mode, each.index, each.value, now) for each in word.waits if each.by == BARRIER)

    def _consume(self, word: isa.Instruction, now: int) -> tuple[SemaphoreChange, ...]:
        """Clear the events, or take back the raise, that the word waited for; return the changes if watched."""
        changes = self.device.changes
        start = len(changes)
        for each in word.waits:
            if each.by == BARRIER:
                self._barrier_raised = False
                self.core.semaphores.add(each.index, -each.value, now)
            elif each.kind == "event":
                self.core.events.set(each.index, 0, now)
        made = tuple(changes[start:])
        del changes[start:]
        return made

    # --- completion --------------------------------------------------------------------------------------------------

    def complete(self, now: int) -> None:
        """Carry out the oldest word in flight: effect, written bytes, DMA trigger, updates."""
        loaded, bound, issued, consumed = self.flights.popleft()
        device, action = self.device, bound.action
        device.steps += 1
        self._completing = loaded
        number = -1
        try:
            for extent in action.reads:
                if not extent.full and device.checking and extent.missing():
                    self._warn(loaded, action)
                    break
            if device.watched:
                number = device.numbers
                device.numbers = number + 1
                event = None
                if device.makes_events:
                    event = self._event(number, loaded, action, issued, now)
                    for hook in device.hooks.effect:
                        hook(event)
            settled = False
            if self._products.pending and not self._is_ahead:
                settled = self._products.settle(action.read_places, action.write_places)
            if device.log is not None:
                device.log.append((self, action, settled))
            effect = action.effect
            if effect is not None:
                effect()
            for extent in action.writes:
                if not extent.full:
                    extent.mark()
            if loaded.transfer is not None:
                device.dma.trigger(loaded.transfer(), now)
            update = bound.update
            if update == _INC:  # as `Semaphores.add` does
                values, changed, waiting = self._counted
                index = bound.updated
                value = values[index] + 1
                if value > HIGHEST or device.watched:
                    self._semaphores.add(index, 1, now)
                else:
                    values[index], changed[index] = value, now
                    if waiters := waiting[index]:
                        for need, wake in tuple(waiters):
                            if value >= need:
                                wake(now)
            elif update:
                self._update(update, bound.updated, None, now)
            if action.signals:
                for each in action.signals:
                    self._update(each.mode, each.index, each.value, now)
        except (FaultError, FormatError, UnsupportedError) as error:
            self.core.memory.unaccounted = True  # a part of what the word writes may be written
            device.changes.clear()
            if device.notes is not None:
                device.notes.append((EXECUTED, self, loaded, bound, issued, now, None))
            device.fail(error, self.place(loaded))
            return
        except BaseException:
            self.core.memory.unaccounted = True
            raise
        self.completed += 1
        if not self.flights:  # the next word may have had to wait for the last one in flight
            if self.position >= self.count:
                self.state = DONE
            elif action.serial or self._draining:
                self._draining = False
                heappush(device.heap, (now, device.order(), self._issue))
        if number >= 0:
            changes = consumed
            if device.changes:
                changes = (*consumed, *device.changes)
                device.changes.clear()
            if device.notes is not None:
                device.notes.append((EXECUTED, self, loaded, bound, issued, now, changes))
                if action.serial:
                    compared = tuple([self.registers[each] for each in loaded.word.compared])
                    device.notes.append((COMPARED, self, loaded, compared))
            if event is not None:
                event.semaphores = changes
                device.emit(event)
            for noted in device.hooks.word:
                noted(self, number, now, changes)

    def _warn(self, loaded: LoadedWord, action: Action) -> None:
        """Warn of operands that a word reads and nobody has written."""
        for name, extent in zip(action.read_names, action.reads, strict=True):
            if self.device.checking and (missing := extent.missing()):
                self.device.warn_unwritten(self.place(loaded), name, missing, extent.size)

    def _update(self, mode: int, index: int, value: int | None, now: int) -> None:
        """Signal what a word signals at completion. The header has no room for a value."""
        semaphores = self.core.semaphores
        if mode == _INC:
            semaphores.add(index, 1, now)
        elif mode == UpdateMode.SEM_DEC:
            semaphores.add(index, -1, now)
        elif mode == UpdateMode.EVENT_SET:
            if self.core.events.set(index, 1, now) and self._completing is not None:
                self.device.notice("double set", f"E[{index}] was set already", self.place(self._completing))
        elif mode == UpdateMode.SEM_ADD_IMM and value is not None:
            semaphores.add(index, value, now)
        elif mode == UpdateMode.SEM_WRITE_IMM and value is not None:
            semaphores.set(index, value, now)
        else:
            where = (
                " in a header, which has no value for it"
                if value is None and mode in (UpdateMode.SEM_ADD_IMM, UpdateMode.SEM_WRITE_IMM)
                else ""
            )
            raise fault_error(
                "operand",
                f"unsupported update mode {mode:#x}{where}",
                operand="update_mode",
                expected="0, 0x11, 0x13, 0x14; in a second slot also 0x15, 0x19",
                got=f"{mode:#x}",
            )

    def _event(self, number: int, loaded: LoadedWord, action: Action, issued: int, now: int) -> Event:
        kind = "barrier" if action.barrier else "instruction"
        return Event(number, now, issued, self.core.index, self.name, loaded.pc, loaded.word, kind, (), action)

    def branch(self, byte_offset: int) -> None:
        """Continue at a byte offset from the word that is completing; FaultError where no word begins there."""
        loaded = self._completing
        if loaded is None:
            return
        if self.slots is None:
            self.slots = [word.slot for word in self.words]
        target, odd = divmod(loaded.slot * WORD + byte_offset, WORD)
        index = bisect_left(self.slots, target)
        last = self.words[index - 1] if index else None
        after = 0 if last is None else last.slot + len(last.word.raw) // WORD
        starts = index < self.count and self.slots[index] == target
        # A word that the loader dropped (cc) leaves a gap before the next one; the end of the stream is a target too.
        inside_gap = target >= after and (index < self.count or target == after)
        if odd or target < 0 or not (starts or inside_gap):
            raise fault_error(
                "branch",
                f"branch by {byte_offset} bytes does not meet a word of the stream",
                operand="target",
                expected=f"a word boundary in {self.count} words",
                got=f"byte {loaded.slot * WORD + byte_offset:#x}",
            )
        back = index < self.position
        at, self.position = self.position - 1, index
        if back and (loops := turned(self.device, self, at, index, self.device.now_ps)):
            self.device.livelocked(loops)

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> SequencerState:
        """Return the state as a value, for `restore`."""
        return SequencerState(self.flow(), self.values())

    def restore(self, state: SequencerState) -> None:
        """Return to a state that `snapshot` gave."""
        self.restore_flow(state.flow)
        self.restore_values(state.values)

    def release(self) -> None:
        """Give the program back; the engine is of no use after that."""
        self.words = ()
        self.flights.clear()
        self.bound.release()
        # Nothing goes round in a circle from here on, which would have to be found as garbage.
        self.bounds.clear()
        del self._at_hand, self._counted, self._issue, self._complete, self._woken
        del self.core, self.device, self._semaphores
        self._waiters = None
        self.reaches.clear()

    def flow(self) -> Flow:
        """Return where the engine stands: what may change with any completion on the device."""
        waiters = None if self._waiters is None else tuple(self._waiters)
        return Flow(
            self.position,
            self.completed,
            tuple(self.flights),
            self.state,
            self._awaiting,
            self.free_ps,
            self.last_done,
            self.busy_ps,
            self._draining,
            self._barrier_raised,
            waiters,
            self.turn,
            self.path_ps,
        )

    def restore_flow(self, flow: Flow) -> None:
        """Stand where the engine stood; whoever else waited there has to be restored as well."""
        if self._waiters is not None:
            self._waiters[:] = [each for each in self._waiters if each[1] is not self._woken]
        (self.position, self.completed, flights, self.state, self._awaiting, self.free_ps, self.last_done,
         self.busy_ps, self._draining, self._barrier_raised, waiters, self.turn, self.path_ps) = flow  # fmt: skip
        self.flights.clear()
        self.flights.extend(flights)
        self._waiters = None
        if waiters is not None and self._awaiting is not None:
            kind, _, index, *_ = self._awaiting
            where = self.core.events if kind == "event" else self.core.semaphores
            self._waiters = where.waiters[index]
            self._waiters[:] = waiters

    def values(self) -> Values:
        """Return what only the engine's own words change."""
        return Values(tuple(self.registers), self.accumulators.tobytes())

    def restore_values(self, values: Values) -> None:
        """Return to values; list and array stay the same objects, since words are bound to them."""
        self.registers[:] = values.registers
        self.accumulators[:] = np.frombuffer(values.accumulators, np.float32)

    def place(self, loaded: LoadedWord) -> Place:
        """Return where a word stands, with its text and source line."""
        return Place(self.core.index, self.name, loaded.pc, loaded.word.text, self.core.source_of(self.name, loaded.pc))
