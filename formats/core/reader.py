"""Read a core dump: mapped, not read; every part when it is asked for; what is missing or cut is a warning."""

from __future__ import annotations

import mmap
import os
from functools import cached_property
from typing import Any, TypeVar, cast

from formats.core import elf, records
from formats.core.declare import NOTES, NoteKind, decode
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
from formats.core.space import Bytes, Segment, Segments
from formats.errors import FormatError, NotFoundError

__all__ = ["Core", "open_core"]

Note = TypeVar("Note")


def open_core(source: str | os.PathLike[str] | bytes) -> Core:
    """Return the core dump in a file or in memory; only its headers are read here.

    Raises FormatError where the file cannot be read, is no ELF core, or none that neurontools wrote. Parts that are
    missing, cut off or damaged are told in `Core.warnings`.
    """
    return Core(source)


class Core:
    """One core dump, read-only and lazy; the file is mapped as long as the value lives.

    `fault` is None where nothing faulted, `hang` where nothing hung; `waits` is the wait-for graph in either case.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self.path = "" if isinstance(source, bytes) else os.fspath(source)
        self._data = memoryview(source) if isinstance(source, bytes) else _map(self.path)
        self.size = len(self._data)
        self._warnings: list[str] = []
        self._headers = self._read_headers()
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
        data, path = self._data, self.path or None
        if len(data) < elf.EHDR_SIZE or data[:4] != elf.IDENT[:4]:
            raise FormatError("not an ELF file", path=path, offset=0, expected="an ELF header of 64 bytes",
                              got=f"{len(data)} bytes" if len(data) < elf.EHDR_SIZE else bytes(data[:4]))  # fmt: skip
        (ident, kind, _, _, _, start, _, flags, _, size, count, *_) = elf.EHDR.unpack_from(data)
        if ident[4:6] != elf.IDENT[4:6] or kind != elf.CORE:
            raise FormatError("not an ELF core of 64 bits, little-endian", path=path, offset=4,
                              expected="class 2, data 1, type 4", got=f"{ident[4]}, {ident[5]}, {kind}")  # fmt: skip
        self._ours = flags == elf.FLAGS
        if size != elf.PHDR_SIZE:
            raise FormatError("program headers have another size", path=path, field="e_phentsize",
                              expected=elf.PHDR_SIZE, got=size)  # fmt: skip
        here = max(0, min(count, (len(data) - start) // elf.PHDR_SIZE))
        if here < count:
            self._warnings.append(f"{count - here} of {count} program headers are cut off")
        table = data[start : start + here * elf.PHDR_SIZE]
        return [ProgramHeader(*fields) for fields in elf.PHDR.iter_unpack(table)]

    def _find_notes(self) -> dict[int, memoryview]:
        """Return the notes of ours by number."""
        found: dict[int, memoryview] = {}
        for header in self._headers:
            if header.type != elf.PT_NOTE:
                continue
            at, end = header.offset, min(header.offset + header.size, len(self._data))
            if header.offset + header.size > len(self._data):
                self._warnings.append("the notes are cut off")
            while at + elf.NHDR.size <= end:
                name_size, size, kind = elf.NHDR.unpack_from(self._data, at)
                name = at + elf.NHDR.size
                start = name + elf.padded(name_size)
                if start + size > end:
                    if self._data[name : name + name_size] == elf.OWNER:
                        known = NOTES.get(kind)
                        self._warnings.append(f"note {known.name if known else hex(kind)!r} is cut off")
                    break
                if self._data[name : name + name_size] == elf.OWNER:
                    found.setdefault(kind, self._data[start : start + size])
                at = start + elf.padded(size)
        return found

    def note(self, record: type[Note]) -> Note | None:
        """Return a note by the class of its record, None where the dump has none."""
        if record not in self._decoded:
            kind = next(kind for kind in NOTES.values() if kind.record is record)
            data = self._notes.get(kind.number)
            self._decoded[record] = None if data is None else decode(kind, bytes(data), self._warnings)
        return cast("Note | None", self._decoded[record])

    def _part(self, record: type[Note]) -> Note:
        return self.note(record) or record()

    @property
    def notes(self) -> dict[str, int]:
        """Return the notes that are here, by name, with the bytes they take."""
        named = ((NOTES.get(number), len(data)) for number, data in self._notes.items())
        return {kind.name: size for kind, size in named if kind is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of notes that every dump has and this one lacks."""
        # Of a real device nobody but its driver knows what the engines did.
        known = _DEVICE_NOTES if self.dump.device == "neuron" else None
        return tuple(
            kind.name
            for kind in NOTES.values()
            if kind.number not in self._notes and (_always(kind) if known is None else kind.record in known)
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is missing, cut off or damaged, as far as anybody has looked."""
        lacking = (f"no {name!r} note" for name in self.missing)
        return (*dict.fromkeys(self._warnings), *lacking)

    @cached_property
    def segments(self) -> Segments:
        """Return the memories that are in the file."""
        return Segments(self._data, self._headers, self.windows, self._warnings)

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
        raise NotFoundError(f"the dump has no {' '.join((engine, space)).strip()}{where}")

    def read(self, space: str, core: int, address: int, nbytes: int, partition: int = 0, engine: str = "") -> Bytes:
        """Return bytes of one memory, and which of them are here and written.

        `address` is a byte of `partition` in "SBUF" and "PSUM", a device address in "HBM", a byte of the engine's
        stream for "instructions". Raises NotFoundError for bytes that no such memory has.
        """
        window = self.window(space, core, engine, address if space == "HBM" else None)
        start = address - window.base if space == "HBM" else address
        if not 0 <= partition < window.rows or start < 0 or nbytes < 0 or start + nbytes > window.row_bytes:
            raise NotFoundError(
                f"{space} has partitions 0 to {window.rows - 1} and bytes 0x0 to {window.row_bytes - 1:#x}; asked for "
                f"partition {partition}, {nbytes} bytes from {start:#x}"
            )
        stride = window.stride or window.row_bytes
        return self.segments.read(window.base + partition * stride + start, nbytes, self._part(MapNote).fill)

    def segment_data(self, segment: Segment) -> memoryview:
        """Return the bytes of a segment, without a copy."""
        return self.segments.data(segment)


_DEVICE_NOTES = (DumpNote, StatusNote, NeffNote, EnvironmentNote, records.DeviceNote)


def _always(kind: NoteKind) -> bool:
    return kind.record not in (FaultNote, records.LogNote, JournalNote, records.FindingsNote, records.DeviceNote)


def _map(path: str) -> memoryview:
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise FormatError("file is empty", path=path, expected="an ELF core")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise FormatError(f"cannot be read: {(error.strerror or str(error)).lower()}", path=path) from None
    except ValueError as error:
        raise FormatError(f"cannot be mapped: {error}", path=path) from None
