"""Files that are written whole or not at all: beside their place first, then renamed there."""

from __future__ import annotations

import binascii
import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from formats.errors import FormatError

__all__ = ["clean_beside", "mark_of", "naming", "umask", "write_beside", "write_whole"]

# What a name beside a place ends with says who writes there: the machine, the process.  See `clean_beside`.
_HOST = f"{binascii.crc32(os.uname().nodename.encode()):08x}"  # `hashlib` and `socket` would cost every start 5 ms
_MARK = re.compile(r"\..*\.nt-([0-9a-f]{8})-(\d+)-[a-z0-9_]{8}(\..*)?", re.DOTALL)
_OLD_SECONDS = 24 * 3600


def umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def mark_of(name: str) -> str:
    """Return how the name begins under which this process writes beside a file or folder."""
    return f".{name[:32]}.nt-{_HOST}-{os.getpid()}-"


def clean_beside(folder: Path) -> None:
    """Remove what killed processes have left in a folder, half written.

    That is what bears the mark of a process of this machine that is no more, or of any and has not changed for a day.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] != "." or (found := _MARK.fullmatch(entry.name)) is None:
                continue
            with suppress(OSError):
                here = found[1] == _HOST
                old = time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD_SECONDS
                if old or (here and not _alive(int(found[2]))):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        os.unlink(entry.path)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def write_whole(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Give a path beside `path` to write to, and rename it to `path` when all went well.

    A link stays and what it names is replaced, with its mode and as far as possible its owner; a device or a pipe gets
    the bytes.  `durable` puts the bytes on the disk before the rename.  An OSError names `path`.
    """
    place = Path(os.path.realpath(path))
    replaced = place.is_file() or not place.exists()
    beside: Path | None = None
    try:
        if place.is_dir():
            raise IsADirectoryError(21, "is a folder, not a file", os.fspath(path))
        if replaced:
            clean_beside(place.parent)
        handle, name = tempfile.mkstemp(
            prefix=mark_of(place.name), suffix=place.suffix, dir=place.parent if replaced else None
        )
        os.close(handle)
        beside = Path(name)
        yield beside
        if durable:
            _to_disk(beside)
        if replaced:
            _like(beside, place)
            beside.replace(place)
        else:
            with beside.open("rb") as source, place.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise naming(error, place.parent, os.fspath(path)) from None
    finally:
        # After the rename nothing of that name is left; after an error or Ctrl-C the half-written file goes.
        if beside is not None:
            beside.unlink(missing_ok=True)


def naming(error: OSError, folder: Path, path: str) -> OSError:
    """Return an error of writing below a folder as one that names `path`, with a reason also where it has none.

    NumPy tells of a short write with a sentence and no number; where nothing is free on the disk that is why.
    """
    number = error.errno
    if number is None:
        with suppress(OSError):
            number = errno.EIO if os.statvfs(folder).f_bavail else errno.ENOSPC
    return OSError(number, error.strerror or (os.strerror(number) if number else str(error)), path)


def _like(beside: Path, place: Path) -> None:
    """Give a file the mode and the owner of the one it replaces; of a new one, those of an ordinary file."""
    try:
        old = place.stat()
    except FileNotFoundError:
        beside.chmod(0o666 & ~umask())  # mkstemp makes private files; a result is an ordinary one
        return
    new = beside.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(beside, old.st_uid, old.st_gid)
        except OSError:  # who may write a file may still not give one away
            with suppress(OSError):
                os.chown(beside, -1, old.st_gid)
    beside.chmod(old.st_mode & 0o777)


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
