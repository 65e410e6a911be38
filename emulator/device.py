"""A device: cores, HBM, DMA and one event heap in integer picoseconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from emulator.activation_tables import MODES as ACT_MODES
from emulator.addresses import address_map
from emulator.arch import arch_of
from emulator.chance import Chance
from emulator.completing import completing
from emulator.context import Log
from emulator.core import Core
from emulator.cost import CostModel
from emulator.cost.contention import check_parts
from emulator.device_memory import DeviceMemory
from emulator.diagnosis.causes import Reason
from emulator.diagnosis.explain import explain
from emulator.diagnosis.graph import Hang
from emulator.diagnosis.index import ProgramIndex
from emulator.dma.queues import DmaQueue
from emulator.dma.system import DmaSystem
from emulator.errors import InputError, LoadError
from emulator.events import WARNINGS, Event, Notice, SemaphoreChange
from emulator.faults import Fault, FaultError, Place
from emulator.known_way import KnownWay
from emulator.livelock import Joint, Loop
from emulator.loader import load
from emulator.memory import new_hash
from emulator.notes import ENDED, Notes
from emulator.observers import CompletionObserver, Hooks, Observer
from emulator.pace import at_pace
from emulator.progress import Callback, DeviceState, Progress
from emulator.repeats import run_again
from emulator.sequencer import Sequencer
from emulator.tensors import read_tensor, write_tensors
from emulator.windows import read_device, write_device
from formats.errors import NeuronError, UnsupportedError
from formats.targets import Target, resolve_target

if TYPE_CHECKING:
    from emulator.loaded import LoadedModel, LoadedWord
    from emulator.placement import DeviceTensor
    from formats.neff import Neff

__all__ = ["Device"]

_NEVER = 1 << 62
_LOOK = 512  # completions between two looks at this machine's clock


class Device:
    """One logical NeuronCore: `cores` physical cores on shared HBM, stepped one completion at a time.

    `timing=False` gives every step one picosecond, `without` leaves out parts of the time model ("ports", "throttle");
    `act` is "table" where activation functions are to be computed by the file's own tables;
    `seed` permutes what is due at one time and jitters latencies;
    `max_steps` (completions), `limit_ps` (emulated time) and `max_seconds` (this machine's time, while it runs) end a
    run that does not end by itself, `hang_timeout_ps` one in which an engine waits longer than that, whatever the
    others do, and `interrupt` any. `unseen` promises that nobody has views of its memories when it runs: what earlier
    programs left there is filled where somebody looks at it then, or the program reads what it has not written. Nothing
    that a program does raises: `fault` and `hang` say what stopped it.
    """

    NOT_STATE: ClassVar = {
        **dict.fromkeys(
            ("act", "hang_timeout_ps", "limit_ps", "max_seconds", "max_steps", "replays", "seed", "target", "timing"),
            "an option",
        ),
        "unseen": "a promise of the caller",
        **dict.fromkeys(("addresses", "arch", "costs", "propagation_ps"), "a figure of the chip"),
        **dict.fromkeys(
            ("observers", "watched", "makes_events", "hooks", "log", "notes", "on_unwritten"), "who watches"
        ),
        "reprice": "a what-if of the caller",
        "way": "of no use but to those who run the program again",
        **dict.fromkeys(
            ("interrupted", "_interrupted_at", "_look_at", "_resumed", "_spent"), "a budget of this machine's time"
        ),
        **dict.fromkeys(("changes", "_pending", "_stepping"), "empty between two completions that were reported"),
        "horizon_ps": "of a run under way",
        **dict.fromkeys(("_chance", "jitter"), "put back by how many random words were `drawn`"),
        "order": "only grows; what counts is which of two numbers is larger",
        "model": "the program",
        "program_index": "derived from the program",
    }

    def __init__(
        self,
        target: Target | str,
        cores: int = 1,
        timing: bool = True,
        seed: int | None = None,
        *,
        max_steps: int | None = None,
        limit_ps: int | None = None,
        hang_timeout_ps: int | None = None,
        without: Collection[str] = (),
        act: str = "exact",
        max_seconds: float | None = None,
        unseen: bool = False,
    ) -> None:
        self.target = resolve_target(target)
        self.arch = arch_of(self.target)
        if not 1 <= cores <= self.arch.lnc.whole:
            most = self.arch.lnc.whole
            raise LoadError(f"{self.target.name} runs 1 to {most} cores as one logical core, not {cores}")
        if act not in ACT_MODES:
            raise InputError(f"activation functions are computed {' or '.join(ACT_MODES)}, not {act!r}")
        self.timing, self.seed, self.act, self.unseen = timing, seed, act, unseen
        self.max_steps = _NEVER if max_steps is None else max_steps
        self.limit_ps = _NEVER if limit_ps is None else limit_ps
        self.max_seconds = max_seconds
        self._spent = self._resumed = 0.0
        self.interrupted = False
        self._interrupted_at = -1
        self._look_at = 0  # at so many completions there may be a reason to end
        self.joint: Joint | None = None
        self._loops: tuple[Loop, ...] = ()
        self.hang_timeout_ps = hang_timeout_ps
        # No engine can have waited too long before this time.
        self._alarm_ps = _NEVER if hang_timeout_ps is None else hang_timeout_ps
        self.addresses = address_map(self.target.generation)
        self.costs = CostModel(self.arch, timing=timing, without=check_parts(without))
        self.propagation_ps: int = self.costs.propagation_ps
        self.horizon_ps = -1  # engines may go on to this time without asking; before all times where somebody looks
        self.heap: list[tuple[int, int, Callback]] = []
        self.now_ps = self.steps = 0
        self.observers: list[Observer | CompletionObserver[Sequencer]] = []
        self.hooks: Hooks[Sequencer, LoadedWord] = Hooks()
        self.watched = self.makes_events = False
        self.log: Log | None = None  # what completes, for the next run of the program
        self.notes: Notes | None = None  # what happens, for who looks at it afterwards
        self.on_unwritten: Callable[[Place], object] | None = None  # told before bytes are used that nothing wrote
        self.replays = True  # whether a run may go the way of one before
        self.way: KnownWay | None = None  # that it has gone to its end
        self._checking = True
        self.changes: list[SemaphoreChange] = []
        self.warnings: tuple[Notice, ...] = ()
        self.fault: Fault | None = None
        self.hang: Hang | None = None
        self.model: LoadedModel | None = None
        self.program_index = ProgramIndex()
        self._stepping = False
        self._ended = False
        self._pending: deque[Event] = deque()
        self.numbers = 0
        # A shaken schedule has other numbers, and stretches or shortens times.
        self._chance = None if seed is None else Chance(seed)
        self.order: Callable[[], int] = count().__next__ if self._chance is None else self._chance.order
        self.jitter: Callable[[int], int] | None = None if self._chance is None else self._chance.jitter
        # What another cost would change: (engine, loaded word, interval, latency) -> (interval, latency).
        self.reprice: Callable[[Sequencer, Any, int, int], tuple[int, int]] | None = None
        self.hbm = DeviceMemory(self.addresses.hbm)
        self.cores = [Core(self, index) for index in range(cores)]
        if not unseen:
            self._freshen()
        self.dma = DmaSystem(self)

    def _freshen(self) -> None:
        """Have memories as new ones, where nothing has been written."""
        for core in self.cores:
            core.memory.freshen()
            core.pe.defer(False)

    # --- state -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DeviceState:
        """Return the whole state as a value, for `restore`; take it when the event of the last completion is out."""
        cores = tuple(core.snapshot() for core in self.cores)
        return DeviceState(self.progress(), cores, self.dma.snapshot(), self.hbm.snapshot())

    def restore(self, state: DeviceState) -> None:
        """Return to a state that `snapshot` of the same device gave."""
        self.hbm.restore(state.hbm)
        for core, held in zip(self.cores, state.cores, strict=True):
            core.restore(held)
        self.dma.restore(state.dma)
        self.dma.bind_again()
        self.restore_progress(state.progress)

    def progress(self) -> Progress:
        """Return where the device stands in time."""
        drawn = 0 if self._chance is None else self._chance.drawn
        return Progress(self.now_ps, self.steps, tuple(self.heap), self._ended, self.fault, self.hang, self.checking,
                        self.warnings, drawn, self._alarm_ps, self.numbers, self.joint, self._loops)  # fmt: skip

    def restore_progress(self, progress: Progress) -> None:
        """Stand in time where the device stood; what was not reported yet never happened."""
        (
            self.now_ps,
            self.steps,
            self.heap[:],
            self._ended,
            self.fault,
            self.hang,
            self.checking,
            self.warnings,
            drawn,
            self._alarm_ps,
            self.numbers,
            self.joint,
            self._loops,
        ) = progress
        self._look_at, self._spent, self.interrupted, self._interrupted_at = 0, 0.0, False, -1
        self._resumed = perf_counter()
        self.changes.clear()
        self._pending.clear()
        if self._chance is not None:
            self._chance.restore(drawn)

    # --- programs and tensors ----------------------------------------------------------------------------------------

    def load(self, neff: Neff) -> LoadedModel:
        """Place a NEFF on the device and point the engines at it; errors as in `emulator.loader.load`."""
        self.model = load(neff, self)
        for loaded in self.model.cores:
            self.cores[loaded.index].load(loaded)
        return self.model

    def _need_model(self) -> LoadedModel:
        if self.model is None:
            raise LoadError("no program is loaded")
        return self.model

    def set_inputs(self, inputs: Mapping[str, npt.NDArray[Any]], borrowed: bool = False) -> None:
        """Store arrays as input tensors, or read the caller's until the release; errors as in `write_tensors`."""
        write_tensors(self._need_model().tensors, self.hbm, inputs, borrowed)

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """Return a copy of a tensor as it is now: by element type and shape where the file gives them, else bytes."""
        return read_tensor(self._need_model().tensors, self.hbm, name)

    def outputs(self, last: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Return copies of the output tensors by name; `last`: or their own bytes, which nobody asks for any more."""
        model = self._need_model()
        return {info.name: read_tensor(model.tensors, self.hbm, info.name, last) for info in model.outputs}

    @property
    def checking(self) -> bool:
        """Return whether reads of bytes that nothing wrote are looked for."""
        return self._checking

    @checking.setter
    def checking(self, checking: bool) -> None:
        self._checking = checking
        if not checking:  # nobody asks any more what is missing before it is read
            self._freshen()
            self.hbm.fill()

    @property
    def program_name(self) -> str:
        """Return the name of the program, "" without one."""
        return "" if self.model is None else self.model.name

    @property
    def tensors(self) -> Mapping[str, DeviceTensor]:
        """Return the variables that all cores share, by name."""
        return {} if self.model is None else self.model.tensors

    @property
    def queues(self) -> list[DmaQueue]:
        """Return the DMA queues of all cores."""
        return self.dma.queues

    # --- time --------------------------------------------------------------------------------------------------------

    def schedule(self, time_ps: int, callback: Callback) -> None:
        """Call `callback(now_ps)` at a time; a shaken schedule moves it, never before now."""
        if self.jitter is not None and time_ps > self.now_ps:
            time_ps = self.now_ps + self.jitter(time_ps - self.now_ps)
        heappush(self.heap, (time_ps, self.order(), callback))

    @property
    def finished(self) -> bool:
        """Tell whether nothing more will happen: all done, faulted, or hung."""
        return self._ended

    def step(self) -> Event | None:
        """Go on to the next completion and return it; None when there is none."""
        if self._pending:
            return self._pending.popleft()
        self._arm(stepping=True)
        try:
            with np.errstate(all="ignore"):
                while not self._pending and not self._ended:
                    self._advance()
        finally:
            self._rest()
        return self._pending.popleft() if self._pending else None

    def ahead(self) -> tuple[int, Sequencer | DmaQueue] | None:
        """Let words issue until a completion is due next; return its time and whose it is, without completing it.

        None where `step` gives something else first: an event that is ready, a fault at issue, the end, a hang.
        """
        self._arm(stepping=True)
        try:
            while self.heap and not self._pending and not self._ended:
                time_ps, _, callback = self.heap[0]
                if time_ps > self._alarm_ps and self._waited_too_long(time_ps):
                    break
                owner = completing(callback)
                if owner is not None:
                    return time_ps, owner
                self._advance()
            if not self.heap and not self._pending and not self._ended:
                self._settle()
        finally:
            self._rest()
        return None

    def take_pending(self) -> Event | None:
        """Return an event that is ready and was not returned by `step` (an observer raised), None without one."""
        return self._pending.popleft() if self._pending else None

    @property
    def unreported(self) -> bool:
        """Tell whether `step` would return an event without moving on."""
        return bool(self._pending)

    def run(self, until: int | Callable[[Event], object] | None = None) -> str:
        """Run to the end, to a time in picoseconds, or until a function of the event returns true.

        Returns why it stopped: "finished", "fault", "hang" or "until".
        """
        if callable(until):
            while (event := self.step()) is not None:
                if until(event):
                    return "until"
            return self.outcome
        self._arm(stepping=False, runs_again=until is None)
        try:
            with at_pace():
                if until is None:
                    return run_again(self, partial(self._run, _NEVER), self._advance)
                return self._run(until)
        finally:
            self._rest()

    def _run(self, last: int) -> str:
        """Carry out what is due up to a time, as `_advance` does, with fewer questions; return as `run` does."""
        heap, limit = self.heap, self.limit_ps
        try:
            while not self._ended:
                if not heap:
                    self._settle()
                    continue
                time_ps = heap[0][0]
                if time_ps > last:
                    self.now_ps = max(self.now_ps, last)
                    return "until"
                if time_ps > limit or time_ps > self._alarm_ps or self.steps >= self._look_at:
                    self._advance()
                    continue
                # Up to here nothing ends the run but a completion, which then takes the horizon back.
                horizon = min(last, limit, self._alarm_ps)
                if self._chance is not None or self._look_at < _NEVER:
                    self._go_to(horizon)
                    continue
                self.horizon_ps = horizon
                if self.interrupted:
                    continue  # just before that
                while heap:
                    time_ps, number, callback = heappop(heap)
                    if time_ps > self.horizon_ps:
                        heappush(heap, (time_ps, number, callback))
                        break
                    self.now_ps = time_ps
                    callback(time_ps)
        except FaultError as error:
            self.raise_fault(error.fault)
        finally:
            self.horizon_ps = -1
        return self.outcome

    def _go_to(self, horizon: int) -> None:
        """Carry out what is due up to a time, with a look at the number of completions behind each event."""
        heap = self.heap
        self.horizon_ps = horizon if self._chance is None else -1
        while heap and heap[0][0] <= horizon and not self._ended and self.steps < self._look_at:
            time_ps, _, callback = heappop(heap)
            self.now_ps = time_ps
            callback(time_ps)

    def end(self, now_ps: int, steps: int) -> None:
        """Stand at the end of a run that was carried out elsewhere, after so many completions."""
        self.now_ps, self.steps, self._ended = now_ps, steps, True
        self.heap.clear()

    def interrupt(self) -> None:
        """End the run between two completions, the next time it moves on; for signal handlers and other threads."""
        self.interrupted = True
        self._look_at, self.horizon_ps = 0, -1

    def livelocked(self, loops: tuple[Loop, ...]) -> None:
        """End the run behind the completion under way: engines loop for ever."""
        self._loops = loops
        self._look_at, self.horizon_ps = 0, -1

    @property
    def outcome(self) -> str:
        """Return "fault", "hang" or "finished" at the end, "running" before."""
        if not self._ended:
            return "running"
        return "fault" if self.fault else "hang" if self.hang else "finished"

    def _arm(self, stepping: bool, runs_again: bool = False) -> None:
        """Note who watches: events are made only for a caller that steps, or for observers that want them."""
        self._stepping = stepping
        if not (self.unseen and runs_again):
            self._freshen()
        self.look(self.observers)
        if self.max_seconds is not None:
            self._resumed = perf_counter()

    def look(self, observers: list[Observer | CompletionObserver[Sequencer]]) -> None:
        """Let these observers watch from here on."""
        if observers:
            self._freshen()
        self.observers = observers
        self.watched = self._stepping or bool(observers) or self.notes is not None
        self.hooks = Hooks(observers)
        self.makes_events = self._stepping or bool(self.hooks.event)

    def _rest(self) -> None:
        """Note that the device stands, and how much of this machine's time it has taken."""
        self._stepping = False
        if self.max_seconds is not None:
            self._spent += perf_counter() - self._resumed

    def _advance(self) -> None:
        """Carry out what is due next; at the end of everything, tell a finish from a hang."""
        heap = self.heap
        if not heap:
            self._settle()
            return
        time_ps, number, callback = heappop(heap)
        if time_ps > self.limit_ps or self.steps >= self._look_at:
            reason = self._reason_to_end(time_ps)
            if reason is not None:
                heappush(heap, (time_ps, number, callback))
                self._end_hung(reason)
                return
        if time_ps > self._alarm_ps:
            heappush(heap, (time_ps, number, callback))
            if self._waited_too_long(time_ps):
                return
            heappop(heap)
        self.now_ps = time_ps
        try:
            callback(time_ps)
        except FaultError as error:
            self.raise_fault(error.fault)

    def _reason_to_end(self, time_ps: int) -> Reason | None:
        """Return why the run ends before a time, None where it goes on; note when to ask again."""
        if self._loops:
            return Reason.LIVELOCK
        if self.interrupted:
            # Right behind a completion, so that a run with a limit of as many comes to the same end.
            if self._interrupted_at < 0:
                self._interrupted_at = self.steps
            return None if self.steps == self._interrupted_at else Reason.INTERRUPTED
        if time_ps > self.limit_ps:
            return Reason.TIME_LIMIT
        if self.steps >= self.max_steps:
            return Reason.INSTRUCTION_LIMIT
        if self.max_seconds is None:
            self._look_at = self.max_steps
            return None
        self._look_at = min(self.max_steps, self.steps + _LOOK)
        spent = self._spent + perf_counter() - self._resumed
        return Reason.HOST_TIME_LIMIT if spent >= self.max_seconds else None

    def _waited_too_long(self, time_ps: int) -> bool:
        """End the run where an engine has waited for the hang timeout before a time; else note when to look again."""
        timeout = self.hang_timeout_ps
        if timeout is None:
            return False
        since = [
            engine.waiting_on.since_ps
            for core in self.cores
            for engine in core.engines.values()
            if engine.state == "waiting" and engine.waiting_on is not None
        ]
        first = min(since, default=time_ps) + timeout
        if first < time_ps:
            self.now_ps = max(self.now_ps, first)
            self._end_hung(Reason.HANG_TIMEOUT)
            return True
        self._alarm_ps = first
        return False

    def _settle(self) -> None:
        if all(engine.done for core in self.cores for engine in core.engines.values()):
            self._ended = True
        else:
            self._end_hung(Reason.DEADLOCK)

    def _end_hung(self, reason: Reason) -> None:
        self.hang = explain(self, reason, self._loops)
        self._ended, self.horizon_ps = True, -1
        if self.watched:
            first = self.hang.waits[0] if self.hang.waits else None
            place = (first.core, first.engine, first.pc) if first else (0, "", 0)
            self._emit_end(*place, self.hang, "hang")

    # --- what cores and DMA report -----------------------------------------------------------------------------------

    def next_number(self) -> int:
        """Return the number of the next event."""
        number = self.numbers
        self.numbers = number + 1
        return number

    def emit(self, event: Event) -> None:
        """Hand an event to the caller that steps and to the observers."""
        if self._stepping:
            self._pending.append(event)
        for hook in self.hooks.event:
            hook(event)

    def _emit_end(self, core: int, engine: str, pc: int, what: Hang | Fault, kind: str) -> None:
        event = Event(self.next_number(), self.now_ps, self.now_ps, core, engine, pc, what, kind)
        if self.notes is not None:
            self.notes.append((ENDED, event))
        self.emit(event)

    def raise_fault(self, fault: Fault) -> None:
        """Record a fault and stop; the first one counts."""
        if self._ended:
            return
        self.fault, self._ended = fault if fault.time_ps >= 0 else replace(fault, time_ps=self.now_ps), True
        self.horizon_ps = -1
        if self.watched:
            self._emit_end(fault.core, fault.engine, fault.pc, self.fault, "fault")

    def fail(self, error: NeuronError, place: Place) -> None:
        """Record what a word could not do as a fault of that word."""
        if isinstance(error, FaultError):
            fault = error.fault
        else:
            fault = Fault("unsupported" if isinstance(error, UnsupportedError) else "operand", str(error))
        self.raise_fault(fault.at(place, self.now_ps))

    def notice(self, kind: str, message: str, place: Place, operand: str = "") -> None:
        """Keep a warning; only the first hundred are kept."""
        if len(self.warnings) < WARNINGS:
            made = Notice(kind, message, place.core, place.engine, place.pc, place.instruction_text, operand,
                          self.now_ps)  # fmt: skip
            self.warnings += (made,)
            if self.log is not None:
                self.log.append((made, None, None))
        if len(self.warnings) >= WARNINGS:
            self.checking = False

    def warn_unwritten(self, place: Place, operand: str, missing: int, total: int) -> None:
        """Keep a warning about a read of bytes that nothing wrote."""
        if self.on_unwritten is not None:
            self.on_unwritten(place)
        self.notice("unwritten", f"{operand}: {missing} of {total} bytes read were never written", place, operand)

    def write_device(self, address: int, size: int, value: int) -> None:
        """Write to a device address, as a word does."""
        write_device(self, address, size, value)

    def read_device(self, address: int, size: int) -> int:
        """Read from a device address, as a word does."""
        return read_device(self, address, size)

    def release(self) -> None:
        """Give memories and program back to the process; the device is of no use after that."""
        for core in self.cores:
            core.release()
        self.hbm.release()
        self.dma.release()
        self.heap.clear()
        self.model = None  # words of indirect transfers refer to the device
        self.look([])
        self.notes = self.reprice = self.on_unwritten = None

    def state_hash(self) -> str:
        """Return a hash of memories, written planes, semaphores, events, registers and engine positions."""
        digest = new_hash()
        for core in self.cores:
            core.digest(digest)
        self.hbm.digest(digest)
        return str(digest.hexdigest())
