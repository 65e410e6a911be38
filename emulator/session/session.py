"""The debugger session: every command is a method, every answer a value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.debug_stream import DebugStream, Printed
from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.events import Notice
from emulator.hang import Hang, explain
from emulator.journal import BUDGET, Journal
from emulator.runtime import check_inputs
from emulator.session import listing, looking
from emulator.session.breaking import Breaking
from emulator.session.breakpoints import Breakpoints
from emulator.session.errors import UsageError
from emulator.session.interrupt import Flag, interruptible
from emulator.session.memory import examine, parse_format, parse_spot, spot_of_tensor
from emulator.session.names import parse_core, parse_number
from emulator.session.program import Program
from emulator.session.results import (
    Checks,
    Disassembly,
    DisassemblyRow,
    DmaRow,
    EngineRow,
    Examined,
    Listing,
    MemoryRow,
    QueueRow,
    RegisterRow,
    SemaphoreRow,
    State,
    TensorRow,
    TensorValue,
    Why,
)
from emulator.session.tensors import Tensors
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.neff import Neff, SourceLocation, open_neff
from formats.targets import Target, resolve_target

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.session.live_checks import LiveChecks

__all__ = ["Session"]

Array = npt.NDArray[Any]
_SOON = 16  # words behind the present one that may say which file an engine is about to be in


class Session(Breaking):
    """A program on a device, stepped by commands.

    `neff` is an open file, a path or its bytes; missing inputs are zeros, and `notes` says so. `target` picks
    a chip of the file's generation, `seed` shakes the schedule, `timing=False` gives every step the same time. Faults
    and hangs are values. Commands raise NotFoundError for names that do not exist, UsageError for arguments that make
    no sense; opening raises as `emulator.runtime.run` does. `folders` is where source files are looked for.
    `journal_bytes` bounds what going back takes; 0 keeps no journal. An engine that waits
    longer than `hang_timeout_ps` is a hang, though others still move. `post_mortem` sessions, of core dumps, do not
    move.
    """

    post_mortem = False
    _debug_stream: DebugStream | None = None

    def __init__(
        self,
        neff: Neff | str | os.PathLike[str] | bytes,
        inputs: Mapping[str, Any] | None = None,
        *,
        target: Target | str | None = None,
        seed: int | None = None,
        timing: bool = True,
        journal_bytes: int = BUDGET,
        hang_timeout_ps: int | None = None,
        act: str = "exact",
    ) -> None:
        self.neff = neff if isinstance(neff, Neff) else open_neff(neff)
        self.target = self.neff.target if target is None else resolve_target(target)
        if self.target.generation != self.neff.target.generation:
            raise InputError(f"the file is for {self.neff.target.name}, not {self.target.name}")
        self.seed, self.timing, self.act = seed, timing, act
        self._journal_bytes, self.hang_timeout_ps = journal_bytes, hang_timeout_ps
        self._marks: dict[str, int] = {}
        self.notes: list[str] = []
        self.inputs = check_inputs(self.neff, self._with_zeros(inputs or {}))
        self.folders = [Path(self.neff.path).parent] if self.neff.path else []
        self._breakpoints = Breakpoints()
        self._listed: tuple[str, int] | None = None
        self._bare: dict[tuple[int, str], int] = {}  # how many words of an engine, from its first on, name no line
        self._examined: Examined | None = None
        self._live: LiveChecks | None = None
        self._start()
        longest = max(self.program.streams(), key=lambda each: len(each[2]))
        self._focus = longest[0], longest[1]

    def _with_zeros(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(inputs)
        for tensor in self.neff.inputs:
            if tensor.name not in given:
                try:
                    given[tensor.name] = np.zeros(tensor.shape, numpy_dtype(Dtype.from_numpy_name(tensor.dtype)))
                except (ValueError, MemoryError) as error:  # a shape that no array can have
                    raise InputError(f"input {tensor.name!r} of shape {list(tensor.shape)}: {error}") from None
                self.notes.append(
                    f"input {tensor.name} {tensor.dtype}{list(tensor.shape)} was not given; it is all zeros"
                )
        return given

    def _loaded(self) -> Device:
        """Return a device at the beginning of the program, with the inputs."""
        device = Device(self.target, cores=len(self.neff.subgraphs), timing=self.timing, seed=self.seed,
                        hang_timeout_ps=self.hang_timeout_ps, act=self.act)
        device.load(self.neff)
        device.set_inputs(self.inputs)
        return device

    def _start(self) -> None:
        self.device = self._loaded()
        self.program, self.tensors = Program(self.device), Tensors(self.device)
        self.events = self.time_ps = 0
        self._reported = -1
        self._waited = -1, 0
        self._journal = Journal(self.device, self._journal_bytes) if self._journal_bytes > 0 else None
        if self._journal is not None:
            self.device.observers.append(self._journal)
        self._debug_stream = DebugStream.of(self.device)
        if self._debug_stream is not None:
            self.device.observers.append(self._debug_stream)

    def restart(self) -> State:
        """Begin again: a fresh device, the same inputs; breakpoints and marks stay."""
        own = (self._journal, self._debug_stream)
        others = [observer for observer in self.device.observers if observer not in own]
        self._start()
        self.device.observers += others
        return self.state()

    # --- checks ------------------------------------------------------------------------------------------------------

    @property
    def checks(self) -> tuple[str, ...]:
        """Return the names of the checks that run along."""
        return () if self._live is None else self._live.tools

    def enable_checks(self, *names: str) -> Checks:
        """Let checks run along, also over what has happened already: names as in `emulator.checks.tools_of`, or "all".

        They run on a device of their own, at the latest when `findings` asks. Raises InputError for unknown names.
        """
        from emulator.checks import tools_of
        from emulator.session.live_checks import LiveChecks

        wanted = tools_of((*self.checks, *(names or ("all",))))
        if wanted != self.checks:
            self._live = LiveChecks(self._loaded(), wanted)
        return Checks(self.checks, len(self.findings()))

    def disable_checks(self, *names: str) -> Checks:
        """Stop checks, all without names."""
        from emulator.checks import tools_of
        from emulator.session.live_checks import LiveChecks

        left = tuple(tool for tool in self.checks if tool not in tools_of(names or ("all",)))
        self._live = LiveChecks(self._loaded(), left) if left else None
        return Checks(left, len(self.findings()))

    def findings(self) -> tuple[Finding, ...]:
        """Return what the checks found up to where the session stands; what came later returns with going forward."""
        if self._live is None:
            return ()
        flag = Flag()
        with interruptible(flag):
            self._live.advance(self.events, lambda: flag.raised)
        return self._live.findings(self.events)

    def state(self) -> State:
        """Return where the session stands."""
        device, ahead = self.device, self.ahead()
        name = device.model.name if device.model is not None else ""
        return State(
            name,
            self.target.name,
            len(device.cores),
            self.outcome,
            self.time_ps,
            self.events,
            self._focus,
            ahead,
            len(self._breakpoints),
            len(device.warnings),
        )

    def focus(self, core: int | str | None = None, engine: str | None = None) -> tuple[int, str]:
        """Choose the core and engine that other commands mean; return (core, engine)."""
        if isinstance(core, str):
            number, rest = parse_core(core)
            core, engine = number, rest or engine
        self._focus = self._engine(engine, core)
        return self._focus

    def warnings(self) -> tuple[Notice, ...]:
        """Return what was odd so far and did not stop the run, such as reads of bytes never written."""
        return tuple(self.device.warnings)

    def prints(self) -> tuple[Printed, ...]:
        """Return what the program has printed up to where the session stands."""
        return () if self._debug_stream is None else self._debug_stream.records(self.events)

    def info_engines(self) -> tuple[EngineRow, ...]:
        """Return every engine: where it stands and what it waits for."""
        return looking.engines(self.device, self.program, self._focus)

    def why(self, engine: str | None = None, core: int | None = None) -> Why:
        """Return what an engine, else the focus engine, waits for, what it is now and who could still signal it."""
        number, name = self._engine(engine, core)
        self.ahead()  # what can issue has issued
        found = self.device.cores[number].engines[name]
        pc = found.next_loaded.pc if found.next_loaded is not None else found.pc
        text = self.program.text(number, name, pc) or None
        if found.state != "waiting" or found.waiting_on is None:
            return Why(number, name, found.state, pc, text, None)
        whole = explain(self.device, f"nc{number} {name} waits")
        own = tuple(wait for wait in whole.waits if (wait.core, wait.engine) == (number, name))
        cycles = tuple(cycle for cycle in whole.cycles if (number, name) in cycle)
        return Why(number, name, found.state, pc, text, Hang(whole.reason, whole.time_ps, own, cycles))

    def info_queues(self) -> tuple[QueueRow, ...]:
        """Return every DMA queue."""
        return looking.queues(self.device)

    def info_semaphores(self, everything: bool = False) -> tuple[SemaphoreRow, ...]:
        """Return semaphores and events that are not zero or are waited for, or all of them."""
        return looking.semaphores(self.device, everything)

    def info_events(self, everything: bool = False) -> tuple[SemaphoreRow, ...]:
        """Return events that are set or are waited for, or all of them."""
        return looking.semaphores(self.device, everything, ("event",))

    def info_registers(
        self, engine: str | None = None, core: int | None = None, everything: bool = False
    ) -> tuple[RegisterRow, ...]:
        """Return the registers of an engine, else of the focus engine, that are not zero, or all of them."""
        number, name = self._engine(engine, core)
        return looking.registers(self.device, number, name, everything)

    def info_dma(self) -> tuple[DmaRow, ...]:
        """Return the transfers that have been triggered and are not complete."""
        return looking.dma(self.device, self.program)

    def info_memory(self) -> tuple[MemoryRow, ...]:
        """Return the memories and the allocations in HBM."""
        return looking.memory(self.device)

    def info_tensors(self) -> tuple[TensorRow, ...]:
        """Return the tensors and tiles that the file names."""
        return tuple(self.tensors.rows())

    # --- looking -----------------------------------------------------------------------------------------------------

    def examine(self, address: int | str | None = None, count: int | None = None, format: str = "x") -> Examined:
        """Return values in memory; without an address those behind the last ones.

        `address` is an engine or device address, "sbuf:PARTITION:BYTE", "psum:…", "hbm:ADDRESS", or a tensor's name,
        with "+BYTES" if wanted; `format` as gdb has it ("8f", "xb", "dh") or an element type ("bfloat16").
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
            text = (
                f"hbm:{last.end:#x}"
                if last.space == "HBM"
                else f"nc{last.core} {last.space}:{last.partition}:{last.end:#x}"
            )
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

    def list_source(self, around: str | int | None = None, count: int = 10, *, remember: bool = True) -> Listing:
        """Return source lines around "FILE:LINE", a line, or the focus engine; then those behind the last ones.

        Where it shall not `remember`, the next call goes on from where the one before this left off.
        """
        self._count(count)
        if around is None and self._listed is not None and remember:
            file, first = self._listed
        else:
            file, line = self._source_place(around)
            first = max(1, line - count // 2)
        lines = listing.read_source(file, self.folders)
        if first > len(lines):
            raise NotFoundError(f"{file} has {len(lines)} lines")
        found = listing.listing(self.device, self.program, self._breakpoints, file, lines, first, count)
        if remember:
            self._listed = file, first + count
        return found

    def save_core(self, path: str | os.PathLike[str], level: str = "full") -> int:
        """Write the device as it is now as a core dump, "light" or "full", and return its size in bytes.

        Raises FormatError where the file cannot be written, UsageError for another level.
        """
        from emulator.dump import LEVELS, write_core

        if level not in LEVELS:
            raise UsageError(f"{level!r} is none of {', '.join(LEVELS)}")
        return write_core(self.device, path, level=level, journal=self._journal, findings=self.findings(),
                          folders=self.folders, reason="save-core")  # fmt: skip

    def forget_listing(self) -> None:
        """Let the next `list_source` begin around the focus engine again."""
        self._listed = None

    def _source_place(self, around: str | int | None) -> tuple[str, int]:
        name = self._focus[1]
        here = self._source_near(*self._focus)
        if around is None or isinstance(around, int) or ":" not in around:
            if here is None or here.file is None:
                raise NotFoundError(f"the file names no source line for {name}")
            return here.file, (here.line or 1) if around is None else parse_number(str(around), "a line or FILE:LINE")
        file, _, line = around.rpartition(":")
        return self.program.find_file(file), parse_number(line, "a line")

    def _source_near(self, core: int, name: str) -> SourceLocation | None:
        """Return the line of the word where an engine stands, else of the last one before it, else of one soon."""
        engine = self.device.cores[core].engines[name]
        place = min(engine.position - len(engine.in_flight), engine.count - 1)
        bare = self._bare.get((core, name), 0)
        for index in (*range(place, bare - 1, -1), *range(place + 1, min(place + 1 + _SOON, engine.count))):
            source = self.program.source(core, name, engine.words[index].pc)
            if source is not None:
                return source
        self._bare[core, name] = max(bare, place + 1)
        return None

    def disassemble(
        self, engine: str | None = None, around: int | None = None, count: int = 10, core: int | None = None
    ) -> Disassembly:
        """Return words around a pc, else around where the engine stands, with what holds of their waits now."""
        self._count(count)
        number, name = self._engine(engine, core)
        sequencer = self.device.cores[number].engines[name]
        if around is None:
            index = min(sequencer.position - len(sequencer.in_flight), max(sequencer.count - 1, 0))
        else:
            index = listing.index_of(sequencer, around)
            if index == sequencer.count or around < 0:
                raise NotFoundError(
                    f"no {name} pc {around}; it has "
                    + (f"0 to {sequencer.words[-1].pc}" if sequencer.words else "no words")
                )
        first = max(0, min(index - count // 2, sequencer.count - count))
        return listing.disassemble(self.device, self.program, self._breakpoints, number, name, first, count)

    def words_from(self, pc: int, count: int, engine: str, core: int) -> tuple[DisassemblyRow, ...]:
        """Return `count` words from a pc on, none behind the last, without source lines: a screen asks often."""
        first = listing.index_of(self.device.cores[core].engines[engine], pc)
        found = listing.disassemble(
            self.device, self.program, self._breakpoints, core, engine, first, count, sources=False
        )
        return found.rows
