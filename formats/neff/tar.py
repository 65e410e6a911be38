"""The tar archive inside a NEFF: a bounded reader that keeps every byte accountable, and the headers of new members.

`tarfile` is not used: packing an archive byte for byte needs the header blocks as they were (real files end their
numbers with a blank and a NUL, which `tarfile` does not write), and hostile archives must fail with one kind of error.
"""

from __future__ import annotations

from typing import Protocol

from formats.errors import FormatError
from formats.limits import Limits
from formats.named_tuple import NamedTuple
from formats.neff.fields import printable

__all__ = [
    "BLOCK",
    "BLOCKING",
    "SHORT_NAME",
    "TarEntry",
    "TarIndex",
    "member_header",
    "padding",
    "read_index",
    "resized_header",
]

BLOCK = 512
# What tar, and so the compiler, fills its files up to: a blocking factor of 20 (formats.md 2.2).
BLOCKING = 20 * BLOCK
SHORT_NAME = 100  # bytes of a name that needs no folders apart in ustar
_KINDS = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "character device",
    b"4": "block device",
    b"5": "directory",
    b"6": "fifo",
}
_GNU_LONG_NAME, _GNU_LONG_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"
# A name or a pax record is a few hundred bytes; more is an attack on the parser.
_MAX_EXTENSION = 64 << 10


class ByteSource(Protocol):
    """Anything that gives bytes by position."""

    @property
    def size(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes: ...


class TarEntry(NamedTuple):
    """One member of an archive.

    `start` is where its header blocks begin, `data` where its content does; both are bytes from the start of the tar.
    """

    name: str
    size: int
    kind: str
    start: int
    data: int


class TarIndex(NamedTuple):
    """The members of an archive and where what follows them begins; `closed` is whether there was an end block."""

    entries: tuple[TarEntry, ...]
    trailer: int
    closed: bool


def padding(size: int) -> int:
    """Return the bytes that fill `size` up to whole blocks."""
    return -size % BLOCK


def read_index(source: ByteSource, limits: Limits, path: str | None = None) -> TarIndex:
    """Return the members of a tar in archive order, links and devices included (nothing is followed).

    Knows ustar names, GNU long names and pax `path` and `size` records. Raises FormatError for damaged headers,
    members that reach over the end, and more or bigger members than `limits` allow.
    """
    entries: list[TarEntry] = []
    at = start = 0
    override: dict[str, str] = {}
    while at + BLOCK <= source.size:
        block = source.read(at, BLOCK)
        if not block.strip(b"\0"):
            return TarIndex(tuple(entries), at, True)
        _check(block, at, path)
        size = _number(block[124:136], at + 124, path)
        flag = block[156:157]
        if flag in (_GNU_LONG_NAME, _GNU_LONG_LINK, _PAX, _PAX_GLOBAL):
            override.update(_extension(source, flag, at, size, path))
            at += BLOCK + size + padding(size)
            continue
        name = override.pop("path", None) or _name(block)
        if "size" in override:
            size = _decimal(override.pop("size"), at, path)
        kind = _KINDS.get(flag, f"type {flag!r}")
        # links and devices may state a size, but no content follows them
        if kind != "file":
            size = 0
        if size > limits.member_size:
            raise FormatError(
                "member is over the size limit",
                path=path,
                offset=at,
                field=name,
                expected=f"at most {limits.member_size} bytes",
                got=size,
            )
        if at + BLOCK + size > source.size:
            raise FormatError(
                "archive is cut off inside a member",
                path=path,
                offset=at,
                field=name,
                expected=f"{size} bytes",
                got=max(0, source.size - at - BLOCK),
            )
        entries.append(TarEntry(name, size, kind, start, at + BLOCK))
        if len(entries) > limits.members:
            raise FormatError("archive has too many members", path=path, expected=f"at most {limits.members}")
        at = start = min(at + BLOCK + size + padding(size), source.size)
        override.clear()
    if not entries:
        raise FormatError("archive holds no member", path=path, offset=0, got=f"{source.size} bytes")
    return TarIndex(tuple(entries), start, False)


def _blank_header() -> bytes:
    """Return the header block of a regular file as neuronx-cc writes it, without name, size and checksum.

    Mode 0664, nobody, mtime 0. Source: formats.md 2.2.
    """
    block = bytearray(BLOCK)
    for offset, value in (
        (100, b"000664 \0"),
        (108, b"001750 \0"),
        (116, b"001750 \0"),
        (136, b"00000000000 "),
        (148, b" " * 8),  # the checksum is over blanks in its place
        (156, b"0"),
        (257, b"ustar\x0000"),
        (265, b"nobody"),
        (297, b"nobody"),
        (329, b"000000 \0"),
        (337, b"000000 \0"),
    ):
        block[offset : offset + len(value)] = value
    return bytes(block)


_BLANK = _blank_header()
_BLANK_SUM = sum(_BLANK)


def member_header(name: str, size: int) -> bytes:
    """Return the header block of a regular file as neuronx-cc writes it.

    Raises FormatError for a name that ustar cannot hold. Source: formats.md 2.2.
    """
    raw = name.encode("utf-8", "surrogateescape")
    prefix = b""
    if len(raw) > SHORT_NAME:
        # ustar has 155 bytes for the folders in front and 100 for the rest, without the slash between them
        cut = raw.rfind(b"/", 0, 156)
        prefix, raw = raw[:cut], raw[cut + 1 :]
        if cut < 1 or not 0 < len(raw) <= SHORT_NAME:
            raise FormatError("member name is too long for ustar", field=name)
    digits = _octal(size)
    checksum = b"%06o\0 " % (_BLANK_SUM + sum(raw) + sum(prefix) + sum(digits))
    block = b"%b%b%b%b%b%b%b" % (raw.ljust(SHORT_NAME, b"\0"), _BLANK[100:124], digits, _BLANK[135:148], checksum,
                                 _BLANK[156:345], prefix)  # fmt: skip
    return block.ljust(BLOCK, b"\0")


def _octal(size: int) -> bytes:
    """Return the eleven octal digits of a member's size."""
    if size >= 8 << 30:
        raise FormatError("member is too big for ustar", got=size)
    return b"%011o" % size


def resized_header(block: bytes, size: int) -> bytes:
    """Return a header block with another member size and the checksum that goes with it."""
    new = bytearray(block)
    # The number keeps the terminator that the archive's writer uses.
    new[124:135] = _octal(size)
    new[148:156] = b" " * 8
    new[148:156] = b"%06o\0 " % sum(new)
    return bytes(new)


def _check(block: bytes, at: int, path: str | None) -> None:
    stored = _number(block[148:156], at + 148, path)
    # the checksum is over a block whose own checksum field is blank
    actual = sum(block) - sum(block[148:156]) + 8 * 32
    if stored != actual:
        raise FormatError("tar header is damaged", path=path, offset=at, field="checksum", expected=stored, got=actual)


def _number(field: bytes, at: int, path: str | None) -> int:
    if field[0] & 0x80:  # GNU's base 256, for sizes of 8 GiB and more
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        raise FormatError("not an octal number", path=path, offset=at, got=digits)
    return int(digits, 8)


def _decimal(text: str, at: int, path: str | None) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise FormatError("not a decimal number", path=path, offset=at, field="pax size", got=repr(text[:40]))
    return int(text)


def _name(block: bytes) -> str:
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0":
        prefix = block[345:500].split(b"\0", 1)[0]
        if prefix:
            name = prefix + b"/" + name
    return printable(name.decode("utf-8", "backslashreplace"))


def _extension(source: ByteSource, flag: bytes, at: int, size: int, path: str | None) -> dict[str, str]:
    """Return what a GNU or pax extension says of the next member: its `path`, its `size`."""
    if size > _MAX_EXTENSION or at + BLOCK + size > source.size:
        raise FormatError("tar extension is too long or cut off", path=path, offset=at, got=size)
    content = source.read(at + BLOCK, size)
    if flag == _GNU_LONG_NAME:
        return {"path": printable(content.split(b"\0", 1)[0].decode("utf-8", "backslashreplace"))}
    return _pax_records(content, at, path) if flag == _PAX else {}


def _pax_records(content: bytes, at: int, path: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    here, end = 0, len(content.rstrip(b"\0"))
    while here < end:
        blank = content.find(b" ", here, here + 8)
        digits = content[here : max(blank, here)]
        if not digits.isdigit() or not blank + 1 < here + int(digits) <= end:
            raise FormatError("pax record is damaged", path=path, offset=at)
        record, here = content[blank + 1 : here + int(digits)], here + int(digits)
        key, _, value = record.rstrip(b"\n").partition(b"=")
        if key in (b"path", b"size"):
            found[key.decode()] = printable(value.decode("utf-8", "backslashreplace"))
    return found
