"""Lines of source files that debug info names, where the files are on this machine."""

from __future__ import annotations

from pathlib import Path

from formats.errors import NotFoundError
from formats.source_files import RefusedSourceError, read_source

__all__ = ["SourceLines"]


class SourceLines:
    """Read lines of the files that a program names, each file once; `refused` takes why one was not read.

    Files are looked for below `folders`, and those below `near`, where the program is, are read where they are named.
    """

    def __init__(self, folders: list[Path], near: Path) -> None:
        self.folders, self.near = folders, near
        self.refused: list[str] = []
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return a line without its blanks, or None where the file is not here or has no such line."""
        lines = self._files.get(file)
        if lines is None:
            lines = self._files[file] = self._read(file)
        return lines[number - 1].strip() or None if 0 < number <= len(lines) else None

    def _read(self, file: str) -> list[str]:
        try:
            return read_source(file, (*self.folders, self.near), self.folders)
        except RefusedSourceError as error:
            self.refused.append(str(error))
        except NotFoundError:
            pass
        return []
