"""`neurontools core ls`: parts of a dump, or dumps of a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from formats.core import Core, open_core
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.core.headline import headline
from neurontools.text.table import count, table

_MAGIC = b"\x7fELF"


class NoteRow(NamedTuple):
    """One note of a dump."""

    name: str
    bytes: int


class MemoryRow(NamedTuple):
    """What a dump holds of one memory."""

    space: Annotated[str, "SBUF, PSUM, HBM, instructions, or unknown."]
    core: Annotated[int, "Physical core; in HBM the number of the stack."]
    engine: Annotated[str, "Engine whose words these are; empty for memories."]
    segments: int
    bytes: int
    address: Annotated[int, "Address of the first segment."]


class Parts(NamedTuple):
    """The notes of a dump, and its memories."""

    notes: tuple[NoteRow, ...]
    memories: tuple[MemoryRow, ...]
    missing: Annotated[tuple[str, ...], "Notes that every dump has and this one lacks."]
    bytes: Annotated[int, "Size of the file."]


class DumpRow(NamedTuple):
    """One dump of a folder."""

    path: Annotated[str, "Path below the folder."]
    outcome: str
    status: Annotated[str, "Name of the NRT status."]
    code: Annotated[int, "Number of the NRT status."]
    level: str
    neff: str
    created: str
    headline: Annotated[str, "What happened, in one line."]
    bytes: int
    warnings: Annotated[int, "How many parts are missing, cut off or damaged."]


class Folder(NamedTuple):
    """The dumps in a folder and below, by path."""

    dumps: tuple[DumpRow, ...]
    others: Annotated[int, "Files that are no core dump of neurontools."]


def parts(core: Core) -> Parts:
    """Return the notes of a dump, and how much it holds of each memory."""
    found: dict[tuple[str, int, str], MemoryRow] = {}
    for segment in core.segments:
        key = segment.space or "unknown", segment.core, segment.engine
        row = found.get(key) or MemoryRow(*key, 0, 0, segment.address)
        found[key] = row._replace(segments=row.segments + 1, bytes=row.bytes + segment.size)
    return Parts(
        tuple(NoteRow(name, size) for name, size in core.notes.items()),
        tuple(found[key] for key in sorted(found)),
        core.missing,
        core.size,
    )


def dumps_in(folder: Path) -> Folder:
    """Return the dumps in a folder and below; what is none is counted."""
    found: list[DumpRow] = []
    others = 0
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(root, name)
            try:
                if path.is_file() and _begins_as_elf(path):  # a pipe would wait for somebody who writes into it
                    found.append(_dump(str(path.relative_to(folder)), open_core(str(path))))
                    continue
            except (OSError, FormatError):
                pass  # not ours, or nothing that can be read
            others += 1
    return Folder(tuple(found), others)


def _begins_as_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _dump(path: str, core: Core) -> DumpRow:
    dump, status = core.dump, core.status
    return DumpRow(path, core.outcome, status.name, status.code, core.level, core.neff.name, dump.created,
                   headline(core), core.size, len(core.warnings))  # fmt: skip


def view(name: str, found: Parts) -> list[str]:
    """Return the text of `core ls` for one dump."""
    lines = table(("note", "bytes"), found.notes)
    rows = [
        [m.space, f"{'' if m.space == 'HBM' else 'nc'}{m.core}", m.engine or "-", m.segments, m.bytes, hex(m.address)]
        for m in found.memories
    ]
    lines += ["", *table(("memory", "core", "engine", "segments", "bytes", "first address"), rows)]
    segments = sum(m.segments for m in found.memories)
    total = f"{count(len(found.notes), 'note')}, {count(segments, 'segment')}"
    return [*lines, "", f"{name}: {total}, {found.bytes:,} bytes"]


def folder_view(found: Folder) -> list[str]:
    """Return the text of `core ls` for a folder."""
    rows = [[d.path, d.level, d.outcome or "-", d.status or "-", d.headline] for d in found.dumps]
    total = f"{count(len(rows), 'core dump')}, {count(found.others, 'other file')}"
    return [*(table(("dump", "level", "outcome", "status", "what"), rows) if rows else []), total]


def ls(file: CoreFile, json: Json = False) -> None:
    """List the parts of a core dump, or the dumps in a folder.

    CORE may be a folder: then every core dump in it and below is one line, and what is no core dump of neurontools is
    passed over.
    """
    with report("core ls", json, file=file) as out:
        if file.is_dir():
            out.result = folder = dumps_in(file)
            out.lines = lambda: folder_view(folder)
            return
        core = open_core_file(file)
        out.result = found = parts(core)
        out.warn(*core.warnings)
        out.lines = lambda: view(file.name, found)


app = command_app(ls, Parts | Folder)
