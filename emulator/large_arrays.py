"""Large arrays that need not be in memory whole: they lie in unnamed files, and pages of them come and go.

An input of gigabytes is made once, in parts (`Store`). Whoever has the array reads it; a device takes `own_copy`, which
shares all pages that it does not write, and lets go of those it has read (`Pages`). A process that is killed leaves
nothing behind: the files never have a name.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

__all__ = ["Borrowed", "Pages", "Store", "is_in_memory", "own_copy", "pages_of", "zeros"]

Bytes = npt.NDArray[np.uint8]

_LARGE = 1 << 28  # bytes of an array from which on it lies in a file
_PART = 1 << 24  # bytes written at a time
_SEEN = 1 << 28  # bytes of pages that are looked at before they are let go
_AROUND = 1 << 16  # bytes that Linux maps where one of them is looked at (fault_around_bytes)
# Linux forgets what was written to a private page that it is told of; another host takes pages when memory runs short.
_LET_GO: int | None = mmap.MADV_DONTNEED if sys.platform == "linux" else None


class _Mapping(mmap.mmap):
    """A mapping that knows the file whose whole it is; None: of zeros."""

    file: IO[bytes] | None = None


def _mapped(file: IO[bytes] | None, nbytes: int, writable: bool) -> Bytes:
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    flags = mmap.MAP_PRIVATE | (mmap.MAP_ANONYMOUS if file is None else 0)
    try:
        made = _Mapping(-1 if file is None else file.fileno(), nbytes, flags=flags, prot=protection)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no room to map {nbytes:,} bytes") from error
    made.file = file
    return np.frombuffer(made, np.uint8)


def _mapping_of(data: npt.NDArray[Any]) -> _Mapping | None:
    """Return the mapping that an array is the whole of, in order, None for any other."""
    if not data.flags.c_contiguous or not data.nbytes:
        return None
    held: object = data
    while isinstance(held, np.ndarray):
        held = held.base
    found = held.obj if isinstance(held, memoryview) else held
    return found if isinstance(found, _Mapping) and len(found) == data.nbytes else None


def _is_large(nbytes: int) -> bool:
    return nbytes >= _LARGE and hasattr(mmap, "MAP_PRIVATE")


def zeros(nbytes: int) -> Bytes:
    """Return zeros; large ones are read-only, and take no memory."""
    if not _is_large(nbytes):
        return np.zeros(nbytes, np.uint8)
    made = _mapped(None, nbytes, writable=True)  # so that the host says at once where it could never hold them
    made.flags.writeable = False
    return made


def _unnamed(nbytes: int) -> IO[bytes] | None:
    """Return a file without a name that has room for so many bytes, None where the host has none to spare."""
    # /tmp may be memory itself; /var/tmp is the place for large files (file-hierarchy(7)).
    where = "/var/tmp" if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK) else tempfile.gettempdir()
    file: IO[bytes] | None = None
    try:
        about = os.statvfs(where)
        if nbytes > about.f_bavail * about.f_frsize // 2:
            return None
        file = tempfile.TemporaryFile(dir=where, buffering=0)  # noqa: SIM115  (the mapping closes it)
        os.posix_fallocate(file.fileno(), 0, nbytes)
    except (AttributeError, OSError):  # macOS has no posix_fallocate
        if file is not None:
            file.close()
        return None
    return file


class Store:
    """An array of bytes that is written from its beginning to its end; a large one goes to a file, and is read-only.

    Where the host has no room for the file, it stays in memory.
    """

    def __init__(self, nbytes: int) -> None:
        self._nbytes, self._at = nbytes, 0
        self._memory: Bytes | None = None
        self._file: IO[bytes] | None = None
        if _is_large(nbytes):
            self._file = _unnamed(nbytes)
        if self._file is None:
            self._memory = np.empty(nbytes, np.uint8)

    def write(self, data: npt.NDArray[Any] | bytes) -> None:
        """Append bytes."""
        part = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.reshape(-1).view(np.uint8)
        if self._memory is not None:
            self._memory[self._at : self._at + part.size] = part
        elif self._file is not None:
            for start in range(0, part.size, _PART):
                rest = part[start : start + _PART].data
                while rest:
                    rest = rest[self._file.write(rest) :]
        self._at += part.size

    def array(self) -> Bytes:
        """Return the array, all of which must have been written."""
        if self._at != self._nbytes:
            raise ValueError(f"{self._at} of {self._nbytes} bytes were written")
        if self._memory is None:
            return _mapped(self._file, self._nbytes, writable=False)
        return self._memory


def is_in_memory(data: npt.NDArray[Any]) -> bool:
    """Return whether an array lies in no file of this module's."""
    return data.nbytes < _LARGE or _mapping_of(data) is None


def own_copy(data: npt.NDArray[Any]) -> Bytes | None:
    """Return a copy of an array of this module's that takes memory only where it is written; None for any other."""
    mapping = None if is_in_memory(data) else _mapping_of(data)
    if mapping is None or data.flags.writeable:
        return None
    return _mapped(mapping.file, data.nbytes, writable=True)


class Pages:
    """The pages of a copy that nobody has written yet: after so many bytes that somebody looks at, they are let go."""

    __slots__ = ("_mapping", "_seen")

    def __init__(self, mapping: _Mapping) -> None:
        self._mapping, self._seen = mapping, 0

    def looked_at(self, runs: int, run: int) -> None:
        """Count runs of so many bytes."""
        self._seen += runs * (run + _AROUND)
        if self._seen >= _SEEN:
            self.leave()

    def leave(self) -> None:
        """Let all pages go: who looks at one again is given it anew, as it is in the file."""
        self._seen = 0
        if _LET_GO is not None:
            self._mapping.madvise(_LET_GO)

    def left(self) -> None:
        """Be told that somebody writes them from here on: they stay where they are."""

    def read_only(self) -> Bytes:
        """Return the array for those who only read."""
        data = np.frombuffer(self._mapping, np.uint8)
        data.flags.writeable = False
        return data

    def writable(self) -> Bytes:
        """Return the array for those who write; no page may be let go after that."""
        return np.frombuffer(self._mapping, np.uint8)


class Borrowed:
    """Bytes of a caller that are not to be changed, in the place of `Pages`."""

    __slots__ = ("_data", "_moved")

    def __init__(self, data: Bytes, moved: Callable[[], object] | None) -> None:
        self._data, self._moved = data, moved

    def looked_at(self, runs: int, run: int) -> None:
        """Count nothing: they are in memory."""

    def leave(self) -> None:
        """Let nothing go."""

    def writable(self) -> Bytes:
        """Return a copy."""
        return self._data.copy()

    def left(self) -> None:
        """Tell that the copy has taken their place."""
        if self._moved is not None:
            self._moved()


def pages_of(data: npt.NDArray[Any]) -> Pages | None:
    """Return the pages of a copy that lies in a file and that nobody has written yet, None for any other array."""
    mapping = None if is_in_memory(data) else _mapping_of(data)
    return None if mapping is None or mapping.file is None or not data.flags.writeable else Pages(mapping)
