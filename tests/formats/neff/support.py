"""What the NEFF tests share: the fixture, tars and files made by hand, and one walk over everything a file says."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from formats.engines import ENGINES
from formats.errors import NeuronError
from formats.neff import Header, Limits, Neff, open_neff
from formats.neff.hashing import hash_field
from formats.neff.tar import member_header, padding

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "neff"
# Files of a test are small: nothing honest inflates to 4 MiB.
SMALL = Limits(inflated=4 << 20, floor=1 << 20)


def fixture(name: str = "add_exp.neff") -> bytes:
    return (FIXTURES / name).read_bytes()


def contents(data: bytes) -> dict[str, bytes]:
    neff = open_neff(data)
    return {member.name: neff.read(member.name) for member in neff.members if member.kind == "file"}


def plain_tar(files: dict[str, bytes]) -> bytes:
    out = b"".join(member_header(n, len(c)) + c + bytes(padding(len(c))) for n, c in files.items())
    return out + bytes(1024)


def wrapped(data: bytes, like: bytes | None = None) -> bytes:
    """Return a NEFF with any data behind the fixture's header, its size and hash right."""
    header = Header.parse(like or fixture())
    new = header._replace(data_size=len(data), hash=hash_field("md5-words-swapped", [data]))
    return new.encode() + data


def bare(data: bytes | None = None) -> bytes:
    """Return a file's bare-tar twin."""
    neff = open_neff(data or fixture())
    return wrapped(neff.archive.tar.read(0, neff.archive.tar.size), data)


def changed(**members: bytes | Callable[[Any], Any] | None) -> bytes:
    """Return the fixture with members replaced: by bytes, by what a function makes of their JSON, or None to drop one.

    Keys are member names with `/` written `__` and `.` written `_DOT_`.
    """
    files = contents(fixture())
    for key, value in members.items():
        name = key.replace("__", "/").replace("_DOT_", ".")
        if value is None:
            del files[name]
        elif isinstance(value, bytes):
            files[name] = value
        else:
            document = json.loads(files[name])
            value(document)
            files[name] = json.dumps(document).encode()
    return wrapped(plain_tar(files))


def stdlib_tar(*members: tarfile.TarInfo, format: int = tarfile.USTAR_FORMAT, content: bytes = b"x") -> bytes:
    """Return a tar that the standard library wrote."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for member in members:
            if member.isreg():
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return out.getvalue()


def tarinfo(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def values(neff: Neff) -> list[object]:
    """Ask a file for everything it can say; the first damage raises."""
    found: list[object] = [neff.members, neff.target, neff.inputs, neff.outputs, neff.info]
    for graph in neff.subgraphs:
        found += [graph.definition, graph.tensors, graph.dma_blocks, graph.activation_info]
        for item in graph.activation_sets:
            found += [list(item.buckets), list(item.controls)]
        found += [graph.constant(v) for v in graph.variables.values() if v.file_name is not None]
        for engine in ENGINES:
            found += [word.fields for word in graph.streams[engine]]
            found += [graph.source_of(engine, pc) for pc in range(len(graph.stream_bytes(engine)) // 64 + 1)]
    return found


def exercise(data: bytes, deep: bool = True) -> str:
    """Read a file that may be damaged; return "read" or "refused", and let anything but a NeuronError through."""
    try:
        neff = open_neff(data, SMALL)
        if deep:
            neff.verify()
            values(neff)
        else:
            for member in neff.members:
                neff.read(member.name)
    except NeuronError as error:
        assert "\n" not in str(error) and str(error)
        return "refused"
    return "read"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
