"""A NEFF as a folder and back: `pack(unpack(f))` gives the same bytes, gzip stream included.

`unpack` writes the members, and beside them a folder `.neff` with what the members do not hold: the header, the tar's
own bytes (header blocks, padding, end), and how the gzip stream was made. Where no setting of zlib makes the stream
again, the stream itself is kept; `pack` uses it while no member changed, and compresses anew once one did.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.archive import unsafe_names
from formats.neff.fields import Fields, load
from formats.neff.gzipstream import DeflateParameters, find_parameters, gzip_member, header_length
from formats.neff.hashing import HASH_VARIANTS, hash_field, matching_variant
from formats.neff.header import Header
from formats.neff.tar import BLOCK, BLOCKING, member_header, padding, resized_header
from formats.whole_files import write_beside

if TYPE_CHECKING:
    from formats.neff.reader import Neff

__all__ = ["MANIFEST", "PackResult", "pack", "unpack"]

MANIFEST = ".neff/manifest.json"
_FOLDER, _HEADER, _BLOCKS, _TRAILER, _STREAM, _TAIL, _BEYOND = (
    ".neff",
    ".neff/header.bin",
    ".neff/tar_blocks.bin",
    ".neff/tar_end.bin",
    ".neff/stream.gz",
    ".neff/tail.bin",
    ".neff/beyond.bin",
)
_SCHEMA = "neurontools.neff.unpacked/1"


class PackResult(NamedTuple):
    """What `pack` did: bytes written, and `method`.

    "unchanged" and "unchanged, stored stream" mean that the file is the original again, "changed" that it was
    compressed or stored anew. "recompressed" means that nothing changed, yet this zlib makes another stream than the
    one that `unpack` used.
    """

    size: int
    method: str


def unpack(neff: Neff, folder: str | os.PathLike[str]) -> None:
    """Write the members of a NEFF, and what `pack` needs beside them, into a new or empty folder.

    Raises FormatError, before anything is written, for members that must not be written: absolute names, `..`, links,
    devices, two members in one place, and anything over the limits the file was opened with.
    """
    root = Path(folder)
    for name, reason in unsafe_names(neff.members):
        raise FormatError("member is refused", path=neff.path, field=repr(name), got=reason)
    files = [member.name for member in neff.members if member.kind == "file"]
    for name in files:
        if name.split("/", 1)[0] == _FOLDER:
            raise FormatError(
                "member is refused", path=neff.path, field=repr(name), got=f"the folder {_FOLDER} is taken"
            )
    parts = _parts(neff)
    try:
        root.mkdir(exist_ok=True)
        if any(root.iterdir()):
            raise FormatError("folder is not empty", path=str(root))
        for name in files:
            _create(root / name, neff.read(name))
        for name, content in parts.items():
            _create(root / name, content)
    except OSError as error:
        raise FormatError(f"cannot be written ({error.strerror or error})", path=str(error.filename or root)) from None


def pack(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> PackResult:
    """Write a folder that `unpack` made as a NEFF; the file appears whole or not at all.

    Members may have been changed, added (they come last, by name) or removed. Raises FormatError for a folder without
    its manifest, and for links in it.
    """
    data, result = _packed(Path(folder))
    write_beside(out, data)
    return result


def _parts(neff: Neff) -> dict[str, bytes]:
    """Return the files of the folder `.neff`."""
    archive = neff.archive
    data, tar, index = archive.data(), archive.tar, archive.index
    parts = {_HEADER: neff.header_bytes, _TRAILER: tar.read(index.trailer, tar.size), _BEYOND: archive.beyond()}
    blocks, members = [], []
    for number, entry in enumerate(index.entries):
        after = index.entries[number + 1].start if number + 1 < len(index.entries) else index.trailer
        lead, pad = (
            tar.read(entry.start, entry.data - entry.start),
            tar.read(entry.data + entry.size, after - entry.data - entry.size),
        )
        blocks += [lead, pad]
        members.append(
            {
                "name": entry.name,
                "kind": entry.kind,
                "size": entry.size,
                "lead": len(lead),
                "pad": len(pad),
                "sha256": hashlib.sha256(tar.read(entry.data, entry.size)).hexdigest(),
            }
        )
    parts[_BLOCKS] = b"".join(blocks)
    length = archive.stream_length
    parts[_TAIL] = data[length:] if length else b""
    manifest: dict[str, object] = {
        "schema": _SCHEMA,
        "hash": matching_variant(neff.header.hash, data),
        "compression": archive.compression,
        "data_sha256": hashlib.sha256(data).hexdigest(),
    }
    if length:
        stream = data[:length]
        parameters = find_parameters(stream, tar.read(0, tar.size))
        manifest["gzip_header"] = stream[: header_length(stream)].hex()
        manifest["deflate"] = None if parameters is None else parameters._asdict()
        if parameters is None:
            parts[_STREAM] = stream
    manifest["members"] = members
    parts = {name: content for name, content in parts.items() if content}
    parts[MANIFEST] = json.dumps(manifest, indent=1).encode() + b"\n"
    return parts


def _packed(root: Path) -> tuple[bytes, PackResult]:
    manifest = load(_file(root, MANIFEST), str(root / MANIFEST))
    if manifest.text("schema", "") != _SCHEMA:
        raise manifest.fail("schema", _SCHEMA)
    header = _file(root, _HEADER)
    tar, changed = _tar(root, manifest)
    beyond = _optional(root, _BEYOND)
    if manifest.text("compression") == "gzip":
        data, method = _compressed(root, manifest, tar, changed)
    else:
        data, method = tar, "changed" if changed else "unchanged"
    if not changed and hashlib.sha256(data).hexdigest() != manifest.text("data_sha256"):
        method = "recompressed"
    if method in ("changed", "recompressed"):
        header = _renewed(header, data, manifest)
        beyond = b""
    whole = header + data + beyond
    return whole, PackResult(len(whole), method)


def _tar(root: Path, manifest: Fields) -> tuple[bytes, bool]:
    """Return the archive, and whether anything in it differs from the one that was unpacked."""
    blocks = _optional(root, _BLOCKS)
    out = bytearray()
    at = 0
    changed = False
    known = set()
    for item in manifest.objects("members"):
        name, lead_size, pad_size = item.text("name"), item.integer("lead"), item.integer("pad")
        lead, pad = blocks[at : at + lead_size], blocks[at + lead_size : at + lead_size + pad_size]
        at += lead_size + pad_size
        if len(lead) < BLOCK or len(pad) != pad_size:
            raise FormatError("tar blocks are cut off", path=str(root / _BLOCKS), field=name)
        if item.text("kind") != "file":
            out += lead + pad
            continue
        known.add(name)
        path = _inside(root, name)
        if not path.is_file():
            changed = True
            continue
        content = _file(root, name)
        if len(content) != item.integer("size") or hashlib.sha256(content).hexdigest() != item.text("sha256"):
            changed = True
            # A pax record before the header may state the old size; the plain header states the new one alone.
            lead = resized_header(lead if len(lead) == BLOCK else member_header(name, 0), len(content))
            pad = bytes(padding(len(content)))
        out += lead + content + pad
    for name in sorted(_members_on_disk(root) - known):
        changed = True
        content = _file(root, name)
        out += member_header(name, len(content)) + content + bytes(padding(len(content)))
    return bytes(out + _optional(root, _TRAILER)), changed


def _compressed(root: Path, manifest: Fields, tar: bytes, changed: bool) -> tuple[bytes, str]:
    if not changed and (root / _STREAM).is_file():
        return _file(root, _STREAM) + _optional(root, _TAIL), "unchanged, stored stream"
    # The compiler's own level serves where the original's parameters are not known.
    parameters = DeflateParameters(1)
    if manifest.raw.get("deflate") is not None:
        item = manifest.object("deflate")
        parameters = DeflateParameters(item.integer("level"), item.integer("memory"), item.integer("strategy"))
    try:
        stream = gzip_member(bytes.fromhex(manifest.text("gzip_header")), tar, parameters)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"manifest does not tell how to compress ({error})", path=manifest.where) from None
    tail = _optional(root, _TAIL)
    # Zeros behind the stream are filling, which fits the new length; anything else is kept as it was.
    if changed and (len(stream) + len(tail)) % BLOCKING and not any(tail):
        tail = bytes(-len(stream) % BLOCKING)
    return stream + tail, "changed" if changed else "unchanged"


def _renewed(raw: bytes, data: bytes, manifest: Fields) -> bytes:
    """Return the header for other data: size and hash follow, everything else stays."""
    header = Header.parse(raw, manifest.where)
    variant = manifest.optional_text("hash")
    if variant is None:  # the hash fitted before in no known way: use the one that the version calls for
        variant = "sha256" if header.pkg_version == 1 else HASH_VARIANTS[0]
    new = header._replace(data_size=len(data), hash=hash_field(variant, [data])).encode()
    # Bytes 16 to 23 are data_size, 172 to 203 the hash (formats.md 2.1). Everything else is copied as it stood, also
    # what texts have after their NUL, which a `Header` does not keep.
    return raw[:16] + new[16:24] + raw[24:172] + new[172:204] + raw[204:]


def _members_on_disk(root: Path) -> set[str]:
    found = set()
    for folder, folders, files in os.walk(root):
        if Path(folder) == root and _FOLDER in folders:
            folders.remove(_FOLDER)
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                found.add(path.relative_to(root).as_posix())
            elif not stat.S_ISDIR(mode):
                raise FormatError("only files and folders can be packed", path=str(path))
    return found


def _inside(root: Path, name: str) -> Path:
    """Return a member's place; a manifest that somebody edited must not lead out of the folder."""
    if name.startswith("/") or ".." in name.split("/"):
        raise FormatError("manifest names a member outside the folder", path=str(root / MANIFEST), field=repr(name))
    return root / name


def _file(root: Path, name: str) -> bytes:
    path = root / name
    try:
        if path.is_symlink():
            raise FormatError("only files and folders can be packed", path=str(path))
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror or error})", path=str(path)) from None


def _optional(root: Path, name: str) -> bytes:
    return _file(root, name) if (root / name).exists() else b""


def _create(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as handle:
        handle.write(content)
