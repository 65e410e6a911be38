"""The data part of a NEFF: a gzip member or a bare tar, read when first needed and under caps."""

from __future__ import annotations

import os
import unicodedata
from functools import cached_property

from formats.errors import FormatError, NotFoundError
from formats.limits import Limits
from formats.named_tuple import NamedTuple
from formats.neff.gzipstream import GZIP_MAGIC, inflate
from formats.neff.header import Header
from formats.neff.tar import BLOCK, TarIndex, read_index

__all__ = ["Archive", "Blob", "FileBlob", "Member", "open_blob", "unsafe_names"]


class Member(NamedTuple):
    """One member of the archive: name, content bytes, and `file`, `directory`, `symbolic link` and so on."""

    name: str
    size: int
    kind: str = "file"


class Blob:
    """Bytes in memory, read by position."""

    def __init__(self, data: bytes | bytearray | memoryview, path: str | None = None) -> None:
        self._data = memoryview(data).cast("B")
        self.path = path

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer where the end comes first."""
        return bytes(self._data[offset : offset + length])


class FileBlob(Blob):
    """A file, read by position; no handle stays open between reads."""

    def __init__(self, path: str) -> None:
        super().__init__(b"", path)
        with _Reading(path), open(path, "rb") as handle:
            self._size = os.fstat(handle.fileno()).st_size

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        with _Reading(self.path), open(str(self.path), "rb") as handle:
            handle.seek(offset)
            return handle.read(length)


class _Reading:
    """Turn what the operating system says about a file into a FormatError."""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise FormatError(f"cannot be read ({error.strerror or error})", path=self.path) from None


def open_blob(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Blob:
    """Return a file by its path, or bytes, as something that can be read by position."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Blob(source)
    return FileBlob(os.fspath(source))


class Archive:
    """The members of one NEFF; nothing is read before it is asked for.

    A gzip archive is inflated once and kept; of a bare tar only headers and the wanted members are read.
    """

    def __init__(self, blob: Blob, header: Header, limits: Limits) -> None:
        self._blob, self._limits = blob, limits
        self._start, self._stated = header.header_size, header.data_size
        self.path = blob.path

    @property
    def available(self) -> int:
        """Return how many bytes of data there are, at most as many as the header states."""
        return max(0, min(self._stated, self._blob.size - self._start))

    @cached_property
    def compression(self) -> str:
        """Return "gzip" or "none"."""
        start = self._blob.read(self._start, BLOCK)
        if start.startswith(GZIP_MAGIC):
            return "gzip"
        # What is shorter than a block goes to the reader of tars as well, which says how much is missing.
        if start[257:262] == b"ustar" or len(start) < BLOCK:
            return "none"
        raise FormatError("archive is neither gzip nor tar", path=self.path, offset=self._start, got=start[:8].hex(" "))

    def data(self) -> bytes:
        """Return everything that the header counts as data: the archive and the zeros after it."""
        return self._blob.read(self._start, self.available)

    def beyond(self) -> bytes:
        """Return the bytes of the file after the data; none in a healthy file."""
        start = self._start + self.available
        return self._blob.read(start, self._blob.size - start)

    @cached_property
    def _inflated(self) -> tuple[Blob, int]:
        data = self.data()
        content, length = inflate(data, self._limits.inflated_from(len(data)), self.path)
        return Blob(content, self.path), length

    @property
    def tar(self) -> Blob:
        """Return the uncompressed archive."""
        if self.compression == "gzip":
            return self._inflated[0]
        return self._bare

    @cached_property
    def _bare(self) -> Blob:
        return _Window(self._blob, self._start, self.available)

    @property
    def stream_length(self) -> int:
        """Return the bytes of the gzip member; 0 for a bare tar."""
        return self._inflated[1] if self.compression == "gzip" else 0

    @cached_property
    def index(self) -> TarIndex:
        """Return where each member stands."""
        return read_index(self.tar, self._limits, self.path)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Return the members in archive order."""
        return tuple(Member(entry.name, entry.size, entry.kind) for entry in self.index.entries)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        # Of two members with one name the later wins, as it does when tar extracts them.
        return {entry.name: number for number, entry in enumerate(self.index.entries) if entry.kind == "file"}

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def size_of(self, name: str) -> int:
        """Return the bytes of a member."""
        return self.index.entries[self._number(name)].size

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises NotFoundError when there is none of that name.
        """
        entry = self.index.entries[self._number(name)]
        return self.tar.read(entry.data, entry.size)

    def _number(self, name: str) -> int:
        try:
            return self._by_name[name]
        except KeyError:
            where = f"{self.path}: " if self.path else ""
            raise NotFoundError(f"{where}no member {name!r}") from None


class _Window(Blob):
    """A part of another blob."""

    def __init__(self, blob: Blob, start: int, size: int) -> None:
        super().__init__(b"", blob.path)
        self._blob, self._start, self._length = blob, start, size

    @property
    def size(self) -> int:
        return self._length

    def read(self, offset: int, length: int) -> bytes:
        return self._blob.read(self._start + offset, max(0, min(length, self._length - offset)))


def unsafe_names(members: tuple[Member, ...]) -> list[tuple[str, str]]:
    """Return (name, reason) of every member that must not be written to a disk.

    Refused: absolute names, `..`, names that another system reads differently, links, devices, two members in one
    place, also where a disk does not tell capitals from small letters. Directories are harmless and are left out of
    unpacking.
    """
    found = []
    seen: set[str] = set()
    folders: set[str] = set()
    places: dict[str, str] = {}  # every file and folder by its name as the most careless disk knows it
    for member in members:
        reason = _unsafe(member)
        if reason is None and member.kind == "file":
            parts = member.name.split("/")
            parents = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
            if member.name in seen:
                reason = "a second member of that name"
            elif member.name in folders or parents & seen:
                reason = "a file and a folder of one name"
            for place in (member.name, *parents):
                if places.setdefault(_folded(place), place) != place:
                    reason = reason or "a name that differs from another one only in case"
            seen.add(member.name)
            folders |= parents
        if reason is not None:
            found.append((member.name, reason))
    return found


def _folded(name: str) -> str:
    # Twice, since folding may take a letter apart again: Unicode's canonical caseless match, as some file systems
    # compare.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _unsafe(member: Member) -> str | None:
    name = member.name
    if member.kind == "directory":
        name = name.rstrip("/")
    elif member.kind != "file":
        return f"a {member.kind}"
    if name.startswith("/"):
        return "an absolute name"
    parts = name.split("/")
    if ".." in parts:
        return "a name with '..'"
    if "" in parts or "." in parts:
        return "an empty part in the name"
    # a separator and a drive letter to Windows
    if "\\" in name or not name.isprintable() or name[1:2] == ":":
        return "a name that not every system reads alike"
    # PATH_MAX and NAME_MAX of Linux, in bytes; the depth is ours
    if len(name) > 4096 or len(parts) > 64 or any(len(part.encode()) > 255 for part in parts):
        return "a name that is too long"
    return None
