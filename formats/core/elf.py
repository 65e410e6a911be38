"""The ELF64 structures that a core dump is made of. Source: System V ABI, chapters 4 and 5 (gabi 4.1).

Files are read with the structures of pyelftools. Not with its ELFFile: that one also reads sections, which no dump has
and damage may promise, and loads the DWARF reader, which takes half as long again as the structures do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from elftools.elf.structs import ELFStructs

__all__ = [
    "CHECKSUMS",
    "CORE",
    "EHDR",
    "EHDR_SIZE",
    "FLAGS",
    "IDENT",
    "MOST_HEADERS",
    "NHDR",
    "OWNER",
    "PF_R",
    "PF_W",
    "PF_X",
    "PHDR",
    "PHDR_SIZE",
    "PT_LOAD",
    "PT_NOTE",
    "PT_WRITTEN",
    "ProgramHeader",
    "padded",
    "read_header",
    "read_note_header",
    "read_program_headers",
]

IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, version 1
CORE = 4  # ET_CORE
EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
PHDR = struct.Struct("<IIQQQQQQ")
NHDR = struct.Struct("<III")
EHDR_SIZE, PHDR_SIZE = EHDR.size, PHDR.size
MOST_HEADERS = 0xFFFE  # 0xffff means that the number stands in a section header

PT_LOAD, PT_NOTE = 1, 4
# Ours, from the range for processors: one bit per byte of the PT_LOAD segment with the same address, lowest bit first,
# 1 where the byte was written; a PT_LOAD segment without one was written whole.
PT_WRITTEN = 0x7000_0001
PF_X, PF_W, PF_R = 1, 2, 4

OWNER = b"NEURONTOOLS\0"
# e_flags: "NT", whether there are checksums, and the version of the format; a dump without its notes is still known.
CHECKSUMS = 0x100
FLAGS = 0x4E540001 | CHECKSUMS


class ProgramHeader(NamedTuple):
    """One program header; `memory_size` is p_memsz, `align` p_align."""

    type: int
    flags: int
    offset: int
    address: int
    physical: int
    size: int
    memory_size: int
    align: int


class Header(NamedTuple):
    """What the ELF header tells: its flags, where program headers stand, and how many."""

    flags: int
    start: int
    headers: int


class NoteHeader(NamedTuple):
    """The head of a note: sizes of name and description, and what it is."""

    name_size: int
    size: int
    type: int


# ELF's names, in the order of the fields of `ProgramHeader`.
_PROGRAM_HEADER = ("p_type", "p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")


@cache
def _structures() -> ELFStructs:
    """Return the structures of a core of 64 bits, little-endian, for no machine."""
    from elftools.elf.structs import ELFStructs

    found = ELFStructs(little_endian=True, elfclass=64)
    found.create_basic_structs()
    found.create_advanced_structs("ET_CORE", "EM_NONE", "ELFOSABI_SYSV")
    return found


def read_header(data: memoryview, path: str | None) -> Header:
    """Return the ELF header; FormatError where it is none of a core of 64 bits, little-endian."""
    if len(data) < EHDR_SIZE or data[:4] != IDENT[:4]:
        raise FormatError("not an ELF file", path=path, offset=0, expected="an ELF header of 64 bytes",
                          got=f"{len(data)} bytes" if len(data) < EHDR_SIZE else bytes(data[:4]))  # fmt: skip
    from elftools.construct import ConstructError

    try:
        found = _structures().Elf_Ehdr.parse(bytes(data[:EHDR_SIZE]))
        ours = data[4:6] == IDENT[4:6] and found.e_type == "ET_CORE"
    except ConstructError:  # a class, byte order or version that ELF does not have
        ours = False
    if not ours:
        kind = int.from_bytes(data[16:18], "little")
        raise FormatError("not an ELF core of 64 bits, little-endian", path=path, offset=4,
                          expected="class 2, data 1, type 4", got=f"{data[4]}, {data[5]}, {kind}")  # fmt: skip
    if found.e_phentsize != PHDR_SIZE:
        raise FormatError("program headers have another size", path=path, field="e_phentsize", expected=PHDR_SIZE,
                          got=found.e_phentsize)  # fmt: skip
    return Header(found.e_flags, found.e_phoff, found.e_phnum)


def read_program_headers(data: memoryview) -> Iterator[ProgramHeader]:
    """Yield the program headers that a table holds."""
    row, order = _row("Elf_Phdr", _PROGRAM_HEADER)
    whole = len(data) - len(data) % row.size
    for found in row.iter_unpack(data[:whole]):
        yield ProgramHeader(*(found[at] for at in order))


def read_note_header(data: memoryview, at: int) -> NoteHeader:
    """Return the head of the note at an offset, where as many bytes are."""
    row, order = _row("Elf_Nhdr", ("n_namesz", "n_descsz", "n_type"))
    found = row.unpack_from(data, at)
    return NoteHeader(*(found[at] for at in order))


@cache
def _row(name: str, fields: tuple[str, ...]) -> tuple[struct.Struct, tuple[int, ...]]:
    """Return the layout that pyelftools declares for a row of a table, and where in it the fields are.

    A dump has hundreds of rows, and parsing each one with its structures takes fifty times as long.
    """
    declared = getattr(_structures(), name).subcons
    layout = struct.Struct("<" + "".join({4: "I", 8: "Q"}[each.sizeof()] for each in declared))
    names = [each.name for each in declared]
    return layout, tuple(names.index(each) for each in fields)


def padded(size: int, align: int = 4) -> int:
    """Return a size rounded up."""
    return -(-size // align) * align
