"""`neurontools core extract`: a dump as plain files."""

from __future__ import annotations

import json
import re
from itertools import count as count_from
from pathlib import Path
from typing import Annotated

import typer

from formats.core import NOTES, Core, Segment
from formats.errors import FormatError, NotFoundError
from formats.limits import DEFAULT_LIMITS
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import folder_whole, report
from neurontools.command.results import plain
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.core.disasm import view as listing
from neurontools.core.disasm import words
from neurontools.text.table import bytes_text, count

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Extracted(NamedTuple):
    """What was written."""

    folder: Path
    files: Annotated[dict[str, int], "Bytes of each file, by its path in the folder."]
    bytes: Annotated[int, "Bytes of all files."]


class _Place(NamedTuple):
    """Where the bytes of one segment lie in a memory's file, and what they are."""

    offset: int
    bytes: int
    address: int
    partition: int
    byte: int


class _Files:
    """A folder that is filled, with the sizes of the files in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes: dict[str, int] = {}

    def path(self, name: str) -> Path:
        """Return where a file goes, its folder made."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        self.path(name).write_bytes(data)
        self.sizes[name] = len(data)

    def put_json(self, name: str, value: object) -> None:
        """Write a value as JSON."""
        self.put(name, (json.dumps(plain(value), indent=1) + "\n").encode())


def fill(core: Core, folder: Path) -> dict[str, int]:
    """Write the parts of a dump into a folder and return their sizes by name."""
    files = _Files(folder)
    for kind in NOTES.values():
        record = core.note(kind.record)
        if record is not None:
            files.put_json(f"notes/{kind.name}.json", record)
    if core.log_tail:
        files.put("log.txt", ("\n".join(core.log_tail) + "\n").encode())
    _memories(core, files)
    _listings(core, files)
    _tensors(core, files)
    return files.sizes


def _memories(core: Core, files: _Files) -> None:
    """Write each memory's segments one behind the other, with a list of what stands where."""
    groups: dict[str, list[Segment]] = {}
    for segment in core.segments:
        if segment.space == "instructions":
            name = f"instructions/nc{segment.core}-{_safe(segment.engine)}"
        else:
            number = "" if segment.space == "HBM" else f"nc{segment.core}-"
            name = f"memory/{number}{_safe(segment.space or 'unknown')}"
        groups.setdefault(name, []).append(segment)
    for name, segments in groups.items():
        files.put(f"{name}.bin", b"".join(core.segments.data(segment) for segment in segments))
        offset, places = 0, []
        for each in segments:
            places.append(_Place(offset, each.size, each.address, each.partition, each.byte))
            offset += each.size
        files.put_json(f"{name}.json", places)


def _listings(core: Core, files: _Files) -> None:
    for stream in core.program.streams:
        last = max((pc + number for _, pc, _, _, number in stream.runs), default=0)
        if not last:
            continue
        try:
            found = words(core, stream.core, stream.engine, None, last + 1)
        except (FormatError, NotFoundError):  # of an engine that the dump does not show
            continue
        text = "\n".join(listing(found.engines)) + "\n"
        files.put(f"instructions/nc{stream.core}-{_safe(stream.engine)}.s", text.encode())


def _tensors(core: Core, files: _Files) -> None:
    """Write the tensors that the dump holds whole."""
    from neurontools.debugger import open_core_session  # deferred: start-up
    from neurontools.program.arrays import export_array  # deferred: start-up

    try:
        session = open_core_session(core)
    except FormatError:  # the dump does not tell which chip it is of
        return
    left = DEFAULT_LIMITS.stored_from(core.size)
    for row in session.info_tensors():
        if row.kind == "tile":
            continue
        stem = f"tensors/{f'nc{row.core}-' if row.core is not None else ''}{_safe(row.name)}"
        # Two names may be one where a file system has no room for what tells them apart.
        names = (f"{stem}{f'-{number}' if number > 1 else ''}.npy" for number in count_from(1))
        name = next(each for each in names if each not in files.sizes)
        if row.core is not None:
            session.focus(row.core)  # each core has its own tensor of a name
        try:
            found = session.tensor(row.name)
        except (FormatError, NotFoundError):  # a light dump has no memories
            continue
        left -= found.array.nbytes
        if left < 0:
            raise FormatError("its tensors are larger than what it holds", path=core.path, field="tensors",
                              expected=f"at most {DEFAULT_LIMITS.stored_from(core.size):,} bytes")  # fmt: skip
        export_array(files.path(name), found.array)
        files.sizes[name] = files.path(name).stat().st_size


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name).strip(".")[:80] or "unnamed"


def extract(
    file: CoreFile,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.", show_default=False)],
    json: Json = False,
) -> None:
    """Take a core dump apart into a folder.

    It gets notes/NAME.json, instructions/ncN-ENGINE.bin and .s, memory/ncN-SPACE.bin with .json that says what stands
    where in it, tensors/NAME.npy of those that the dump holds, and log.txt.
    """
    with report("core extract", json, file=file, folder=folder) as out:
        core = open_core_file(file)
        with folder_whole(folder) as beside:
            written = fill(core, beside)
        total = sum(written.values())
        out.result = Extracted(folder, written, total)
        out.warn(*core.warnings)
        out.lines = lambda: [f"{folder}: {count(len(written), 'file')}, {bytes_text(total)}"]


app = command_app(extract, Extracted)
