"""The debugger session: every command is a method, every answer a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.device import Device
from emulator.dma.queues import DmaQueue
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.events import Event, Notice
from emulator.runtime import check_inputs
from emulator.sequencer import Sequencer
from emulator.session import listing, looking
from emulator.session.breakpoints import Breakpoints
from emulator.session.errors import UsageError
from emulator.session.interrupt import Flag, interruptible
from emulator.session.memory import examine, parse_format, parse_spot, spot_of_tensor
from emulator.session.names import engine_name, parse_core, parse_number, parse_time
from emulator.session.program import Program
from emulator.session.results import (
    Ahead,
    Breakpoint,
    Disassembly,
    EngineRow,
    Examined,
    Listing,
    MemoryRow,
    QueueRow,
    SemaphoreRow,
    State,
    Step,
    Stop,
    TensorRow,
    TensorValue,
)
from emulator.session.tensors import Tensors
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.neff import Neff, open_neff
from formats.targets import Target, resolve_target

__all__ = ["Session"]

Array = npt.NDArray[Any]
# What completes next: its time and its engine or queue. Returns why to stop before it, None to go on.
Before = Callable[[int, "Sequencer | DmaQueue"], str | None]
After = Callable[[Event], str | None]


class Session:
    """A program on a device, stepped by commands.

    `neff` is an open file, a path or its bytes; inputs that are not given are zeros, and `notes` says so. `target` picks a
    chip of the file's generation, `seed` shakes the schedule, `timing=False` gives every step the same time. Faults and
    hangs are values. Commands raise NotFoundError for names that do not exist and UsageError for arguments that make no
    sense; opening raises as `emulator.runtime.run` does. `folders` is where source files are looked for.
    """

    def __init__(self, neff: Neff | str | os.PathLike[str] | bytes, inputs: Mapping[str, Any] | None = None, *,
                 target: Target | str | None = None, seed: int | None = None, timing: bool = True) -> None:
        self.neff = neff if isinstance(neff, Neff) else open_neff(neff)
        self.target = self.neff.target if target is None else resolve_target(target)
        if self.target.generation != self.neff.target.generation:
            raise InputError(f"the file is for {self.neff.target.name}, not {self.target.name}")
        self.seed, self.timing = seed, timing
        self.notes: list[str] = []
        self.inputs = check_inputs(self.neff, self._with_zeros(inputs or {}))
        self.folders = [Path(self.neff.path).parent] if self.neff.path else []
        self._breakpoints = Breakpoints()
        self._listed: tuple[str, int] | None = None
        self._examined: Examined | None = None
        self._start()
        longest = max(self.program.streams(), key=lambda each: len(each[2]))
        self._focus = longest[0], longest[1]

    def _with_zeros(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(inputs)
        for tensor in self.neff.inputs:
            if tensor.name not in given:
                given[tensor.name] = np.zeros(tensor.shape, numpy_dtype(Dtype.from_numpy_name(tensor.dtype)))
                self.notes.append(f"input {tensor.name} {tensor.dtype}{list(tensor.shape)} was not given; it is all zeros")
        return given

    def _start(self) -> None:
        self.device = Device(self.target, cores=len(self.neff.subgraphs), timing=self.timing, seed=self.seed)
        self.device.load(self.neff)
        self.device.set_inputs(self.inputs)
        self.program, self.tensors = Program(self.device), Tensors(self.device)
        self.events = self.time_ps = 0
        self._reported = -1

    def restart(self) -> State:
        """Begin again: a fresh device, the same inputs; breakpoints stay."""
        observers = self.device.observers
        self._start()
        self.device.observers = observers
        return self.state()

    # --- moving ------------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> Stop:
        """Go on by `count` completions; breakpoints on the way stop it, that on the first does not."""
        left = self._count(count)

        def after(event: Event) -> str | None:
            nonlocal left
            left -= 1
            return None if left else "step"

        return self._travel(after, keep=True)

    def stepi(self, engine: str | None = None, core: int | None = None) -> Stop:
        """Go on until an engine, else the focus engine, completes one instruction; the focus moves to it."""
        where = self._engine(engine, core)
        if self.device.cores[where[0]].engines[where[1]].done:
            return self._stop("engine done", (), 0)
        self._focus = where

        def after(event: Event) -> str | None:
            return "step" if (event.core, event.engine) == where and event.kind != "dma" else None

        return self._travel(after)

    def next(self, count: int = 1) -> Stop:
        """Go on until the focus engine has left its source line; without line information this is `stepi`.

        Where that engine is done, the focus moves to one that is not.
        """
        for _ in range(self._count(count)):
            found = self._next()
            if found.reason != "line":
                break
        return found

    def _next(self) -> Stop:
        core, name = self._focus
        if self.device.cores[core].engines[name].done:
            others = [(c, n) for c, n, _ in self.program.streams() if not self.device.cores[c].engines[n].done]
            if others:
                core, name = self._focus = others[0]
        engine = self.device.cores[core].engines[name]
        start = self._line(engine)

        def after(event: Event) -> str | None:
            if event.core != core or event.engine != name:
                return None
            here = self._line(engine)
            return "line" if here is None or here != start else None

        return self._travel(after)

    def _line(self, engine: Sequencer) -> tuple[str | None, int | None] | None:
        loaded = engine.next_loaded
        source = None if loaded is None else self.program.source(engine.core.index, engine.name, loaded.pc)
        return None if source is None else (source.file, source.line)

    def continue_(self) -> Stop:
        """Go on until a breakpoint, a fault, a hang, the end, or Ctrl-C."""
        return self._travel(lambda event: None, check_first=True)

    def until(self, where: str) -> Stop:
        """Go on until a time ("2.5us"), an event ("#12": up to and with it), or a place as in `break_at`."""
        text = where.strip()
        time_ps = parse_time(text)
        if time_ps is not None:
            return self._travel(lambda event: None, lambda due, owner: "until" if due > time_ps else None, check_first=True)
        if text.startswith("#"):
            number = parse_number(text[1:], "an event number")
            if number < self.events:
                raise UsageError(f"event #{number} has happened already; the next is #{self.events}")
            return self._travel(lambda event: "until" if event.number >= number else None, check_first=True)
        target = self.program.resolve(text, self._focus[1])
        goal = Breakpoint(0, text, target.kind, target.where, target.places, target.owners)
        return self._travel(lambda event: None, lambda due, owner: "until" if goal.matches(*_key(owner)) else None)

    @staticmethod
    def _count(count: int) -> int:
        if count < 1:
            raise UsageError(f"{count} is no count from 1 on")
        return count

    def _travel(self, after: After, before: Before | None = None, *, keep: bool = False, check_first: bool = False) -> Stop:
        """Complete one thing after the other until something says stop."""
        device, flag = self.device, Flag()
        steps: list[Step] = []
        last: Event | None = None
        count, reason = 0, ""
        hit: tuple[int, ...] = ()
        with interruptible(flag):
            try:
                while not reason:
                    # Where `continue` stopped, it goes on from: a breakpoint is reported once.
                    look = count > 0 or (check_first and device.steps != self._reported)
                    if (look and self._breakpoints.active) or (before is not None and (count or check_first)):
                        due = device.ahead()
                        if due is not None:
                            hit = self._breakpoints.hit(*_key(due[1])) if look else ()
                            reason = "breakpoint" if hit else "" if before is None else before(*due) or ""
                            if reason:
                                break
                    event = device.step()
                    if event is None:
                        reason = device.outcome
                        break
                    count, last = count + 1, event
                    if keep:
                        steps.append(self._step(event))
                    if event.kind in ("fault", "hang"):
                        reason = event.kind
                    else:
                        reason = after(event) or ("interrupted" if flag.raised else "")
            except KeyboardInterrupt:
                reason = "interrupted"
                while (event := device.take_pending()) is not None:
                    count, last = count + 1, event
                    if keep:
                        steps.append(self._step(event))
        if hit:
            self._reported = device.steps
        if last is not None:
            self.events, self.time_ps = last.number + 1, last.time_ps
            if not keep:
                steps.append(self._step(last))
        return self._stop(reason, tuple(steps), count, hit)

    def _stop(self, reason: str, steps: tuple[Step, ...], count: int, hit: tuple[int, ...] = ()) -> Stop:
        ahead = self.ahead()
        if hit and ahead is not None and ahead.kind != "dma":
            self._focus = ahead.core, ahead.engine
        fault = self.device.fault if reason == "fault" else None
        if fault is not None and fault.engine in self.device.cores[0].engines and fault.core >= 0:
            self._focus = fault.core, fault.engine
        return Stop(reason, self.time_ps, count, steps, hit, ahead, fault, self.device.hang if reason == "hang" else None)

    def _step(self, event: Event) -> Step:
        core, engine, pc = event.core, event.engine, event.pc
        text, source, starts = event.text, self.program.source(core, engine, pc), None
        if event.kind == "dma":
            source = self.program.source(core, event.instruction.engine, pc)
        elif event.kind in ("instruction", "barrier"):
            own = self.program.text(core, engine, pc)
            text = own or text
            starts = self._transfer_text(core, engine, pc)
        elif event.kind == "fault":
            text = event.instruction.message
        elif event.kind == "hang":
            text = event.instruction.text().split("\n")[0]
        return Step(event.number, event.time_ps, event.issued_ps, core, engine, pc, event.kind, text, source,
                    event.semaphores, event.writes, starts)

    def _transfer_text(self, core: int, engine: str, pc: int) -> str | None:
        pending = [t for q in self.device.queues if q.core == core for t in q.pending if t.engine == engine and t.pc == pc]
        return f"{pending[-1].name}: {pending[-1].text}" if pending else None

    # --- where it stands ---------------------------------------------------------------------------------------------

    def ahead(self) -> Ahead | None:
        """Return what completes next, None at the end; words may issue, nothing completes."""
        if self.device.finished or (due := self.device.ahead()) is None:
            return None
        time_ps, owner = due
        core, name, pc, kind = _key(owner)
        if isinstance(owner, DmaQueue):
            transfer = owner.pending[0]
            return Ahead(core, name, pc, kind, transfer.text, self.program.source(core, transfer.engine, pc), time_ps)
        return Ahead(core, name, pc, kind, self.program.text(core, name, pc), self.program.source(core, name, pc), time_ps)

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"; what no command has reported yet is still to come."""
        return "running" if self.device.unreported else self.device.outcome

    def state(self) -> State:
        """Return where the session stands."""
        device, ahead = self.device, self.ahead()
        name = device.model.name if device.model is not None else ""
        return State(name, self.target.name, len(device.cores), self.outcome, self.time_ps, self.events, self._focus,
                     ahead, len(self._breakpoints), len(device.warnings))

    def focus(self, core: int | str | None = None, engine: str | None = None) -> tuple[int, str]:
        """Choose the core and engine that other commands mean; return (core, engine)."""
        if isinstance(core, str):
            number, rest = parse_core(core)
            core, engine = number, rest or engine
        self._focus = self._engine(engine, core)
        return self._focus

    def _engine(self, engine: str | None, core: int | None) -> tuple[int, str]:
        number = self._focus[0] if core is None else core
        if not 0 <= number < len(self.device.cores):
            raise NotFoundError(f"no core {number}; there are {len(self.device.cores)}")
        return number, self._focus[1] if engine is None else engine_name(engine)

    def warnings(self) -> tuple[Notice, ...]:
        """Return what was odd so far and did not stop the run, such as reads of bytes never written."""
        return tuple(self.device.warnings)

    def info_engines(self) -> tuple[EngineRow, ...]:
        """Return every engine: where it stands and what it waits for."""
        return looking.engines(self.device, self.program, self._focus)

    def info_queues(self) -> tuple[QueueRow, ...]:
        """Return every DMA queue."""
        return looking.queues(self.device)

    def info_semaphores(self, everything: bool = False) -> tuple[SemaphoreRow, ...]:
        """Return semaphores and events that are not zero or are waited for, or all of them."""
        return looking.semaphores(self.device, everything)

    def info_memory(self) -> tuple[MemoryRow, ...]:
        """Return the memories and the allocations in HBM."""
        return looking.memory(self.device)

    def info_tensors(self) -> tuple[TensorRow, ...]:
        """Return the tensors and tiles that the file names."""
        return tuple(self.tensors.rows())

    def info_breakpoints(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints."""
        return self._breakpoints.all

    # --- breakpoints -------------------------------------------------------------------------------------------------

    def break_at(self, where: str, temporary: bool = False) -> Breakpoint:
        """Stop `continue` before "PE:12", "kernel.py:88", a pc of the focus engine, each word of an engine or opcode, or
        each transfer of a queue; "nc1 " in front means one core only.
        """
        return self._breakpoints.add(where.strip(), self.program.resolve(where, self._focus[1]), temporary)

    def tbreak(self, where: str) -> Breakpoint:
        """Set a breakpoint that goes away when it is hit."""
        return self.break_at(where, temporary=True)

    def delete(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Remove breakpoints, all without numbers, and return them."""
        return self._breakpoints.delete(numbers)

    def enable(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Enable breakpoints, all without numbers, and return them."""
        return self._breakpoints.enable(numbers, True)

    def disable(self, *numbers: int) -> tuple[Breakpoint, ...]:
        """Disable breakpoints, all without numbers, and return them."""
        return self._breakpoints.enable(numbers, False)

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints in the order they were set."""
        return self._breakpoints.all

    # --- looking -----------------------------------------------------------------------------------------------------

    def examine(self, address: int | str | None = None, count: int | None = None, format: str = "x") -> Examined:
        """Return values in memory; without an address those behind the last ones.

        `address` is an engine or device address, "sbuf:PARTITION:BYTE", "psum:…", "hbm:ADDRESS", or a tensor's name, with
        "+BYTES" if wanted; `format` as gdb has it ("8f", "xb", "dh") or an element type ("bfloat16").
        """
        given, base, dtype = parse_format(format)
        number = count if count is not None else given or 1
        if number < 1:
            raise UsageError(f"{number} is no count from 1 on")
        self._examined = examine(self.device, self._spot(address), number, base, dtype)
        return self._examined

    def _spot(self, address: int | str | None) -> Any:
        device, core = self.device, self._focus[0]
        if address is None:
            last = self._examined
            if last is None:
                raise UsageError("examine what? an address or a tensor")
            text = f"hbm:{last.end:#x}" if last.space == "HBM" else f"nc{last.core} {last.space}:{last.partition}:{last.end:#x}"
        else:
            text = str(address).strip()
        spot = parse_spot(device, text, core)
        if spot is None:
            name, plus, tail = text.rpartition("+")
            offset = parse_number(tail.strip(), "an offset") if plus else 0
            spot = spot_of_tensor(device, self.tensors.find(name.strip() if plus else text, core), core, offset)
        return spot

    def print_tensor(self, text: str) -> Array:
        """Return the elements that "name" or "name[slice]" selects, as they are now."""
        return self.tensor(text).array

    def tensor(self, text: str) -> TensorValue:
        """Return the same with where it lies and how many elements were never written."""
        return self.tensors.value(text, self._focus[0])

    def list_source(self, around: str | int | None = None, count: int = 10) -> Listing:
        """Return source lines around "FILE:LINE", a line, or the focus engine; then those behind the last ones."""
        self._count(count)
        if around is None and self._listed is not None:
            file, first = self._listed
        else:
            file, line = self._source_place(around)
            first = max(1, line - count // 2)
        lines = listing.read_source(file, self.folders)
        if first > len(lines):
            raise NotFoundError(f"{file} has {len(lines)} lines")
        found = listing.listing(self.device, self.program, self._breakpoints, file, lines, first, count)
        self._listed = file, first + count
        return found

    def forget_listing(self) -> None:
        """Let the next `list_source` begin around the focus engine again."""
        self._listed = None

    def _source_place(self, around: str | int | None) -> tuple[str, int]:
        core, name = self._focus
        engine = self.device.cores[core].engines[name]
        loaded = engine.next_loaded or (engine.words[-1] if engine.words else None)
        here = None if loaded is None else self.program.source(core, name, loaded.pc)
        if around is None or isinstance(around, int) or ":" not in around:
            if here is None or here.file is None:
                raise NotFoundError(f"the file names no source line for {name}")
            return here.file, (here.line or 1) if around is None else parse_number(str(around), "a line or FILE:LINE")
        file, _, line = around.rpartition(":")
        return self.program.find_file(file), parse_number(line, "a line")

    def disassemble(self, engine: str | None = None, around: int | None = None, count: int = 10,
                    core: int | None = None) -> Disassembly:
        """Return words around a pc, else around where the engine stands, with what holds of their waits now."""
        self._count(count)
        number, name = self._engine(engine, core)
        sequencer = self.device.cores[number].engines[name]
        if around is None:
            index = min(sequencer.position - len(sequencer.in_flight), max(sequencer.count - 1, 0))
        else:
            index = next((i for i, word in enumerate(sequencer.words) if word.pc >= around), -1)
            if index < 0 or around < 0:
                raise NotFoundError(f"no {name} pc {around}; it has " + (f"0 to {sequencer.words[-1].pc}" if sequencer.words
                                                                         else "no words"))
        first = max(0, min(index - count // 2, sequencer.count - count))
        return listing.disassemble(self.device, self.program, self._breakpoints, number, name, first, count)


def _key(owner: Sequencer | DmaQueue) -> tuple[int, str, int, str]:
    """Return core, engine or queue, pc and kind of what an engine or queue completes next."""
    if isinstance(owner, DmaQueue):
        return owner.core, owner.name, owner.pending[0].pc, "dma"
    return owner.core.index, owner.name, owner.in_flight[0].loaded.pc, "instruction"
