"""Take a core dump apart into plain files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.core import NOTES
from formats.errors import FormatError, NotFoundError
from neurontools.render.core import plain

if TYPE_CHECKING:
    from formats.core import Core

__all__ = ["extract"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def extract(core: Core, folder: Path) -> dict[str, int]:
    """Write the parts of a dump into a folder and return their sizes by name."""
    written: dict[str, int] = {}

    def put(name: str, data: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written[name] = len(data)

    for kind in NOTES.values():
        record = core.note(kind.record)
        if record is not None:
            put(f"notes/{kind.name}.json", (json.dumps(plain(record), indent=1) + "\n").encode())
    if core.log_tail:
        put("log.txt", ("\n".join(core.log_tail) + "\n").encode())
    _memories(core, put)
    _listings(core, put)
    _tensors(core, folder, written)
    return written


def _memories(core: Core, put: Any) -> None:
    """Write each memory's segments one behind the other, with a list of what stands where."""
    groups: dict[str, list[Any]] = {}
    for segment in core.segments:
        if segment.space == "instructions":
            name = f"instructions/nc{segment.core}-{_safe(segment.engine)}"
        else:
            core_part = "" if segment.space == "HBM" else f"nc{segment.core}-"
            name = f"memory/{core_part}{_safe(segment.space or 'unknown')}"
        groups.setdefault(name, []).append(segment)
    for name, segments in groups.items():
        put(f"{name}.bin", b"".join(core.segments.data(segment) for segment in segments))
        at, places = 0, []
        for segment in segments:
            places.append({"offset": at, "bytes": segment.size, "address": segment.address,
                           "partition": segment.partition, "byte": segment.byte})  # fmt: skip
            at += segment.size
        put(f"{name}.json", (json.dumps(places, indent=1) + "\n").encode())


def _listings(core: Core, put: Any) -> None:
    from neurontools.render.core_disasm import lines, words

    for stream in core.program.streams:
        last = max((pc + count for _, pc, _, _, count in stream.runs), default=0)
        if not last or not any((e.core, e.engine) == (stream.core, stream.engine) for e in core.engines):
            continue
        try:
            found = words(core, stream.core, stream.engine, None, last + 1)
        except (FormatError, NotFoundError):
            continue
        put(f"instructions/nc{stream.core}-{_safe(stream.engine)}.s", ("\n".join(lines(found)) + "\n").encode())


def _tensors(core: Core, folder: Path, written: dict[str, int]) -> None:
    """Write the tensors that the dump holds whole."""
    from emulator.session import open_core_session
    from neurontools.arrays import export_array

    try:
        session = open_core_session(core)
    except FormatError:
        return
    for row in session.info_tensors():
        name = f"tensors/{f'nc{row.core}-' if row.core is not None else ''}{_safe(row.name)}.npy"
        if name in written or row.kind == "tile":
            continue
        try:
            found = session.tensor(f"{row.name}")
        except (FormatError, NotFoundError):
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        export_array(path, found.array)
        written[name] = path.stat().st_size


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name).strip(".")[:80] or "unnamed"
