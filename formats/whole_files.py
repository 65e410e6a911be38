"""Files that are written whole or not at all: beside their place first, then renamed there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formats.errors import FormatError

__all__ = ["umask", "write_beside", "write_whole"]


def umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def write_whole(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Give a path beside `path` to write to, and rename it to `path` when all went well.

    A link stays and what it names is replaced; a device or a pipe gets the bytes.  `durable` puts the bytes on the
    disk before the rename.  An OSError names `path`.
    """
    place = Path(os.path.realpath(path))
    replaced = place.is_file() or not place.exists()
    beside: Path | None = None
    try:
        if place.is_dir():
            raise IsADirectoryError(21, "is a folder, not a file", os.fspath(path))
        handle, name = tempfile.mkstemp(
            prefix=f".{place.name[:32]}.", suffix=place.suffix, dir=place.parent if replaced else None
        )
        os.close(handle)
        beside = Path(name)
        yield beside
        if durable:
            _to_disk(beside)
        if replaced:
            beside.chmod(0o666 & ~umask())  # mkstemp makes private files; a result is an ordinary one
            beside.replace(place)
        else:
            with beside.open("rb") as source, place.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        # After the rename nothing of that name is left; after an error or Ctrl-C the half-written file goes.
        if beside is not None:
            beside.unlink(missing_ok=True)


def write_beside(path: str | os.PathLike[str], data: bytes) -> None:
    """Write the bytes of a whole file.  Raises FormatError where it cannot be written; then nothing of it is left."""
    try:
        with write_whole(path) as beside:
            beside.write_bytes(data)
    except OSError as error:
        raise FormatError(f"cannot be written ({error.strerror or error})", path=os.fspath(path)) from None


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
