"""Everything that only looks, live and in a core dump alike: engines, queues, memory, tensors, maps, timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.debug_stream import Printed
from emulator.diagnosis.explain import why as wait_graph
from emulator.diagnosis.states import EngineState, state_of
from emulator.events import Notice
from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.debugger import info
from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.breakpoints import Breakpoints
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import Execution
from neurontools.debugger.expressions import Expression, Situation, holds, situation_at
from neurontools.debugger.frames import backtrace, local_rows
from neurontools.debugger.memory import Spot, examine, parse_format, parse_spot, spot_of_tensor
from neurontools.debugger.met import met_waits
from neurontools.debugger.names import parse_number, positive
from neurontools.debugger.regions import regions_of_text
from neurontools.debugger.results import (
    Array,
    Computed,
    DmaRow,
    EngineRow,
    Examined,
    Found,
    FrameRow,
    LastWrite,
    LocalRow,
    MemoryRow,
    OperationRow,
    QueueRow,
    RegisterRow,
    SemaphoreRow,
    State,
    TensorRow,
    TensorValue,
    Why,
)
from neurontools.debugger.source_view import SourceView
from neurontools.debugger.tensors import NAMED

if TYPE_CHECKING:
    from emulator.journal import Entry
    from neurontools.debugger.byte_facts import ByteFacts, Variable
    from neurontools.debugger.maps import Maps
    from neurontools.debugger.readers import Reader, Readers
    from neurontools.debugger.spans import Timeline
    from neurontools.debugger.tile_view import TensorViewer, TileView
    from neurontools.debugger.word_facts import WordFacts

__all__ = ["Inspector"]


class Inspector:
    """Look at an execution without moving anything. `source` lists lines and words."""

    def __init__(self, execution: Execution, breakpoints: Breakpoints, source: SourceView) -> None:
        self._execution, self._breakpoints, self.source = execution, breakpoints, source
        self._examined: Examined | None = None
        self._format = "x"
        self._maps: Maps | None = None
        self._readers: Readers | None = None
        self._timeline: Timeline | None = None
        self._viewer: TensorViewer | None = None

    # --- the program as a whole --------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return where the session stands."""
        here, ahead = self._execution, self._execution.ahead()
        return State(here.name, here.target.name, len(here.device.cores), here.outcome, here.time_ps, here.events,
                     here.focus, ahead, len(self._breakpoints), len(here.device.warnings))  # fmt: skip

    def warnings(self) -> tuple[Notice, ...]:
        """Return what was suspicious so far but did not stop the run, such as reads of bytes never written."""
        return tuple(self._execution.device.warnings)

    def prints(self) -> tuple[Printed, ...]:
        """Return what the program has printed up to where the session stands."""
        return self._execution.prints()

    def info_breakpoints(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints."""
        return self._breakpoints.all

    def info_engines(self) -> tuple[EngineRow, ...]:
        """Return every engine: where it stands and what it waits for."""
        here = self._execution
        now_ps = here.time_ps if here.outcome == "running" else None
        return info.engines(here.device, here.program, here.focus, now_ps)

    def why(self, engine: str | None = None, core: int | None = None) -> Why:
        """Return what an engine, else the focus engine, waits for, what it is now and who could still signal it."""
        here = self._execution
        number, name = here.engine(engine, core)
        here.ahead()  # what can issue has issued
        found = here.device.cores[number].engines[name]
        if here.outcome == "running" and info.begins_later(found, here.time_ps):
            # The word under way is what a reader sees; the device alone knows already what comes behind it.
            pc, report, state = found.in_flight[0].loaded.pc, None, EngineState.RUN
        else:
            pc = found.next_loaded.pc if found.next_loaded is not None else found.pc
            report, state = wait_graph(here.device, number, name), state_of(here.device, found)
        met = met_waits(here, number, name) if report is None else ()
        return Why(number, name, state.value, pc, here.program.text(number, name, pc) or None, report, met)

    def word_facts(self, core: int, engine: str, pc: int) -> WordFacts:
        """Return all that is known of one word; NotFoundError where there is none."""
        from neurontools.debugger.word_facts import word_facts  # deferred: start-up

        return word_facts(self._execution, core, engine, pc)

    def backtrace(self) -> tuple[FrameRow, ...]:
        """Return the calls of the kernel's functions that led to where the focus engine stands, the innermost first."""
        return backtrace(self._execution.program, self._execution.standing())

    def info_locals(self) -> tuple[LocalRow, ...]:
        """Return the kernel's variables as they were when it called for the word where the focus engine stands."""
        return local_rows(self._execution, self._execution.standing())

    def info_scope(self, where: str = "") -> tuple[LocalRow, ...]:
        """Return the kernel's variables at the first word of a place (see `Breakpoints.break_at`), else here."""
        if not where.strip():
            return self.info_locals()
        goal = self._execution.program.resolve(where.strip(), self._execution.focus[1])
        if not goal.places:
            raise UsageError(f"{where!r} is no line or pc")
        return local_rows(self._execution, min(goal.places, key=lambda place: (place[0], place[2], place[1])))

    def info_ops(self, wanted: str = "") -> tuple[OperationRow, ...]:
        """Return the operations of the graph of the focus core, those of a name (as %NAME) or source line if given."""
        from neurontools.debugger.operation_rows import operation_rows  # deferred: start-up

        return operation_rows(self._execution, wanted)

    def info_queues(self) -> tuple[QueueRow, ...]:
        """Return every DMA queue."""
        return info.queues(self._execution.device)

    def info_dma(self) -> tuple[DmaRow, ...]:
        """Return the transfers that have been triggered and are not complete."""
        return info.dma(self._execution.device, self._execution.program)

    def info_semaphores(self, everything: bool = False) -> tuple[SemaphoreRow, ...]:
        """Return semaphores and events that are not zero or are waited for, or all of them."""
        return info.semaphores(self._execution.device, everything)

    def info_events(self, everything: bool = False) -> tuple[SemaphoreRow, ...]:
        """Return events that are set or are waited for, or all of them."""
        return info.semaphores(self._execution.device, everything, ("event",))

    def info_registers(
        self, engine: str | None = None, core: int | None = None, everything: bool = False
    ) -> tuple[RegisterRow, ...]:
        """Return the registers of an engine, else of the focus engine, that are not zero, or all of them."""
        number, name = self._execution.engine(engine, core)
        return info.registers(self._execution.device, number, name, everything)

    # --- memory ------------------------------------------------------------------------------------------------------

    def info_memory(self) -> tuple[MemoryRow, ...]:
        """Return the memories and the allocations in HBM."""
        return info.memory(self._execution.device)

    def info_tensors(self) -> tuple[TensorRow, ...]:
        """Return the tensors and tiles that the file names."""
        return tuple(self._execution.tensors.rows())

    def examine(self, address: int | str | None = None, count: int | None = None, format: str = "") -> Examined:
        """Return values in memory; without an address, those after the last ones.

        `address` is an engine or device address, "sbuf:PARTITION:BYTE", "psum:…", "hbm:ADDRESS", or a tensor's name,
        with "+BYTES" if wanted; `format` as gdb has it ("8f", "xb", "dh") or an element type ("bfloat16"), the last one
        again without any.
        """
        given, base, dtype = parse_format(format or self._format)
        self._format = format.lstrip("/0123456789:") or self._format  # one value, as in gdb, of the same kind
        number = positive(count if count is not None else given or 1)
        self._examined = examine(self._execution.device, self._spot(address), number, base, dtype)
        return self._examined

    def _spot(self, address: int | str | None) -> Spot:
        device, tensors, core = self._execution.device, self._execution.tensors, self._execution.focus[0]
        last, text = self._examined, str(address).strip()
        if address is None:
            if last is None:
                raise UsageError("examine what? an address or a tensor")
            chip = f"nc{last.core} {last.space}:{last.partition}"
            text = f"{'hbm' if last.space == 'HBM' else chip}:{last.end:#x}"
        spot = parse_spot(device, text, core)
        if spot is None:
            name, plus, tail = text.rpartition("+")
            offset = parse_number(tail.strip(), "an offset") if plus else 0
            spot = spot_of_tensor(device, tensors.find(name.strip() if plus else text, core), core, offset)
        return spot

    def print_tensor(self, text: str) -> Array:
        """Return the elements that "name" or "name[slice]" selects, as they are now."""
        return self.tensor(text).array

    def tensor(self, text: str) -> TensorValue:
        """Return the same with where it lies and how many elements were never written."""
        return self._execution.tensors.value(text, self._execution.focus[0])

    def situation(self) -> Situation:
        """Return where expressions are computed: the focus engine, and the kernel's variables where that stands."""
        here = self._execution
        return situation_at(here, (*here.standing(), "instruction"), here.time_ps, here.events)

    def evaluate(self, text: str, base: str = "") -> TensorValue | Computed:
        """Return what an expression is now: a tensor or slice where it names one, else what is computed.

        `base` is how to write it, "" or one of x d u o t f. Raises UsageError, NotFoundError.
        """
        at, named = self.situation(), NAMED.fullmatch(text)
        if text.lstrip().startswith("%"):  # an operation of the graph; no expression begins so
            found_there = self.tensor(text.strip())
            return Computed(text, found_there.array, base) if base else found_there
        # One pair of brackets alone: `x[0] - x[1]` begins and ends like a slice.
        plain = named is not None and "]" not in (named[2] or "") and not base and not holds(named[1], at.variables)
        if plain and named is not None and named[1] not in at.variables and named[1] in at.tensors.names(at.core):
            return self.tensor(text)  # also names that are none in Python
        expression = Expression(text)
        try:
            found = expression.tensor(at)
            if found is not None:
                return Computed(text, found.array, base) if base else found
            return Computed(text, expression.value(at), base)
        except ArithmeticError as error:
            raise UsageError(f"{text}: {error}") from None

    def find(self, text: str, format: str = "") -> Found:
        """Return where values stand in memory; see `neurontools.debugger.finding`."""
        from neurontools.debugger.finding import find_values  # deferred: start-up

        return find_values(self._execution, text, self.situation(), format)

    def last_write(self, where: str) -> LastWrite:
        """Return what wrote last into an address (with ", BYTES" a range), a tensor or a slice of it; see `examine`."""
        here = self._execution
        regions, text = regions_of_text(here, where.strip(), here.focus[0])
        found = self._last_entry(regions)
        if found is None:
            return LastWrite(text, None, None, 0, "", None, (), "")
        core, engine, pc, kind = found.owner
        hits = (mine for mine in found.regions if any(mine.overlaps(other) for other in regions))
        word = here.word_of(found.owner)
        return LastWrite(text, found.number, found.time_ps, core, engine, pc, tuple(map(here.write_of, hits)),
                         here.program.text(*word), here.program.source(*word), kind)  # fmt: skip

    def _last_entry(self, regions: tuple[Region, ...]) -> Entry | None:
        log = self._execution.journal
        return log.last_write(regions, log.count_before(self._execution.events))

    def facts(self, region: Region) -> ByteFacts:
        """Return what is known of a range of bytes in SBUF or PSUM; NotFoundError for one outside its memory."""
        from neurontools.debugger.byte_facts import facts_of  # deferred: start-up

        return facts_of(self._execution, self.maps, region)

    def reader(self, region: Region) -> Reader | None:
        """Return the word that reads some bytes of SBUF or PSUM next, else the one that read them last."""
        # Another device is there after going back past what the journal keeps: what was made of the old one is thrown
        # away, here and below.
        if self._readers is None or self._readers.device is not self._execution.device:
            from neurontools.debugger.readers import Readers  # deferred: start-up

            self._readers = Readers(self._execution)
        return self._readers.of(region)

    def not_numbers(self, space: str, core: int) -> frozenset[str]:
        """Return the tiles of a memory of a core, or the variables in "HBM", that hold a NaN."""
        from neurontools.debugger.not_numbers import not_numbers  # deferred: start-up

        return not_numbers(self._execution, self.maps, space, core)

    def variables(self, parts: int = 0) -> tuple[Variable, ...]:
        """Return what HBM holds by address, each with the written-ness of `parts` parts of it."""
        from neurontools.debugger.byte_facts import variables_of  # deferred: start-up

        return variables_of(self._execution, parts)

    # --- pictures ----------------------------------------------------------------------------------------------------

    @property
    def maps(self) -> Maps:
        """Return the maps of SBUF and PSUM."""
        if self._maps is None or self._maps.device is not self._execution.device:
            from neurontools.debugger.maps import Maps  # deferred: start-up

            self._maps = Maps(self._execution)
        return self._maps

    @property
    def recorded(self) -> bool:
        """Return whether the timeline of the device is recorded."""
        return self._timeline is not None and self._timeline.device is self._execution.device

    @property
    def timeline(self) -> Timeline:
        """Return what engines and queues did when; it is recorded from the first call on."""
        if self._timeline is None or not self.recorded:
            from neurontools.debugger.spans import Timeline  # deferred: start-up

            self._timeline = Timeline(self._execution)
        return self._timeline

    def view_tensor(self, text: str, dtype: Dtype | None = None, window: tuple[int, int, int, int] = (0, 0, 8, 8),
                    heat: tuple[int, int] = (0, 0)) -> TileView:  # fmt: skip
        """Return a tensor in figures and as a table; see `TensorViewer.view`."""
        if self._viewer is None:
            from neurontools.debugger.tile_view import TensorViewer  # deferred: start-up

            self._viewer = TensorViewer(self._execution)
        return self._viewer.view(self.maps, text, dtype, window, heat)
