"""The bytes of a dump, read when they are asked for: a file that shrinks meanwhile is an error, never a signal."""

from __future__ import annotations

import os
from io import FileIO
from typing import Protocol
from weakref import finalize

from formats.errors import FormatError

__all__ = ["FileBytes", "GivenBytes", "StoredBytes"]


class StoredBytes(Protocol):
    """Bytes with a size that was found when they were opened."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        ...

    def part(self, first: int, behind: int) -> bytes | memoryview:
        """Return the bytes from one offset to another, as far as there are any, as a slice does."""
        ...


class GivenBytes:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size = memoryview(data), len(data)

    def part(self, first: int, behind: int) -> memoryview:
        return self._data[first:behind]


class FileBytes:
    """Bytes of a file, which stays open as long as the value lives.

    Nothing is mapped: reading a page of a map behind the end of a file that was cut off kills the process.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = FileIO(path)
            finalize(self, self._file.close)
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise FormatError(f"cannot be read: {(error.strerror or str(error)).lower()}", path=path) from None
        if not self.size:
            raise FormatError("file is empty", path=path, expected="an ELF core")

    def part(self, first: int, behind: int) -> bytes:
        wanted = min(behind, self.size) - first
        if wanted <= 0:
            return b""
        blocks: list[bytes] = []
        at = first
        try:
            while at < first + wanted:
                block = os.pread(self._file.fileno(), first + wanted - at, at)
                if not block:
                    raise FormatError("the file was cut off while it was read", path=self.path, offset=at,
                                      expected=f"{self.size} bytes")  # fmt: skip
                blocks.append(block)
                at += len(block)
        except OSError as error:
            raise FormatError(f"cannot be read: {(error.strerror or str(error)).lower()}", path=self.path) from None
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)
