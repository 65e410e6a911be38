"""Write a core dump: notes and segments are gathered, then the file appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from formats.core import elf
from formats.core.declare import encode, kind_of
from formats.core.elf import ProgramHeader
from formats.core.records import ChecksumsNote
from formats.errors import FormatError
from formats.whole_files import write_whole

__all__ = ["CoreWriter"]

Buffer = Any  # bytes, memoryview, or anything else that a file takes

_SEGMENT_ALIGN = 64


class _Segment:
    __slots__ = ("address", "flags", "kind", "parts", "size")

    def __init__(self, kind: int, address: int, parts: Sequence[Buffer], flags: int) -> None:
        self.kind, self.address, self.parts, self.flags = kind, address, parts, flags
        self.size = sum(memoryview(part).nbytes for part in parts)

    def checksum(self) -> int:
        """Return the checksum of the bytes."""
        found = 0
        for part in self.parts:
            found = crc32(part, found)
        return found


def _note(number: int, payload: bytes) -> bytes:
    """Return a note of ours as it stands in the file."""
    body = elf.NHDR.pack(len(elf.OWNER), len(payload), number) + elf.OWNER + payload
    return body + bytes(elf.padded(len(body)) - len(body))


class CoreWriter:
    """Gather notes and segments, then write them with their checksums; nothing is on disk before `close`.

    As a context manager it closes at the end, and writes nothing where an exception left the block. What segments hold
    is not copied: it must not change before `close`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._notes: list[bytes] = []
        self._sums: dict[str, int] = {}
        self._segments: list[_Segment] = []

    def note(self, record: object) -> None:
        """Add a note: one of the records of `formats.core.records`."""
        kind, payload = kind_of(record), encode(record)
        self._sums[kind.name] = crc32(payload)
        self._notes.append(_note(kind.number, payload))

    def segment(self, address: int, parts: Buffer | Iterable[Buffer], *, flags: int = elf.PF_R | elf.PF_W,
                written: Buffer | None = None) -> None:  # fmt: skip
        """Add memory at an address; `written` is one bit per byte, lowest bit first, None where all were written."""
        if isinstance(parts, bytes | bytearray | memoryview) or hasattr(parts, "__array_interface__"):
            parts = (parts,)
        self._segments.append(_Segment(elf.PT_LOAD, address, tuple(parts), flags))
        if written is not None:
            self._segments.append(_Segment(elf.PT_WRITTEN, address, (written,), elf.PF_R))

    @property
    def room(self) -> int:
        """Return how many program headers are left."""
        return elf.MOST_HEADERS - 1 - len(self._segments)

    def close(self) -> int:
        """Write the file beside its place, rename it there, and return its size.

        Raises FormatError where it cannot be written; then nothing of it is left.
        """
        size = 0
        try:
            with write_whole(self.path, durable=True) as beside, beside.open("wb") as file:
                for block in self._blocks():
                    file.write(block)
                    size += memoryview(block).nbytes
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise FormatError(f"dump cannot be written: {why}", path=self.path) from None
        return size

    def _blocks(self) -> Iterator[Buffer]:
        """Yield the file's bytes: headers, notes, segments."""
        if self.room < 0:
            raise FormatError("dump has too many segments", path=self.path, expected=f"up to {elf.MOST_HEADERS}",
                              got=len(self._segments) + 1)  # fmt: skip
        sums = ChecksumsNote(self._sums, tuple(each.checksum() for each in self._segments))
        notes = b"".join((*self._notes, _note(kind_of(sums).number, encode(sums))))
        count = 1 + len(self._segments)
        at = elf.EHDR_SIZE + count * elf.PHDR_SIZE
        headers = [ProgramHeader(elf.PT_NOTE, elf.PF_R, at, 0, 0, len(notes), 0, 4)]
        at += len(notes)
        gaps = []
        for each in self._segments:
            start = elf.padded(at, _SEGMENT_ALIGN)
            gaps.append(start - at)
            # Only loadable segments take up memory.
            memory = each.size if each.kind == elf.PT_LOAD else 0
            where = each.address, each.address
            headers.append(ProgramHeader(each.kind, each.flags, start, *where, each.size, memory, 1))
            at = start + each.size
        yield elf.EHDR.pack(elf.IDENT, elf.CORE, 0, 1, 0, elf.EHDR_SIZE, 0, elf.FLAGS, elf.EHDR_SIZE, elf.PHDR_SIZE,
                            count, 0, 0, 0)  # fmt: skip
        yield b"".join(elf.PHDR.pack(*header) for header in headers)
        yield notes
        for gap, each in zip(gaps, self._segments, strict=True):
            if gap:
                yield bytes(gap)
            yield from each.parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        if error is None:
            self.close()
