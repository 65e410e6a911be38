"""A core dump as a machine that stands still: what views ask of a device, a dump answers as well."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from emulator.access import Resolver
from emulator.addresses import address_map
from emulator.arch import arch_of
from emulator.diagnosis.graph import Hang
from emulator.diagnosis.index import ProgramIndex
from emulator.diagnosis.notes import graph_of
from emulator.dma.transfer import DmaDescriptor, Shares, Side
from emulator.dump.stored_memory import PLACES, StoredChip, StoredHbm
from emulator.dump.stored_words import StoredProgram, StoredWords, location_of
from emulator.events import Notice
from emulator.faults import Fault
from emulator.loaded import LoadedWord
from emulator.machine_view import WaitingView
from emulator.placement import DeviceTensor
from emulator.sequencer import KEPT
from emulator.standing import WaitingOn
from formats.core import Core
from formats.core.records import EngineState, QueueState, Source, TensorState, TransferState
from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa import Instruction
from formats.neff import SourceLocation
from formats.neff.tiles import Tile
from formats.neuron_core import DMA_ENGINES, PARTITIONS, SYNC_COUNT
from formats.targets import resolve_target

__all__ = ["DumpedCore", "DumpedEngine", "DumpedMachine", "DumpedQueue", "DumpedTransfer", "hang_of"]


class DumpedFlight:
    """A word that had issued and not completed."""

    def __init__(self, loaded: LoadedWord, issued_ps: int) -> None:
        self.loaded, self.issued_ps = loaded, issued_ps


class DumpedEngine:
    """One engine: where it stood, with the words around that the dump holds."""

    def __init__(self, core: DumpedCore, state: EngineState, words: StoredWords, registers: int) -> None:
        self.core, self.name, self.words = core, state.engine, words
        self.count, self.stream_length = len(words), state.words
        # A light dump holds some words only: places count among those, as `words` does.
        self.position = sum(index < state.position for index in words.indices)
        self.completed, self.busy_ps, self.state = state.completed, state.busy_ps, KEPT.get(state.state, state.state)
        flights = {flight.word: flight for flight in state.in_flight}
        self.in_flight = deque(
            DumpedFlight(words[number], flights[index].issued_ps)
            for number, index in enumerate(words.indices)
            if index in flights and index < state.position
        )
        kept = [value & 0xFFFFFFFF for value in state.registers[:registers]]
        self.registers = kept + [0] * (registers - len(kept))
        self.accumulators = np.zeros(PARTITIONS, np.float32)
        bits = [value & 0xFFFFFFFF for value in state.accumulators[:PARTITIONS]]
        self.accumulators.view(np.uint32)[: len(bits)] = bits
        self.waiting_on: WaitingView | None = None
        waiting = state.waiting
        if waiting is not None and 0 <= waiting.number < SYNC_COUNT and 0 <= waiting.core < core.siblings:
            self.waiting_on = WaitingOn(*waiting[:6])

    @property
    def next_loaded(self) -> LoadedWord | None:
        """Return the oldest word that had not completed, None at the end or where the dump does not hold it."""
        if self.in_flight:
            return self.in_flight[0].loaded
        return self.words[self.position] if self.position < self.count else None

    @property
    def pc(self) -> int:
        """Return the compiler pc of that word; one past the last of those that are here at the end."""
        loaded = self.next_loaded
        if loaded is not None:
            return loaded.pc
        return self.words.pcs[-1] + 1 if self.words else 0

    @property
    def done(self) -> bool:
        """Return whether every word had completed."""
        return self.state == "done"


class DumpedCounters(tuple[int, ...]):
    """The semaphores or the events of a core."""

    __slots__ = ()

    @property
    def values(self) -> Sequence[int]:
        """Return the values by number."""
        return self


def _counters(values: Sequence[int]) -> DumpedCounters:
    return DumpedCounters((*values[:SYNC_COUNT], *(0,) * (SYNC_COUNT - len(values))))


class DumpedCore:
    """One physical core."""

    def __init__(self, machine: DumpedMachine, index: int, siblings: int) -> None:
        core, generation = machine.dump, machine.target.generation
        self.index, self.siblings = index, siblings
        self.semaphores, self.events = _counters(core.semaphores(index)), _counters(core.events(index))
        self.memory = StoredChip(core, index, machine.arch)
        self.resolver = Resolver(self.memory, machine.arch)
        streams = {each.engine: each for each in core.program.streams if each.core == index and each.engine in ENGINES}
        # all streams of a core say the same; without one there is no word to be read in either dialect
        self.extended = streams[list(streams)[-1]].extended if streams else True
        words = {name: StoredWords(core, stream, generation) for name, stream in streams.items()}
        self._programs = {name: StoredProgram(words[name], streams[name], generation) for name in streams}
        states = {state.engine: state for state in core.engines if state.core == index}
        registers, none = machine.arch.registers.whole, StoredWords()
        self.engines = {
            name: DumpedEngine(self, states.get(name, EngineState(index, name)), words.get(name, none), registers)
            for name in ENGINES
        }
        own = {item.name: _tensor(item) for item in core.tensors if item.kind != "tile" and item.core == index}
        self.variables: Mapping[str, DeviceTensor] = {**machine.tensors, **own}
        self.tiles = tuple(_tiles(core, index))

    def file_word(self, engine: str, pc: int) -> Instruction | None:
        """Return a word as the file has it, None where the dump does not hold it."""
        program = self._programs.get(engine)
        return None if program is None else program.word(pc)

    def text_of(self, engine: str, pc: int) -> str:
        """Return the text of a word as the file has it, "" where the dump has no such pc."""
        program = self._programs.get(engine)
        return "" if program is None else program.text(pc)

    def source_of(self, engine: str, pc: int) -> SourceLocation | None:
        """Return the source location of a word, None where the dump names none."""
        program = self._programs.get(engine)
        return None if program is None else program.source(pc)


class DumpedTransfer:
    """A DMA transfer that was not complete; what it moves is known as text only."""

    state = "queued"
    reads: tuple[Side, ...] = ()
    writes: tuple[Side, ...] = ()

    def __init__(self, queue: str, core: int, state: TransferState) -> None:
        self.queue, self.core, self.engine, self.pc = queue, core, state.engine, state.pc
        self.number, self.text, self.nbytes = state.number, state.text, state.nbytes
        self.semaphore, self.increment, self.remote = state.semaphore, state.increment, state.remote
        self.triggered_ps, self.started_ps, self.planned_ps = state.triggered_ps, state.started_ps, state.planned_ps
        self.shares: Shares = state.shares
        self._moving = state.moving

    def running(self, now_ps: int) -> bool:
        """Return whether its data was moving."""
        return self._moving

    def descriptors(self, first: int, last: int) -> Iterator[DmaDescriptor]:
        """Yield nothing: rings have their own note."""
        return iter(())


class DumpedQueue:
    """A DMA queue with the transfers that the dump keeps; `outstanding` counts all of them."""

    def __init__(self, state: QueueState) -> None:
        self.core, self.name, self.engine, self.kind = state.core, state.name, state.engine, state.kind
        self.ring, self.num_queues, self.semaphores = state.ring, state.rings, state.semaphores
        self.completed, self.nbytes, self.outstanding = state.completed, state.nbytes, state.pending
        self.pending = tuple(DumpedTransfer(state.name, state.core, each) for each in state.transfers)

    def in_flight(self, now_ps: int) -> Sequence[DumpedTransfer]:
        """Return the transfers whose data was moving."""
        return tuple(transfer for transfer in self.pending if transfer.running(now_ps))

    def signals(self, semaphore: int, core: int) -> Sequence[DumpedTransfer]:
        """Return the pending transfers that raise a semaphore of a core."""
        return tuple(
            transfer
            for transfer in self.pending
            if (transfer.core == core and transfer.semaphore == semaphore)
            or (transfer.remote is not None and transfer.remote[:2] == (core, semaphore))
        )


class DumpedMachine:
    """The machine of a core dump (see `emulator.machine_view.MachineView`); `dump` is the dump.

    Raises FormatError where the dump does not say which chip it is of.
    """

    def __init__(self, core: Core) -> None:
        dump, where = core.dump, core.path or None
        try:
            self.target = resolve_target(dump.target)
        except (ValueError, LookupError) as error:
            raise FormatError(f"the dump names no known chip: {error}", path=where, field="dump.target") from None
        self.arch = arch_of(self.target)
        if not 1 <= dump.cores <= self.arch.lnc.whole:
            raise FormatError("number of cores makes no sense", path=where, field="dump.cores", got=dump.cores)
        self.dump = core
        self.addresses = address_map(self.target.generation)
        self.now_ps, self.steps, self.outcome = dump.time_ps, dump.completions, dump.outcome or "running"
        self.program_name = core.neff.name
        self.tensors = {item.name: _tensor(item) for item in core.tensors if item.core is None and item.kind != "tile"}
        self.hbm = StoredHbm(core, core.allocations)
        self.program_index = ProgramIndex()
        self.cores = [DumpedCore(self, index, dump.cores) for index in range(dump.cores)]
        # damaged notes are left out rather than refused: what else the dump holds is still worth seeing
        known = [each for each in core.queues if 0 <= each.core < dump.cores and 1 <= each.rings <= DMA_ENGINES]
        self.queues = [DumpedQueue(each) for each in known]
        self.fault = _fault(core)
        self.hang = hang_of(core) if core.outcome == "hang" else None
        self.warnings = tuple(
            Notice(f.kind, f.message, f.core, f.engine, f.pc, f.text, f.operand, f.time_ps)
            for f in core.findings
            if f.tool == "device"
        )

    def release(self) -> None:
        """Give the memories back; the machine is of no use after that."""
        for core in self.cores:
            core.memory.release()
        self.hbm.allocations.clear()


def _tensor(item: TensorState) -> DeviceTensor:
    dtype = item.dtype
    try:
        total = Dtype.from_numpy_name(dtype).size if dtype else 1
    except FormatError:
        dtype, total = "", 1
    for length in item.shape:
        total *= max(length, 0)
    # a shape that does not fit the bytes is not believed; the bytes are shown without one
    if total != item.nbytes:
        dtype = ""
    return DeviceTensor(item.name, item.address, item.nbytes, dtype, item.shape if dtype else (), item.kind)


def _tiles(core: Core, index: int) -> Iterator[Tile]:
    """Yield the tiles of a core that make sense."""
    for item in core.tensors:
        if item.kind != "tile" or item.core != index or item.space not in PLACES or not item.shape:
            continue
        try:
            dtype = Dtype.from_numpy_name(item.dtype).numpy_name
        except FormatError:
            continue
        where = item.partition, item.shape[0], item.address
        if min(where) >= 0 and min(item.shape) > 0 and item.shape[0] <= PARTITIONS:
            yield Tile(item.name, item.space, *where, item.shape, dtype, item.pcs)


def _fault(core: Core) -> Fault | None:
    found = core.fault
    if found is None:
        return None
    return Fault(
        found.kind, found.message, found.core, found.engine, found.pc, found.text, location_of(found.source),
        found.operand, found.space, found.address, found.expected, found.got, found.time_ps, found.tensor,
    )  # fmt: skip


def hang_of(core: Core) -> Hang:
    """Return the wait graph of a dump with source locations as programs have them."""
    found = graph_of(core)
    sources = [wait.source if isinstance(wait.source, Source) else None for wait in found.waits]
    waits = (wait._replace(source=location_of(known)) for wait, known in zip(found.waits, sources, strict=True))
    return replace(found, waits=tuple(waits))
