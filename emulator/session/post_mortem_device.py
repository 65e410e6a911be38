"""A device as a core dump shows it: everything can be looked at, nothing moves."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast, overload

import numpy as np
import numpy.typing as npt

from emulator.core import Core as EmulatedCore
from emulator.device import Device
from emulator.dma.transfer import DmaDescriptor, Transfer
from emulator.events import Event, Notice
from emulator.faults import Fault
from emulator.hang import Hang, Signal, Wait
from emulator.loader import LoadedCore, LoadedModel, LoadedWord
from emulator.memory import FRESH, Allocation
from emulator.placement import DeviceTensor, Placement
from emulator.semaphores import COUNT
from emulator.sequencer import Flight, Sequencer, WaitingOn
from emulator.session.errors import UsageError
from emulator.session.tiles import Tile
from formats.core import Core, Segment
from formats.core.records import EngineState, Source, Stream, TensorState, TransferState
from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa import ENGINES, decode
from formats.neff import SourceLocation
from formats.targets import resolve_target

__all__ = ["DumpedDevice", "hang_of", "still", "tiles_of"]

_WORD = 64
_PLACES = ("SBUF", "PSUM")


def still() -> NoReturn:
    """Raise the error of everything that would move the device."""
    raise UsageError("a core dump does not move: it is one moment of a run; look at it, or run the program again")


def location_of(source: Source | None) -> SourceLocation | None:
    """Return a source location as programs have it."""
    if source is None or (source.file is None and not source.name):
        return None
    return SourceLocation(source.file, source.line, source.name, source.tensor, source.kernel)


class DumpedWords(Sequence[LoadedWord]):
    """The stored words of one engine, decoded when they are asked for; `indices` are their places among all words."""

    def __init__(self, core: Core, stream: Stream, target: str) -> None:
        self._raw: list[bytes] = []
        self._pcs: list[tuple[int, int]] = []
        self.indices: list[int] = []
        self._made: dict[int, LoadedWord] = {}
        self._target, self._dialect = target, "extended" if stream.extended else "neuron"
        for first, pc, slot, size, count in stream.runs:
            if size <= 0 or size % _WORD or count < 0 or slot < 0 or size * count > core.size:
                raise FormatError("run of words makes no sense", path=core.path or None, field="program.streams.runs",
                                  got=f"{count} words of {size} bytes")  # fmt: skip
            found = core.read("instructions", stream.core, slot * _WORD, size * count, engine=stream.engine)
            whole = found.present.find(0)
            count = count if whole < 0 else whole // size
            for number in range(count):
                self._raw.append(found.data[number * size : (number + 1) * size])
                self._pcs.append((pc + number, slot + number * (size // _WORD)))
                self.indices.append(first + number)

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> LoadedWord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LoadedWord]: ...
    def __getitem__(self, index: int | slice) -> LoadedWord | Sequence[LoadedWord]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        made = self._made.get(number)
        if made is None:
            pc, slot = self._pcs[number]
            made = self._made[number] = LoadedWord(decode(self._raw[number], self._target, self._dialect), pc, slot)
        return made

    def at_pc(self, pc: int) -> int | None:
        """Return the index of the stored word with a pc, None where it is not stored."""
        return next((number for number, (own, _) in enumerate(self._pcs) if own == pc), None)


class _FileWords:
    """The words as the NEFF has them, by pc; what the dump does not hold says so."""

    def __init__(self, words: DumpedWords, stream: Stream, target: str, dialect: str) -> None:
        self._words, self._target, self._dialect = words, target, dialect
        self._by_pc = {pc: number for number, (pc, _) in enumerate(words._pcs)}
        self._replaced = dict(stream.replaced)
        self._count = 1 + max(self._by_pc, default=-1)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, pc: int) -> Any:
        raw = self._replaced.get(pc)
        if raw is not None:
            try:
                return decode(bytes.fromhex(raw), self._target, self._dialect)
            except (ValueError, FormatError):
                return _Absent()
        number = self._by_pc.get(pc)
        return _Absent() if number is None else self._words[number].word


class _Absent:
    """Stands for a word that the dump does not hold."""

    raw = b""
    name = NAME = text = "(not in this dump)"


class _Streams(dict[str, Any]):
    def __missing__(self, engine: str) -> tuple[()]:
        return ()


class _Subgraph:
    """What views ask of a subgraph, from the notes of a dump."""

    def __init__(self, name: str, index: int, streams: _Streams) -> None:
        self.name, self.index, self.streams = name, index, streams

    @staticmethod
    def has(member: str) -> bool:
        """Tell whether the file has a member: a dump holds none of them."""
        return False


class DumpedProgram(LoadedCore):
    """The program of one core, from the notes of a dump."""

    def source_of(self, engine: str, pc: int) -> SourceLocation | None:
        """Return the source line of the word at a pc, None where the dump names none."""
        sources: dict[str, list[tuple[int, int, SourceLocation | None]]] = cast("Any", self.subgraph).sources
        return next((where for first, count, where in sources.get(engine, ()) if first <= pc < first + count), None)


class DumpedAllocation(Allocation):
    """A range of HBM; its bytes are taken from the dump when somebody looks."""

    __slots__ = ("_core", "_stored_written")

    def __init__(self, core: Core, address: int, nbytes: int, name: str, written: int) -> None:
        super().__init__(address, nbytes, name)
        self._core, self._stored_written = core, written
        self.whole = False

    @property
    def touched(self) -> bool:
        return self._stored_written > 0

    def _segments(self) -> list[Segment]:
        return list(self._core.segments.within(self.address, self.address + self.nbytes))

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        if self._data is None:
            found = self._segments()
            if len(found) == 1 and found[0].address <= self.address and _end(found[0]) >= self.address + self.nbytes:
                start = self.address - found[0].address
                whole = np.frombuffer(self._core.segments.data(found[0]), np.uint8)
                self._data = whole[start : start + self.nbytes]
            else:
                self._data = np.full(self.nbytes, FRESH, np.uint8)
                for segment in found:
                    here, there = _overlap(segment, self.address, self.nbytes)
                    self._data[there] = np.frombuffer(self._core.segments.data(segment), np.uint8)[here]
        return self._data

    @property
    def written(self) -> npt.NDArray[np.bool_]:
        if self._written is None:
            self._written = np.zeros(self.nbytes, np.bool_)
            for segment in self._segments():
                here, there = _overlap(segment, self.address, self.nbytes)
                self._written[there] = written_plane(self._core, segment)[here]
        return self._written


def _end(segment: Segment) -> int:
    return segment.address + segment.size


def _overlap(segment: Segment, address: int, nbytes: int) -> tuple[slice, slice]:
    """Return where a segment and a range meet, in the segment and in the range."""
    low, high = max(segment.address, address), min(_end(segment), address + nbytes)
    return slice(low - segment.address, high - segment.address), slice(low - address, high - address)


def written_plane(core: Core, segment: Segment) -> npt.NDArray[np.bool_]:
    """Return which bytes of a segment were written."""
    plane = core.segments.plane(segment)
    found = np.ones(segment.size, np.bool_)
    if plane is not None:
        bits = np.unpackbits(np.frombuffer(plane, np.uint8), bitorder="little")[: segment.size].view(np.bool_)
        found[: bits.size] = bits
        found[bits.size :] = False
    return found


class DumpedTransfer(Transfer):
    """A DMA transfer that was not complete."""

    __slots__ = ("_moving", "_words")

    def __init__(self, queue: str, core: int, state: TransferState) -> None:
        super().__init__(
            queue=queue, core=core, engine=state.engine, pc=state.pc, parts=(), semaphore=state.semaphore,
            increment=state.increment, remote=state.remote,
        )  # fmt: skip
        self.number, self.nbytes, self.state = state.number, state.nbytes, "queued"
        self.triggered_ps, self.started_ps, self.planned_ps = state.triggered_ps, state.started_ps, state.planned_ps
        self.shares = state.shares
        self._words, self._moving = state.text, state.moving

    @property
    def text(self) -> str:
        return self._words

    def running(self, now_ps: int) -> bool:
        return self._moving

    def descriptors(self, first: int, last: int) -> Iterator[DmaDescriptor]:
        return iter(())


class DumpedDevice(Device):
    """A device in the state of a dump; whatever would move it raises UsageError."""

    def __init__(self, core: Core) -> None:
        self.dumped = core
        dump, where = core.dump, core.path or None
        try:
            target = resolve_target(dump.target)
        except (ValueError, LookupError) as error:
            raise FormatError(f"the dump does not tell its chip: {error}", path=where, field="dump.target") from None
        if not 1 <= dump.cores <= 16:
            raise FormatError("number of cores makes no sense", path=where, field="dump.cores", got=dump.cores)
        super().__init__(target, dump.cores, dump.timing)
        self.now_ps, self.steps = dump.time_ps, dump.completions
        self._ended = True
        self._restore_memory()
        names = core.neff.subgraphs
        shared = {t.name: _tensor(t) for t in core.tensors if t.core is None and t.kind != "tile"}
        cores = [self._restore_core(each, names, shared) for each in self.cores]
        self.model = LoadedModel(core.neff.name, cast("Any", None), cores, shared, (), ())
        self._restore_queues()
        self.fault = _fault(core)
        self.hang = hang_of(core) if core.outcome == "hang" else None
        self.warnings = [
            Notice(f.kind, f.message, f.core, f.engine, f.pc, f.text, f.operand, f.time_ps)
            for f in core.findings
            if f.tool == "device"
        ]

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"."""
        return self.dumped.outcome or "running"

    def step(self) -> Event | None:
        """Raise UsageError."""
        still()

    def run(self, until: Any = None) -> str:
        """Raise UsageError."""
        still()

    def ahead(self) -> None:
        """Return None: nothing comes next."""
        return None

    def _restore_memory(self) -> None:
        core = self.dumped
        for segment in core.segments:
            if segment.space not in _PLACES or not 0 <= segment.core < len(self.cores):
                continue
            memory = self.cores[segment.core].memory
            array, plane = memory.array(segment.space), memory.written(segment.space)
            rows, width = array.shape
            size = min(segment.size, width - segment.byte)
            if segment.partition >= rows or size <= 0:
                continue
            part = segment.partition, slice(segment.byte, segment.byte + size)
            array[part] = np.frombuffer(core.segments.data(segment), np.uint8)[:size]
            plane[part] = written_plane(core, segment)[:size]
        for item in core.allocations:
            if item.address < 0 or not 0 <= item.nbytes <= 1 << 40 or item.address in self.hbm.allocations:
                continue
            self.hbm.allocations[item.address] = DumpedAllocation(core, *_allocated(item))
            insort(self.hbm._starts, item.address)

    def _restore_core(
        self, own: EmulatedCore, names: Sequence[str], shared: dict[str, DeviceTensor]
    ) -> LoadedCore:
        core, index = self.dumped, own.index
        own.semaphores.values[:] = _filled(core.semaphores(index))
        own.events.values[:] = _filled(core.events(index))
        streams, sources = _Streams(), {}
        for stream in core.program.streams:
            if stream.core != index or stream.engine not in ENGINES:
                continue
            words = DumpedWords(core, stream, self.target.generation)
            own.extended = stream.extended
            dialect = "extended" if stream.extended else "neuron"
            streams[stream.engine] = _FileWords(words, stream, self.target.generation, dialect)
            places = [location_of(each) for each in stream.locations]
            sources[stream.engine] = [
                (first, count, places[n]) for first, count, n in stream.sources if 0 <= n < len(places)
            ]
            own.engines[stream.engine].words = words
        for state in core.engines:
            if state.core == index and state.engine in own.engines:
                _restore_engine(own.engines[state.engine], state)
        by_name = shared | {t.name: _tensor(t) for t in core.tensors if t.kind != "tile" and t.core == index}
        subgraph = _Subgraph(names[index] if index < len(names) else f"sg{index:02}", index, streams)
        cast("Any", subgraph).sources = sources
        placement = Placement(by_name, {}, frozenset(), None, 0)
        functions = core.program.activation[index] if index < len(core.program.activation) else {}
        activation = {int(number): name for number, name in functions.items() if number.isdecimal()}
        own.activation = activation
        own.loaded = DumpedProgram(index, cast("Any", subgraph), {}, activation, own.extended, placement, {})
        return own.loaded

    def _restore_queues(self) -> None:
        for state in self.dumped.queues:
            if not 0 <= state.core < len(self.cores) or not 1 <= state.rings <= 16:
                continue
            where = state.core, state.name, state.engine, state.rings, state.semaphores, state.kind
            queue = self.dma.add_queue(*where)
            queue.ring, queue.completed, queue.nbytes = state.ring, state.completed, state.nbytes
            queue.pending = deque(DumpedTransfer(state.name, state.core, each) for each in state.transfers)


def _allocated(item: Any) -> tuple[int, int, str, int]:
    return item.address, item.nbytes, item.name, item.written


def _filled(values: Sequence[int]) -> list[int]:
    kept = list(values[:COUNT])
    return kept + [0] * (COUNT - len(kept))


def _restore_engine(engine: Sequencer, state: EngineState) -> None:
    words = engine.words
    flights = {flight.word: flight for flight in state.in_flight}
    indices = words.indices if isinstance(words, DumpedWords) else []
    engine.count = len(words)
    engine.position = sum(index < state.position for index in indices)
    engine.completed, engine.busy_ps = state.completed, state.busy_ps
    engine.state = state.state
    engine.in_flight = deque(
        Flight(words[number], cast("Any", None), flights[index].issued_ps, ())
        for number, index in enumerate(indices)
        if index in flights and index < state.position
    )
    for number, value in enumerate(state.registers[: len(engine.registers)]):
        engine.registers[number] = value & 0xFFFFFFFF
    bits = [value & 0xFFFFFFFF for value in state.accumulators[: engine.accumulators.size]]
    engine.accumulators.view(np.uint32)[: len(bits)] = bits
    waiting = state.waiting
    if waiting is not None and 0 <= waiting.number < COUNT and 0 <= waiting.core < len(engine.device.cores):
        engine.waiting_on = WaitingOn(*waiting[:6])


def _tensor(item: TensorState) -> DeviceTensor:
    dtype = item.dtype
    try:
        size = Dtype.from_numpy_name(dtype).size if dtype else 1
    except FormatError:
        dtype, size = "", 1
    total = size
    for length in item.shape:
        total *= max(length, 0)
    if total != item.nbytes:
        dtype = ""
    return DeviceTensor(item.name, item.address, item.nbytes, dtype, item.shape if dtype else (), item.kind)


def tiles_of(core: Core, index: int) -> Iterator[Tile]:
    """Yield the tiles of a core."""
    for item in core.tensors:
        if item.kind != "tile" or item.core != index or item.space not in _PLACES or not item.shape:
            continue
        try:
            dtype = Dtype.from_numpy_name(item.dtype).numpy_name
        except FormatError:
            continue
        where = item.partition, item.shape[0], item.address
        if min(where) >= 0 and min(item.shape) > 0 and item.shape[0] <= 128:
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
    """Return the wait-for graph of a dump as the emulator has it; signals that the dump left out are missing."""
    return Hang(
        core.waits.reason,
        core.waits.time_ps,
        tuple(
            Wait(
                wait.core, wait.engine, wait.pc, wait.text, location_of(wait.source), wait.kind, wait.number,
                wait.condition, wait.need, wait.present, wait.since_ps,
                tuple(Signal(*signal[:8]) for signal in wait.signals), wait.overshoot,
            )
            for wait in core.waits.waits
        ),
        tuple(tuple(cycle) for cycle in core.waits.cycles),
        core.waits.running,
    )  # fmt: skip


