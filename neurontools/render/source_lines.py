"""Lines of source files that debug info names, where the files are on this machine."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

__all__ = ["SourceLines"]

# A source file is text of people; what is larger is something else.
_MOST_BYTES = 8 << 20


class SourceLines:
    """Read lines by the paths that a file names: as they stand, or below folders by the ends of the paths."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self._files: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return a line without its blanks, or None where the file is not here or has no such line."""
        lines = self._files.get(file)
        if lines is None:
            lines = self._files[file] = self._read(file)
        return lines[number - 1].strip() or None if 0 < number <= len(lines) else None

    def _read(self, file: str) -> list[str]:
        parts = PurePosixPath(file).parts
        ends = [Path(*parts[start:]) for start in range(1 if file.startswith("/") else 0, len(parts))]
        for path in (Path(file), *(folder / end for folder in self.folders for end in ends)):
            try:
                if path.is_file() and path.stat().st_size <= _MOST_BYTES:
                    return path.read_text(encoding="utf-8", errors="replace").splitlines()
            except (OSError, ValueError):  # a name that no file can have, a folder that cannot be read
                continue
        return []
