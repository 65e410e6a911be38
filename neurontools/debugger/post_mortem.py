"""The debugger on a core dump: a session that stands still and offers every command that looks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from emulator.diagnosis.graph import Hang
from emulator.diagnosis.states import recorded_state
from emulator.dump.reading import DumpedMachine, hang_of
from emulator.journal import Entry
from emulator.placement import DeviceTensor
from formats.core import Core, open_core
from formats.core.records import Range
from formats.errors import NotFoundError
from formats.neff import Neff
from formats.neff.tiles import Tile
from formats.neff.visits import Visits, parse_visits
from formats.regions import Region, shape_of
from neurontools.debugger.breakpoints import Breakpoints
from neurontools.debugger.execution import Execution
from neurontools.debugger.inspector import Inspector
from neurontools.debugger.names import short_engine
from neurontools.debugger.place import faulted_index
from neurontools.debugger.program import Program
from neurontools.debugger.results import (
    Array,
    EngineRow,
    Examined,
    LastWrite,
    Listing,
    SourceRow,
    Why,
)
from neurontools.debugger.scripting import Scripting
from neurontools.debugger.session import Session
from neurontools.debugger.source_view import SourceView
from neurontools.debugger.tensors import Tensors

__all__ = ["PostMortem", "open_core_session"]


def open_core_session(source: Core | str | os.PathLike[str]) -> PostMortem:
    """Return a session on a core dump: it stands where the dump was taken, and does not move.

    Raises FormatError as `formats.core.open_core` does, and where the dump does not say which chip it is from.
    """
    return PostMortem(source if isinstance(source, Core) else open_core(source))


class _DumpedNeff(Neff):
    """The identity of the NEFF that ran; its contents are not in a dump."""

    def __init__(self, core: Core, machine: DumpedMachine) -> None:
        self._core = core
        # In the place of the cached property, which would read the header of a file that is not there.
        self.__dict__["target"] = machine.target

    path = property(lambda self: self._core.neff.path or None)
    inputs = property(lambda self: ())
    outputs = property(lambda self: ())


class JournalTail:
    """The end of a journal as a dump keeps it; `total` counts the events since the beginning."""

    # What `when` asks of a journal: nothing is at hand to go back on.
    records = nbytes = checkpoint_bytes = budget = 0
    checkpoints: tuple[None, ...] = (None,)

    def __init__(self, core: Core, device: DumpedMachine) -> None:
        tail = core.journal_tail
        self.device, self.total = device, tail.total
        known = range(len(device.cores))
        self.log = [
            Entry(each.number, each.time_ps, each.core, each.engine, each.pc, each.kind,
                  (each.core, each.engine, each.pc, each.kind), tuple(map(_region, each.writes)),
                  tuple(map(_region, each.reads)))
            for each in tail.entries
            if each.core in known
        ]  # fmt: skip
        self.texts = {each.number: each.text for each in tail.entries}

    def count_before(self, number: int) -> int:
        """Return how many of the kept events have a lower number."""
        return sum(entry.number < number for entry in self.log)

    def count_until(self, time_ps: int) -> int:
        """Return how many of the kept events happened up to a time."""
        return sum(entry.time_ps <= time_ps for entry in self.log)

    def last_write(self, regions: tuple[Region, ...], before: int | None = None) -> Entry | None:  # fmt: skip
        """Return the last event that wrote into one of some regions, None where none of those kept did."""
        for entry in reversed(self.log[:before]):
            if any(mine.overlaps(other) for mine in entry.regions for other in regions):
                return entry
        return None


def _region(found: Range) -> Region:
    shape = shape_of(found.steps, found.run, unit=1)
    fits = found.run > 0 and (shape.shift, shape.reach) == (0, found.nbytes)  # a damaged dump may say anything
    return Region(
        found.space,
        found.core,
        found.first,
        found.partitions,
        found.byte,
        found.nbytes,
        shape.pattern if fits else None,
    )


class DumpedExecution(Execution):
    """The program of a core dump, where the dump was taken: nothing comes next."""

    def __init__(self, core: Core) -> None:
        device = DumpedMachine(core)
        super().__init__(_DumpedNeff(core, device), device.target)
        self.core, self.device = core, device
        self.program, self.tensors = Program(device, self._visits(), self.source_lines), DumpedTensors(core, device)
        self.tail = JournalTail(core, device)
        self.log = self.tail
        if self.tail.log or not self.tail.total:
            self.program.turns.log = self.tail
        self.events, self.time_ps = self.tail.total, device.now_ps
        if self.tail.log:
            self.events = max(self.events, self.tail.log[-1].number + 1)
        self.focus = self._first_focus()
        self.folders += [Path(core.path).parent] if core.path else []
        self.named_folders += [Path(core.neff.path).parent] if core.neff.path else []

    def _visits(self) -> list[Callable[[], Visits | None]]:
        """Return, per core, what reads the calls and turns that the dump keeps."""
        path = f"{self.core.path}: program"
        return [
            partial(parse_visits, text.encode(), path) if text else lambda: None for text in self.core.program.visits
        ]

    def _first_focus(self) -> tuple[int, str]:
        """Return the engine that faulted, else one that waits, else the one with most words."""
        where = self.core.fault if self.core.fault is not None else next(iter(self.core.waits.waits), None)
        cores = self.device.cores
        # Whoever opens a dump asks what went wrong: where it did is where they want to stand.
        if where is not None and 0 <= where.core < len(cores) and where.engine in cores[0].engines:
            return where.core, where.engine
        longest = max(self.program.streams(), key=lambda each: len(each[2]))
        return longest[0], longest[1]


def _need(core: Core, space: str, number: int, first: int, partitions: int, byte: int, nbytes: int, name: str) -> None:
    """Raise NotFoundError where the dump lacks bytes of a range that it does not know to be unwritten."""
    window = core.window(space, number, address=byte if space == "HBM" else None)
    own = next((each for each in core.allocations if each.address <= byte < each.address + each.nbytes), None)
    if window.sparse or not (window.written if space != "HBM" or own is None else own.written):
        return
    rows = range(first, min(first + partitions, window.rows))
    missing = sum(core.read(space, number, byte, nbytes, row).missing for row in rows)
    if missing:
        raise NotFoundError(
            f"{missing} of {nbytes * len(rows)} bytes of {name} are not in this {core.level} dump; "
            "`core memory` lists what is"
        )


class DumpedTensors(Tensors):
    """Tensors of a core dump; NotFoundError where it does not hold all bytes of one."""

    def __init__(self, core: Core, device: DumpedMachine) -> None:
        super().__init__(device)
        self._core = core

    def _view(self, found: DeviceTensor | Tile, core: int) -> tuple[Array, Array | None, str]:
        if isinstance(found, Tile):
            place = found.partition, found.partitions, found.offset, found.partition_bytes
            _need(self._core, found.space, core, *place, found.name)
        else:
            _need(self._core, "HBM", 0, 0, 1, found.address, found.nbytes, found.name)
        return super()._view(found, core)


class DumpInspector(Inspector):
    """Look at a core dump: NotFoundError for what the dump does not hold."""

    def __init__(self, execution: Execution, breakpoints: Breakpoints, source: SourceView) -> None:
        super().__init__(execution, breakpoints, source)
        assert isinstance(execution, DumpedExecution)
        self._dump, self.core = execution, execution.core

    def info_engines(self) -> tuple[EngineRow, ...]:
        """Return every engine: where it stood and what it waited for."""
        known = {(state.core, state.engine): state for state in self.core.engines}
        rows, machine = [], self._dump.device
        for row in super().info_engines():
            state = known.get((row.core, row.engine))
            if state is not None and faulted_index(machine, machine.cores[row.core].engines[row.engine]) is not None:
                row = row._replace(words=state.words, in_flight=len(state.in_flight))
            elif state is not None:
                source = self._dump.program.source(row.core, row.engine, state.pc)
                row = row._replace(pc=state.pc, words=state.words, text=state.text, source=source or row.source,
                                   in_flight=len(state.in_flight))  # fmt: skip
            rows.append(row)
        return tuple(rows)

    def why(self, engine: str | None = None, core: int | None = None) -> Why:
        """Return what an engine waited for, what that was, and who could still have signalled it."""
        number, name = self._dump.engine(engine, core)
        state = next((each for each in self.core.engines if (each.core, each.engine) == (number, name)), None)
        if state is None:
            raise NotFoundError(f"the dump has nothing about nc{number} {name}")
        whole = hang_of(self.core)
        own = tuple(wait for wait in whole.waits if (wait.core, wait.engine) == (number, name))
        report = None
        if own:
            cycles = tuple(cycle for cycle in whole.cycles if (number, name) in cycle)
            report = Hang(f"nc{number} {name} waits", whole.time_ps, own, cycles)
        shown = recorded_state(self._dump.device, number, name, state.state).value
        return Why(number, name, shown, state.pc, state.text, report)

    def examine(self, address: int | str | None = None, count: int | None = None, format: str = "") -> Examined:
        """Return values in memory, as in a live session; NotFoundError for bytes that the dump does not hold."""
        found = super().examine(address, count, format)
        nbytes = int(found.values.nbytes)
        where = f"{found.space} from {found.address:#x}"
        _need(self.core, found.space, found.core or 0, found.partition or 0, 1, found.address, nbytes, where)
        return found

    def last_write(self, where: str) -> LastWrite:
        """Return what wrote last into a place, as far as the events in the dump tell."""
        found = super().last_write(where)
        if found.number is None:
            tail = self._dump.tail
            if len(tail.log) < tail.total or not tail.log:
                raise NotFoundError(
                    f"none of the last {len(tail.log)} events wrote {found.where}; the dump keeps no more of "
                    f"{tail.total}"
                )
        return found


class DumpSource(SourceView):
    """Lists source lines: from the file where it is here, else those that the dump keeps."""

    def _lines(self, file: str, first: int, count: int) -> Listing:
        try:
            return super()._lines(file, first, count)
        except NotFoundError as error:
            assert isinstance(self._execution, DumpedExecution)
            kept = {each.line: each.text for each in self._execution.core.program.lines if each.file == file}
            rows = tuple(
                SourceRow(number, kept[number], self._standing(file, number), ())
                for number in range(first, first + count)
                if number in kept
            )
            if not rows:
                raise NotFoundError(f"{error}, and the dump keeps none of these lines") from None
            return Listing(file, rows)

    def _standing(self, file: str, line: int) -> tuple[str, ...]:
        assert isinstance(self._execution, DumpedExecution)
        core, program, many = self._execution.core, self._execution.program, len(self._execution.device.cores) > 1
        sources = ((each, program.source(each.core, each.engine, each.pc)) for each in core.engines)
        return tuple(
            (f"nc{each.core}." if many else "") + short_engine(each.engine)
            for each, source in sources
            if source is not None and (source.file, source.line) == (file, line)
        )


class PostMortem(Session):
    """A session on a core dump; `core` is the dump, `notes` are its warnings.

    What would move it raises UsageError, what the dump does not hold NotFoundError.
    """

    post_mortem = True

    def __init__(self, core: Core) -> None:
        self.core, self.inputs, self.notes = core, {}, list(core.warnings)
        self.seed, self.timing, self.act, self.hang_timeout_ps = core.dump.seed, core.dump.timing, "exact", None
        self.execution, self._controls = DumpedExecution(core), None
        self.scripting = Scripting()
        self.breakpoints = Breakpoints(self.execution)
        self.inspector = DumpInspector(self.execution, self.breakpoints, DumpSource(self.execution, self.breakpoints))
