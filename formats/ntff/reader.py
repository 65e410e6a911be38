"""Open an NTFF: header, metadata, instruction buffers, trace records. Source: formats.md 6.1 (inferred)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from formats.engines import ENGINES
from formats.errors import FormatError, NotFoundError
from formats.isa import Stream, decode_stream
from formats.limits import Span, need_apart, need_few
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.ntff import records
from formats.ntff.metadata import HEADER, BufferPlace, CoreCapture, Metadata, Section, parse_metadata
from formats.ntff.pcmap import PcMap
from formats.ntff.records import ClockChange, DmaPacket, Executed, RawRecord, SignalChange
from formats.targets import TARGETS, Target

__all__ = ["Buffer", "Ntff", "open_ntff"]

_VERSIONS = (4, 5, 6)
_EMBEDDED = 4  # of trn1, with DMA engines numbered from 0

_MOST_CORES = 1024  # of one capture; an instance has 128
_INSTRUCTION_RING = 14  # rings on which engines fetch their words and tables; none is a program's own


class Buffer(NamedTuple):
    """The words that were loaded for one engine, decoded when asked for; `map` leads back to the compiler's."""

    core: int
    engine: str
    address: int
    data: bytes
    map: PcMap
    words: Stream

    def compiler_pc(self, pc: int) -> int | None:
        """Return the compiler's pc of a loaded word; None for one that the runtime inserted."""
        return self.map.compiler_pc(pc)


class Ntff:
    """A profile capture: `.version`, `.metadata`, `.cores`, `.sections`, and the records of each core.

    Times are picoseconds since the common zero of the device's clocks. Methods raise FormatError where the file is cut
    off or damaged, NotFoundError for a core or an engine that it does not have, UnsupportedError for a record of no
    known meaning.
    """

    def __init__(self, data: bytes, path: str | None = None) -> None:
        self.path, self._data = path, data
        where = self.where = path or "capture"
        if len(data) < HEADER:
            raise FormatError("too short for a profile capture", path=where, expected=f"{HEADER} bytes", got=len(data))
        self.version = data[0]
        if self.version not in _VERSIONS:
            raise FormatError(
                "not a profile capture of a known version",
                path=where,
                offset=0,
                field="version",
                expected=" or ".join(map(str, _VERSIONS)),
                got=self.version,
            )
        length = int.from_bytes(data[1:8], "little")
        if length > len(data) - HEADER:
            raise FormatError(
                "metadata is cut off",
                path=where,
                offset=1,
                field="metadata length",
                expected=f"at most {len(data) - HEADER}",
                got=length,
            )
        self._area = HEADER + length
        self.metadata: Metadata = parse_metadata(data[HEADER : self._area], where)
        self._check_parts()

    def _check_parts(self) -> None:
        """Raise FormatError where cores are named twice or parts of the data area overlap: each is read once."""
        numbers = [each.core for each in self.cores]
        need_few(len(numbers), _MOST_CORES, "cores", self.where)
        if len(set(numbers)) < len(numbers):
            raise FormatError(
                "a core is captured twice",
                path=self.where,
                field="core",
                got=next(each for each in numbers if numbers.count(each) > 1),
            )
        spans = [
            Span(self._area + place.offset, place.nbytes, f"instruction buffer of {place.engine}")
            for each in self.cores
            for place in each.places.values()
            if place.data is None
        ]
        spans += (Span(self._area + each.offset, each.nbytes, f"{each.kind} records") for each in self.sections)
        need_apart(spans, self.where)

    def __repr__(self) -> str:
        return f"<Ntff {self.where}: version {self.version}, {len(self.cores)} cores>"

    @property
    def name(self) -> str:
        """Return the name of the NEFF that ran."""
        return self.metadata.name

    @property
    def uuid(self) -> str:
        """Return the uuid of the NEFF that ran, as hexadecimal digits."""
        return self.metadata.uuid

    @property
    def cores(self) -> tuple[CoreCapture, ...]:
        """Return the physical cores that were captured."""
        return self.metadata.cores

    @property
    def sections(self) -> tuple[Section, ...]:
        """Return the sections of trace records, empty ones among them."""
        return self.metadata.sections

    @cached_property
    def target(self) -> Target:
        """Return the chip, by the instance type; without one trn1 for version 4 and trn2 for later ones."""
        chip = self.metadata.instance_type.partition(".")[0].lower()
        for target in TARGETS:
            if chip.startswith(target.name):
                return target
        return next(t for t in TARGETS if t.generation == ("gen2" if self.version == _EMBEDDED else "gen3"))

    def core(self, number: int) -> CoreCapture:
        """Return a captured core by its number on the device."""
        for each in self.cores:
            if each.core == number:
                return each
        have = ", ".join(str(each.core) for each in self.cores) or "none"
        raise NotFoundError(f"{self.where}: no core {number}; there are {have}")

    def buffer(self, core: int, engine: str) -> Buffer:
        """Return the words that were loaded for an engine."""
        capture = self.core(core)
        place = capture.places.get(engine)
        if place is None:
            have = ", ".join(capture.places) or "none"
            raise NotFoundError(f"{self.where}: no instruction buffer of {engine!r}; there are {have}")
        data = self._bytes(place)
        words = decode_stream(
            data[: len(data) // WORD * WORD], self.target.generation, "neuron", f"{self.where} {engine}"
        )
        return Buffer(core, engine, place.address, data, capture.maps.get(engine, PcMap(engine, ())), words)

    def buffers(self, core: int) -> tuple[Buffer, ...]:
        """Return the buffers of a core, in the order PE, Activation, Pool, DVE, SP."""
        places = self.core(core).places
        return tuple(self.buffer(core, engine) for engine in ENGINES if engine in places)

    def _bytes(self, place: BufferPlace) -> bytes:
        if place.data is not None:
            return place.data
        return self._part(place.offset, place.nbytes, f"instruction buffer of {place.engine}")

    def _part(self, offset: int, nbytes: int, what: str) -> bytes:
        have = len(self._data) - self._area
        if offset + nbytes > have:
            raise FormatError(
                f"{what} is cut off",
                path=self.where,
                offset=self._area + offset,
                expected=f"{nbytes} bytes",
                got=max(0, have - offset),
            )
        return self._data[self._area + offset : self._area + offset + nbytes]

    # --- trace records -----------------------------------------------------------------------------------------------

    def raw(self, section: Section) -> tuple[RawRecord, ...]:
        """Return the records of a section as they stand."""
        return tuple(records.raw_records(self._part(section.offset, section.nbytes, f"{section.kind} records")))

    def _of(self, kind: str, core: int) -> Iterable[tuple[Section, tuple[RawRecord, ...]]]:
        self.core(core)
        for section in self._by_kind.get((kind, core), ()):
            yield section, self.raw(section)

    @cached_property
    def _by_kind(self) -> dict[tuple[str, int], list[Section]]:
        found: dict[tuple[str, int], list[Section]] = {}
        for section in self.sections:
            if section.nbytes:
                found.setdefault((section.kind, section.core), []).append(section)
        return found

    @cached_property
    def _queues(self) -> dict[tuple[int, int, int], str]:
        """Return names of queues by core, DMA engine and ring; the first that names a ring counts."""
        return {
            (one.core, each.engine, each.ring): each.queue
            for one in self.cores
            for each in reversed(one.rings)
            if each.queue
        }

    def _addresses(self, core: int) -> dict[str, tuple[int, int]]:
        return {name: (place.address, place.nbytes) for name, place in self.core(core).places.items()}

    def executed(self, core: int) -> tuple[Executed, ...]:
        """Return every execution of a word of a core, in the order in which they began."""
        places, clocks = self._addresses(core), self.core(core).clocks
        found = [each for _, rows in self._of("trace", core) for each in records.executed(rows, core, places, clocks)]
        return tuple(sorted(found, key=lambda each: each.start_ps))

    def outside(self, core: int) -> int:
        """Return how many trace records of a core are of words that its buffers do not hold."""
        places = self._addresses(core)
        return sum(records.outside(rows, places) for _, rows in self._of("trace", core))

    def signals(self, core: int) -> tuple[SignalChange, ...]:
        """Return every change of a semaphore or an event of a core."""
        clocks = self.core(core).clocks
        return tuple(
            each for _, rows in self._of("notify", core) for each in records.signal_changes(rows, core, clocks)
        )

    def packets(self, core: int) -> tuple[DmaPacket, ...]:
        """Return every packet that the core's DMA engines moved."""
        clocks = self.core(core).clocks
        apart = 0 if self.version == _EMBEDDED else records.PER_INSTANCE
        found = [
            each
            for section, rows in self._of("trace_dma", core)
            for each in records.dma_packets(rows, core, section.instance * apart, clocks)
        ]
        return tuple(sorted(found, key=lambda each: (each.start_ps, each.engine)))

    def clock_changes(self, core: int) -> tuple[ClockChange, ...]:
        """Return the changes of the Tensor engine's clock."""
        clocks = self.core(core).clocks
        return tuple(
            each for _, rows in self._of("throttle", core) for each in records.clock_changes(rows, core, clocks)
        )

    def queue_name(self, core: int, engine: int, ring: int) -> str:
        """Return the name of the queue that has a ring of a DMA engine."""
        self.core(core)
        return self._queues.get((core, engine, ring)) or (
            "instruction fetch" if ring == _INSTRUCTION_RING else f"ring {ring}"
        )


def open_ntff(path: str | os.PathLike[str] | bytes) -> Ntff:
    """Open a profile capture by path, or from its bytes; FormatError where it is not a capture, or cannot be read."""
    if isinstance(path, bytes):
        return Ntff(path)
    try:
        return Ntff(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise FormatError(f"cannot be read ({(error.strerror or str(error)).lower()})", path=str(path)) from None
