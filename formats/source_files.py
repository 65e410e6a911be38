"""The lines of source files that debug information names: a file must not choose which local file is shown.

A NEFF, a dump and a recording name any path they like. Only what lies below a folder that a person has chosen is read:
the folders given, the working folder, and those of NEURONTOOLS_SAFE_PATH.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from formats.errors import NotFoundError

__all__ = ["SAFE_PATH", "RefusedSourceError", "is_trusted", "read_source"]

SAFE_PATH = "NEURONTOOLS_SAFE_PATH"
# A source file is text of people; what is larger is something else.
_MOST_BYTES = 8 << 20
# Files that are no files: they tell about processes and devices, also where "/" is the working folder.
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev")))


class RefusedSourceError(NotFoundError):
    """A source file that is here and is not read; the message says why."""


def is_trusted(path: Path, folders: Iterable[Path] = ()) -> bool:
    """Return whether a path, its links followed, is below a folder that may be read; the root counts only by name."""
    try:
        real = path.resolve()
        if any(real.is_relative_to(folder) for folder in _NEVER):
            return False
        named = [Path(folder).resolve() for folder in os.environ.get(SAFE_PATH, "").split(os.pathsep) if folder]
        near = [folder.resolve() for folder in (Path.cwd(), *folders)]
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, links in a circle
        return False
    return any(real.is_relative_to(folder) for folder in (*named, *(each for each in near if each != each.parent)))


def read_source(file: str, trusted: Iterable[Path], searched: Iterable[Path] | None = None) -> list[str]:
    """Return the lines of a source file: as the program names it, or below `searched` by the ends of its path.

    Only files below `trusted` are read, and those are searched unless something else is given.  Raises NotFoundError;
    RefusedSourceError where a file of that name is here and must not be read.
    """
    trusted = tuple(trusted)
    refused = ""
    for path in _places(file, trusted if searched is None else tuple(searched)):
        try:
            if not os.path.lexists(path):
                continue
            if not is_trusted(path, trusted):
                refused = refused or "is outside the folders that may be read; --source-path DIR adds one"
                continue
            return _lines(path.resolve())
        except RefusedSourceError as error:
            refused = refused or str(error)
        except (OSError, ValueError) as error:
            refused = refused or (getattr(error, "strerror", None) or "cannot be read").lower()
    if refused:
        raise RefusedSourceError(f"source file {file} {refused}")
    raise NotFoundError(f"source file {file} is not here; --source-path DIR looks for it below DIR")


def _places(file: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    parts = PurePosixPath(file).parts
    ends = [Path(*parts[start:]) for start in range(1 if file.startswith("/") else 0, len(parts))]
    yield Path(file)
    yield from (folder / end for folder in folders for end in ends)


def _lines(path: Path) -> list[str]:
    """Return the lines of a regular file; what is looked at is what is read."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise RefusedSourceError("is not a regular file")
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise RefusedSourceError("is too large for a source file")
    return data.decode("utf-8", "replace").splitlines()
