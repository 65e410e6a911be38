"""The manual page neuron-core(5), in roff, from the declarations of the notes.

`python -m tools` renews it; a test fails while it is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from formats.core import NOTES, VERSION, elf, fields_of
from tools import roff
from tools.roff import roff as _text

__all__ = ["PATH", "files", "page"]

PATH = "man/man5/neuron-core.5"


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {PATH: page()}


def page() -> str:
    """Return the roff of the whole page."""
    lines = [
        "'\\\" t",
        roff.title("NEURON-CORE", 5, "File Formats"),
        ".SH NAME",
        "neuron\\-core \\- core dumps of Neuron devices as neurontools writes and reads them",
    ]
    for part in (_description, _file, _addresses, _encoding, _notes, _records, _damage):
        lines += part()
    lines += [".SH SEE ALSO", "\\fBneurontools\\-core\\fR(1), \\fBneurontools\\-debug\\fR(1), \\fBelf\\fR(5)"]
    return "\n".join(lines) + "\n"


def _description() -> Iterator[str]:
    yield ".SH DESCRIPTION"
    yield _text(
        f"A core dump holds what an emulated Neuron device was at one moment. The format, version {VERSION}, belongs "
        "to neurontools: the layout of the dumps that AWS's runtime writes is not published, and this is not it. A "
        "file is written beside its place and renamed, so that it is whole or absent."
    )
    yield ".PP"
    yield _text(
        "A light dump holds all notes, the instructions around where engines stand, and of the memories, up to a "
        "mebibyte, what the fault, the words engines stand at and pending transfers touch. A full dump holds every "
        "instruction and every page of memory in which something was written; what it lacks was never written."
    )


def _file() -> Iterator[str]:
    yield ".SH FILE"
    yield _text(
        "An ELF64 file, little-endian, of type ET_CORE, for no machine, without sections. e_flags is "
        f"{elf.FLAGS:#x}: the letters NT, 1 for checksums, and the version. Program headers stand behind the ELF "
        "header, then the notes, then the segments."
    )
    rows = (
        ("PT_NOTE", "All notes, in segments aligned to 4 bytes. Their owner is "
                    f"{elf.OWNER.rstrip(bytes(1)).decode()}; readers pass over those of other owners."),
        ("PT_LOAD", "Bytes of a memory from p_vaddr on; p_filesz equals p_memsz. Readable and writable for memories, "
                    "readable and executable for instructions. Segments do not overlap."),
        (f"{elf.PT_WRITTEN:#x}", "One bit per byte of the PT_LOAD segment with the same p_vaddr, lowest bit first: "
                                 "whether anything wrote that byte. A segment without it was written whole."),
    )  # fmt: skip
    for name, text in rows:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(text))


def _addresses() -> Iterator[str]:
    yield ".SH ADDRESSES"
    yield _text(
        "p_vaddr is the device address: for HBM as the driver counts, for SBUF and PSUM the window of the core, with "
        "partitions at the stride that the note map gives. Instructions stand at addresses of neurontools' own from "
        "0x4e54000000000000 on: core times 2^40, engine (PE, Activation, Pool, DVE, SP) times 2^36, slot times 64. The "
        "note map names all of them."
    )


def _encoding() -> Iterator[str]:
    yield ".SH NOTES"
    yield _text(
        "The description of each note is one object of JSON in UTF-8. A field that has its default is left out. A "
        "reader gives a missing field, or one of another type, its default, and passes over fields that it does not "
        "know; so fields can be added without a new version. Times are picoseconds of the device, sizes bytes."
    )


def _notes() -> Iterator[str]:
    for kind in NOTES.values():
        yield f'.SS "{_text(kind.name)} ({kind.number:#x})"'
        yield _text(_first_paragraph(kind.record))
        yield from _fields(kind.record)


def _records() -> Iterator[str]:
    yield ".SH RECORDS"
    yield "Objects that stand inside notes."
    for record in _nested():
        yield f'.SS "{record.__name__}"'
        yield _text(_first_paragraph(record))
        yield from _fields(record)


def _nested() -> list[Any]:
    """Return the records that notes hold, in the order in which they are met."""
    found: dict[Any, None] = {}

    def look(hint: Any) -> None:
        for each in get_args(hint):
            look(each)
        if hasattr(hint, "_fields") and hint not in found:
            found[hint] = None
            for inner in get_type_hints(hint).values():
                look(inner)

    for kind in NOTES.values():
        for hint in get_type_hints(kind.record).values():
            look(hint)
    return list(found)


def _fields(record: type) -> Iterator[str]:
    defaults = record._field_defaults  # type: ignore[attr-defined]
    for name, kind, doc in fields_of(record):
        default = defaults[name]
        tail = "" if default in ("", (), {}) else f" Default: {_json(default)}."
        yield from (".TP", f"\\fB{_text(name)}\\fR ({_text(kind)})", _text(doc + tail))


def _json(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _damage() -> Iterator[str]:
    yield ".SH DAMAGE"
    yield _text(
        "A reader opens what begins with an ELF header of this kind and has notes of this owner, or the e_flags above. "
        "Parts that are cut off, missing or not understood are warnings. A version that it does not know is an error. "
        "The note checksums has a CRC-32 of every other part, which `neurontools core verify` compares and opening "
        "does not. Dumps from before it have none, and open as they did."
    )


def _first_paragraph(record: type) -> str:
    return " ".join((record.__doc__ or "").strip().split("\n\n")[0].split())
