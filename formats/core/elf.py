"""The ELF64 structures that a core dump is made of. Source: System V ABI, chapters 4 and 5 (gabi 4.1)."""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = [
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
FLAGS = 0x4E540001  # e_flags: "NT" and the version of the format, so that a dump without its notes is still known


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


def padded(size: int, align: int = 4) -> int:
    """Return a size rounded up."""
    return -(-size // align) * align
