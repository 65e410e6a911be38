"""Read a core dump: every part when it is asked for; what is missing, cut off or claimed twice is a warning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeVar, cast
from zlib import crc32

from formats.core import elf, records
from formats.core.declare import NOTES, decode
from formats.core.elf import ProgramHeader
from formats.core.records import (
    Allocation,
    CounterBank,
    DumpNote,
    EngineState,
    EnvironmentNote,
    FaultNote,
    FindingState,
    JournalNote,
    MapNote,
    NeffNote,
    ProgramNote,
    QueueState,
    RingState,
    StatusNote,
    TensorState,
    WaitsNote,
    Window,
)
from formats.core.runs import sound_streams
from formats.core.space import Bytes, Segment, Segments
from formats.core.stored_bytes import FileBytes, GivenBytes, StoredBytes
from formats.errors import FormatError, NotFoundError
from formats.limits import DEFAULT_LIMITS, Span, overlapping

__all__ = ["Core", "open_core"]

Note = TypeVar("Note")
_BLOCK = 1 << 20
_MOST_NOTES = 4096  # of one file; ours have one of each kind


def open_core(source: str | os.PathLike[str] | bytes) -> Core:
    """Return the core dump in a file or in memory; only its headers are read here.

    Raises FormatError where the file cannot be read, is no ELF core, or none that neurontools wrote. Parts that are
    missing, cut off or damaged are told in `Core.warnings`.
    """
    return Core(source)


class Core:
    """One core dump, read-only and lazy; the file stays open as long as the value lives.

    `fault` is None where nothing faulted, `hang` where nothing hung; `waits` is the wait-for graph in either case.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self.path = "" if isinstance(source, bytes) else os.fspath(source)
        self._data: StoredBytes = GivenBytes(source) if isinstance(source, bytes) else FileBytes(self.path)
        self.size = self._data.size
        self._warnings: list[str] = []
        self._headers = self._read_headers()
        self._shared = self._find_shared()
        self._notes = self._find_notes()
        self._decoded: dict[type, Any] = {}
        if not self._notes and not self._ours:
            raise FormatError("an ELF core, but none that neurontools wrote", path=self.path or None)
        version = self.dump.version
        if not 1 <= version <= records.VERSION:
            raise FormatError("version of the dump is not known", path=self.path or None, field="dump.version",
                              expected=f"1 to {records.VERSION}", got=version)  # fmt: skip

    def __repr__(self) -> str:
        return f"<Core {self.path}: {self.level}, {self.outcome}>"

    # --- the file ----------------------------------------------------------------------------------------------------

    def _read_headers(self) -> list[ProgramHeader]:
        flags, start, count = elf.read_header(memoryview(self._data.part(0, elf.EHDR_SIZE)), self.path or None)
        self._ours, self._summed = flags | elf.CHECKSUMS == elf.FLAGS, bool(flags & elf.CHECKSUMS)
        here = max(0, min(count, (self.size - start) // elf.PHDR_SIZE))
        if here < count:
            self._warnings.append(f"{count - here} of {count} program headers are cut off")
        return list(elf.read_program_headers(memoryview(self._data.part(start, start + here * elf.PHDR_SIZE))))

    def _find_shared(self) -> set[ProgramHeader]:
        """Return the headers that claim bytes of the file which another one has: they are left out.

        So what all parts come to is never more than the file.
        """
        claiming = [each for each in self._headers if each.type in (elf.PT_NOTE, elf.PT_LOAD, elf.PT_WRITTEN)]
        bad = overlapping([Span(each.offset, max(0, min(each.size, self.size - each.offset))) for each in claiming])
        if bad:
            self._warnings.append(f"{len(bad)} of {len(claiming)} parts share bytes of the file with others: left out")
        # Of two headers that are the same, neither says which bytes are meant.
        return {claiming[number] for number in bad}

    def _find_notes(self) -> dict[int, Span]:
        """Return where the notes of ours are, by number."""
        found: dict[int, Span] = {}
        seen = 0
        for header in self._headers:
            if header.type != elf.PT_NOTE or header in self._shared:
                continue
            at, end = header.offset, min(header.offset + header.size, self.size)
            if header.offset + header.size > self.size:
                self._warnings.append("the notes are cut off")
            while at + elf.NHDR.size <= end:
                head = memoryview(self._data.part(at, at + elf.NHDR.size + len(elf.OWNER)))
                name_size, size, kind = elf.read_note_header(head, 0)
                ours = name_size == len(elf.OWNER) and head[elf.NHDR.size :] == elf.OWNER
                start = at + elf.NHDR.size + elf.padded(name_size)
                seen += 1
                if seen > _MOST_NOTES:
                    self._warnings.append(f"more than {_MOST_NOTES} notes; the rest is left out")
                    return found
                if start + size > end:
                    if ours:
                        known = NOTES.get(kind)
                        self._warnings.append(f"note {known.name if known else hex(kind)!r} is cut off")
                    break
                if ours and kind in found:
                    known = NOTES.get(kind)
                    self._warnings.append(f"a second note {known.name if known else hex(kind)!r} is left out")
                elif ours:
                    found[kind] = Span(start, size)
                at = start + elf.padded(size)
        return found

    def _bytes(self, span: Span) -> bytes | memoryview:
        return self._data.part(span.offset, span.offset + span.nbytes)

    def note(self, record: type[Note]) -> Note | None:
        """Return a note by the class of its record, None where the dump has none."""
        if record not in self._decoded:
            kind = next(kind for kind in NOTES.values() if kind.record is record)
            span = self._notes.get(kind.number)
            found = None if span is None else decode(kind, bytes(self._bytes(span)), self._warnings)
            if isinstance(found, ProgramNote):
                found = found._replace(streams=sound_streams(found.streams, self.size, self._warnings))
            self._decoded[record] = found
        return cast("Note | None", self._decoded[record])

    def _part(self, record: type[Note]) -> Note:
        return self.note(record) or record()

    @property
    def notes(self) -> dict[str, int]:
        """Return the notes that are here, by name, with the bytes they take."""
        named = ((NOTES.get(number), span.nbytes) for number, span in self._notes.items())
        return {kind.name: size for kind, size in named if kind is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of notes that every dump has and this one lacks."""
        return tuple(
            kind.name for kind in NOTES.values() if kind.number not in self._notes and self._belongs(kind.record)
        )

    def _belongs(self, record: type) -> bool:
        """Return whether a dump like this one has a note."""
        if record is records.ChecksumsNote:
            return self._summed
        # Of a real device nobody but its driver knows what the engines did.
        return record in _DEVICE_NOTES if self.dump.device == "neuron" else record not in _SOMETIMES

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is missing, cut off or damaged, as far as anybody has looked."""
        lacking = (f"no {name!r} note" for name in self.missing)
        return (*dict.fromkeys(self._warnings), *lacking)

    @cached_property
    def segments(self) -> Segments:
        """Return the memories that are in the file."""
        kept = [header for header in self._headers if header not in self._shared]
        return Segments(self._data, kept, self.windows, self._warnings)

    def altered(self) -> Iterator[str]:
        """Yield what is not as it was written, by checksums: all bytes are read. Older dumps have none, and yield none.

        What is cut off is told by `warnings`.
        """
        sums = self.note(records.ChecksumsNote)
        if sums is None:
            return
        for number, span in self._notes.items():
            kind = NOTES.get(number)
            if kind is not None and kind.name in sums.notes and crc32(self._bytes(span)) != sums.notes[kind.name]:
                yield f"note {kind.name!r} is not what was written"
        yield from (f"note {name!r} was written and is not here" for name in sums.notes if name not in self.notes)
        headers = self._headers[1:]
        if len(headers) != len(sums.segments):
            yield f"{len(sums.segments)} segments were written, {len(headers)} are here"
        named = {segment.address: segment for segment in self.segments}
        for header, held in zip(headers, sums.segments, strict=False):
            whole = header not in self._shared and header.offset + header.size <= self.size
            if whole and self._crc32(header.offset, header.size) != held:
                what = "the written bits" if header.type == elf.PT_WRITTEN else "the bytes"
                found = named.get(header.address)
                where = f" ({found.space} of core {found.core})" if found is not None and found.space else ""
                yield f"{what} from {header.address:#x}{where} are not what was written"

    def _crc32(self, offset: int, nbytes: int) -> int:
        """Return the checksum of a part, which is not held in memory as a whole."""
        found = 0
        for first in range(offset, offset + nbytes, _BLOCK):
            found = crc32(self._data.part(first, min(first + _BLOCK, offset + nbytes)), found)
        return found

    # --- what it says ------------------------------------------------------------------------------------------------

    @property
    def dump(self) -> DumpNote:
        """Return what this file is: level, chip, outcome, time."""
        return self._part(DumpNote)

    @property
    def level(self) -> str:
        """Return "light" or "full"."""
        return self.dump.level

    @property
    def outcome(self) -> str:
        """Return "running", "finished", "fault" or "hang"; "" where the dump does not tell."""
        return self.dump.outcome

    @property
    def status(self) -> StatusNote:
        """Return what the Neuron runtime reports."""
        return self._part(StatusNote)

    @property
    def error_location(self) -> str:
        """Return the function of libnrt that failed, "" unknown."""
        return self.status.location

    @property
    def fault(self) -> FaultNote | None:
        """Return what stopped the execution, None where nothing did."""
        return self.note(FaultNote)

    @property
    def waits(self) -> WaitsNote:
        """Return who waits for whom."""
        return self._part(WaitsNote)

    @property
    def hang(self) -> WaitsNote | None:
        """Return the wait-for graph of an execution that hung, None where it did not."""
        return self.waits if self.outcome == "hang" else None

    @property
    def neff(self) -> NeffNote:
        """Return which file ran."""
        return self._part(NeffNote)

    @property
    def engines(self) -> tuple[EngineState, ...]:
        """Return the engines."""
        return self._part(records.EnginesNote).engines

    @property
    def counters(self) -> tuple[CounterBank, ...]:
        """Return semaphores and events, one bank per core."""
        return self._part(records.CountersNote).banks

    def semaphores(self, core: int = 0) -> tuple[int, ...]:
        """Return the semaphores of a core by number, none where the dump has no such core."""
        return next((bank.semaphores for bank in self.counters if bank.core == core), ())

    def events(self, core: int = 0) -> tuple[int, ...]:
        """Return the events of a core by number, none where the dump has no such core."""
        return next((bank.events for bank in self.counters if bank.core == core), ())

    @property
    def queues(self) -> tuple[QueueState, ...]:
        """Return the DMA queues with their transfers."""
        return self._part(records.QueuesNote).queues

    @property
    def dma(self) -> tuple[RingState, ...]:
        """Return the rings of the DMA engines with their descriptors."""
        return self._part(records.RingsNote).rings

    @property
    def tensors(self) -> tuple[TensorState, ...]:
        """Return tensors and tiles."""
        return self._part(records.TensorsNote).tensors

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """Return the allocations in HBM."""
        return self._part(records.TensorsNote).allocations

    @property
    def windows(self) -> tuple[Window, ...]:
        """Return the memories: where they lie, how much of them is here."""
        return self._part(MapNote).windows

    @property
    def program(self) -> ProgramNote:
        """Return what stands in the instruction segments."""
        return self._part(ProgramNote)

    @property
    def environment(self) -> EnvironmentNote:
        """Return where it ran."""
        return self._part(EnvironmentNote)

    @property
    def log_tail(self) -> tuple[str, ...]:
        """Return the last lines of the log."""
        return self._part(records.LogNote).lines

    @property
    def journal_tail(self) -> JournalNote:
        """Return the last events."""
        return self._part(JournalNote)

    @property
    def findings(self) -> tuple[FindingState, ...]:
        """Return what the checks and the device found odd."""
        return self._part(records.FindingsNote).findings

    # --- memory ------------------------------------------------------------------------------------------------------

    def window(self, space: str, core: int = 0, engine: str = "", address: int | None = None) -> Window:
        """Return one memory; NotFoundError where the dump has none such.

        `address` chooses the stack of HBM.
        """
        for each in self.windows:
            if each.space == space and (space == "HBM" or (each.core, each.engine) == (core, engine)):
                if space == "HBM" and address is not None and not each.base <= address < each.base + each.row_bytes:
                    continue
                return each
        where = f" at {address:#x}" if address is not None else "" if space == "HBM" else f" of core {core}"
        raise NotFoundError(f"the dump has no {f'{engine} {space}'.strip()}{where}")

    def read(self, space: str, core: int, address: int, nbytes: int, partition: int = 0, engine: str = "") -> Bytes:
        """Return bytes of one memory, and which of them are here and written.

        `address` is a byte of `partition` in "SBUF" and "PSUM", a device address in "HBM", a byte of the engine's
        stream for "instructions". Raises NotFoundError for bytes that no such memory has, FormatError for more than a
        dump of this size tells anything about.
        """
        window = self.window(space, core, engine, address if space == "HBM" else None)
        start = address - window.base if space == "HBM" else address
        if not 0 <= partition < window.rows or start < 0 or nbytes < 0 or start + nbytes > window.row_bytes:
            raise NotFoundError(
                f"{space} has partitions 0 to {window.rows - 1} and bytes 0x0 to {window.row_bytes - 1:#x}; asked for "
                f"partition {partition}, {nbytes} bytes from {start:#x}"
            )
        most = DEFAULT_LIMITS.stored_from(self.size)
        if nbytes > most:  # the size of a memory is the file's word: it must not take ours
            raise FormatError(f"{nbytes:,} bytes of {space} are too many to read at once", path=self.path or None,
                              expected=f"at most {most:,}", got=f"{nbytes:,}")  # fmt: skip
        stride = window.stride or window.row_bytes
        return self.segments.read(window.base + partition * stride + start, nbytes, self._part(MapNote).fill)

    def segment_data(self, segment: Segment) -> bytes | memoryview:
        """Return the bytes of a segment."""
        return self.segments.data(segment)


_DEVICE_NOTES = (DumpNote, StatusNote, NeffNote, EnvironmentNote, records.DeviceNote)


_SOMETIMES = (FaultNote, records.LogNote, JournalNote, records.FindingsNote, records.DeviceNote)
