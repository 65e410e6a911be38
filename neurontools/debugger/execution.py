"""A program on a machine, and where the debugger stands in it: what all parts of a session share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from emulator.debug_stream import DebugStream, Printed
from emulator.device import Device
from emulator.dma.queues import DmaQueue
from emulator.journal import BUDGET, Journal
from emulator.sequencer import Sequencer
from emulator.timeline import Recorder
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff import Neff
from formats.neff.visits import read_visits
from formats.regions import Region
from formats.source_files import read_source
from formats.targets import Target
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import engine_name
from neurontools.debugger.place import word_at
from neurontools.debugger.program import Location, Program
from neurontools.debugger.results import Ahead, Write
from neurontools.debugger.tensors import Tensors

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from neurontools.debugger.event_log import EventLog

__all__ = ["Execution", "LiveExecution", "Options", "Owner", "key_of"]

Owner = tuple[int, str, int, str]  # core, engine or queue, pc, "instruction" or "dma"


class Execution:
    """A program on a device, the names in it, and where the debugger stands: all that looking needs.

    `time_ps` and `events` count what has been reported; `focus` is the (core, engine) that commands mean; `log` holds
    the events that are remembered, None where none are. `folders` is where source files are looked for;
    files below `named_folders`, which a file names, are read only where they are below one of those too.
    """

    device: MachineView
    program: Program
    tensors: Tensors
    log: EventLog | None = None
    events = time_ps = 0
    focus = 0, ""

    def __init__(self, neff: Neff, target: Target) -> None:
        self.neff, self.target = neff, target
        self.folders: list[Path] = []
        self.named_folders: list[Path] = []

    @property
    def name(self) -> str:
        """Return the name of the program."""
        return self.device.program_name

    @property
    def journal(self) -> EventLog:
        """Return the events that are remembered; UsageError where none are."""
        if self.log is None:
            raise UsageError("this session keeps no journal: it was opened with a budget of 0 bytes")
        return self.log

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"."""
        return self.device.outcome

    def ahead(self) -> Ahead | None:
        """Return what completes next, None where nothing does."""
        return None

    def prints(self) -> tuple[Printed, ...]:
        """Return what the program has printed up to where the debugger stands."""
        return ()

    def source_lines(self, file: str) -> list[str]:
        """Return the lines of a source file; NotFoundError where it may not or cannot be read."""
        return read_source(file, self.folders, (*self.folders, *self.named_folders))

    def standing(self, core: int | None = None, engine: str | None = None) -> Location:
        """Return where an engine stands, the focus engine if not given: as `place_of` says."""
        number, name = self.engine(engine, core)
        found = self.device.cores[number].engines[name]
        loaded = word_at(self.device, found)
        return number, name, found.pc if loaded is None else loaded.pc

    def engine(self, engine: str | None, core: int | None = None) -> tuple[int, str]:
        """Return (core, engine), those of the focus where not given; NotFoundError where there is no such one."""
        number = self.focus[0] if core is None else core
        if not 0 <= number < len(self.device.cores):
            raise NotFoundError(f"no core {number}; there are {len(self.device.cores)}")
        return number, self.focus[1] if engine is None else engine_name(engine)

    def word_of(self, owner: Owner) -> Location:
        """Return the location of the word that completed, or that started the transfer that did."""
        core, name, pc, kind = owner
        if kind == "dma":
            queues = self.device.queues
            name = next((queue.engine for queue in queues if (queue.core, queue.name) == (core, name)), name)
        return core, name, pc

    def write_of(self, region: Region) -> Write:
        """Return a region that was written, by partitions and bytes or by the name of its allocation."""
        strided = region.pattern is not None
        if region.space != "HBM":
            return Write(
                region.space, region.core, region.first, region.partitions, region.byte, region.nbytes, strided
            )
        found = self.device.hbm.find(region.byte)
        name, start = ("", 0) if found is None else (found.name, found.address)
        return Write("HBM", None, None, 1, region.byte, region.nbytes, strided, name, region.byte - start)


class Options(NamedTuple):
    """How a device is made for every start: schedule, timing, limits."""

    seed: int | None = None
    timing: bool = True
    journal_bytes: int = BUDGET
    hang_timeout_ps: int | None = None
    act: str = "exact"
    max_steps: int | None = None
    limit_ps: int | None = None
    max_seconds: float | None = None


class LiveExecution(Execution):
    """A program that runs: it can begin again, and `log` is the journal that takes it back."""

    device: Device
    log: Journal | None

    def __init__(self, neff: Neff, target: Target, inputs: Mapping[str, npt.NDArray[np.generic]],
                 options: Options, make: Callable[[], Device] | None = None) -> None:  # fmt: skip
        super().__init__(neff, target)
        self.inputs, self.options, self._make = inputs, options, make
        self._debug_stream: DebugStream | None = None
        self._start()
        # Most of a kernel is on one engine, and that is what a person who names none means.
        longest = max(self.program.streams(), key=lambda each: len(each[2]))
        self.focus = longest[0], longest[1]

    def loaded(self) -> Device:
        """Return a device at the beginning of the program, with the inputs."""
        if self._make is not None:
            return self._make()
        options = self.options
        device = Device(self.target, cores=len(self.neff.subgraphs), timing=options.timing, seed=options.seed,
                        hang_timeout_ps=options.hang_timeout_ps, act=options.act, max_steps=options.max_steps,
                        limit_ps=options.limit_ps, max_seconds=options.max_seconds)  # fmt: skip
        device.load(self.neff)
        device.set_inputs(self.inputs)
        return device

    def _start(self) -> None:
        self.device = self.loaded()
        visits = [partial(read_visits, subgraph) for subgraph in self.neff.subgraphs]
        graphs = [partial(getattr, subgraph, "operations") for subgraph in self.neff.subgraphs]
        self.program = Program(self.device, visits, self.source_lines, graphs)
        self.tensors = Tensors(self.device, self.program.graphs)
        self.events = self.time_ps = 0
        self.log = Journal(self.device, self.options.journal_bytes) if self.options.journal_bytes > 0 else None
        self.program.turns.log = self.log
        if self.log is not None:
            self.device.observers.append(self.log)
        self._debug_stream = DebugStream.of(self.device)
        if self._debug_stream is not None:
            self.device.observers.append(self._debug_stream)

    def restart(self) -> None:
        """Begin again on a fresh device with the same inputs, and with the observers that others have added.

        Recorders of the timeline stay behind: their rows are of the old device.
        """
        own = (self.log, self._debug_stream)
        others = [each for each in self.device.observers if each not in own and not isinstance(each, Recorder)]
        self._start()
        self.device.observers += others

    @property
    def journal(self) -> Journal:
        """Return the journal; UsageError where none is kept."""
        found = super().journal
        assert isinstance(found, Journal)
        return found

    @property
    def outcome(self) -> str:
        """Return how the run stands; what no command has reported yet is still to come."""
        return "running" if self.device.unreported else self.device.outcome

    def prints(self) -> tuple[Printed, ...]:
        """Return what the program has printed up to where the debugger stands."""
        return () if self._debug_stream is None else self._debug_stream.records(self.events)

    def ahead(self) -> Ahead | None:
        """Return what completes next, None at the end; words may issue, nothing completes."""
        due = None if self.device.finished else self.device.ahead()
        # A fault at issue has happened and was not told yet: to who looks, its word still comes.
        refused = self.refused()
        if refused is not None:
            return self._word_ahead(*refused, self.device.now_ps)
        if due is None:
            return None
        time_ps, owner = due
        core, name, pc, kind = key_of(owner)
        if not isinstance(owner, DmaQueue):
            return self._word_ahead(core, name, pc, time_ps)
        transfer = owner.pending[0]
        place = core, transfer.engine, pc
        return Ahead(core, name, pc, kind, transfer.text, self.program.source(*place), time_ps,
                     self.program.iteration(*place, before=-1))  # fmt: skip

    def _word_ahead(self, core: int, engine: str, pc: int, time_ps: int) -> Ahead:
        text, source = self.program.text(core, engine, pc), self.program.source(core, engine, pc)
        iteration = self.program.iteration(core, engine, pc)
        return Ahead(core, engine, pc, "instruction", text, source, time_ps, iteration)

    def refused(self) -> Location | None:
        """Return the word whose fault at issue has not been reported yet: a breakpoint on it still comes first."""
        fault = self.device.fault
        if fault is None or not self.device.unreported or not 0 <= fault.core < len(self.device.cores):
            return None
        engine = self.device.cores[fault.core].engines.get(fault.engine)
        if engine is None or engine.position >= engine.count or engine.words[engine.position].pc != fault.pc:
            return None
        return fault.core, fault.engine, fault.pc


def key_of(owner: Sequencer | DmaQueue) -> Owner:
    """Return core, engine or queue, pc and kind of what an engine or queue completes next."""
    if isinstance(owner, DmaQueue):
        return owner.core, owner.name, owner.pending[0].pc, "dma"
    return owner.core.index, owner.name, owner.in_flight[0].loaded.pc, "instruction"
