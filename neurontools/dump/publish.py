"""Make dumps appear whole or not at all, with many ranks writing into one directory.

A rank fills a folder beside the dump directory.  The first rank's folder is renamed to the directory.  Later ones are
renamed into it under a hidden name: from that moment the dump is there, and readers here find it; then its files get
their documented names.  Whoever comes next finishes that for a rank that was killed in between.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from formats.whole_files import umask

__all__ = ["COMMITTED", "discard", "new_stage", "publish", "recover", "sweep"]

COMMITTED = ".committed-"
_STAGE_END = ".tmp"
_STALE_SECONDS = 3600


def new_stage(directory: Path) -> Path:
    """Return a new folder on the file system of `directory`, hidden beside it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    name = f".{directory.name[:64]}.{os.getpid()}."
    return Path(tempfile.mkdtemp(prefix=name, suffix=_STAGE_END, dir=directory.parent))


def discard(stage: Path) -> None:
    """Remove a folder and its files, as far as that is possible."""
    with suppress(OSError):
        for each in list(stage.iterdir()):
            with suppress(OSError):
                each.unlink()
        stage.rmdir()


def publish(stage: Path, directory: Path) -> None:
    """Make everything in `stage` appear in `directory` at once."""
    stage.chmod(0o777 & ~umask())
    for _attempt in range(16):
        try:
            os.rename(stage, directory)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        committed = directory / f"{COMMITTED}{stage.name.lstrip('.').removesuffix(_STAGE_END)}"
        try:
            os.rename(stage, committed)
        except FileNotFoundError:  # somebody removed the directory in between
            continue
        _name(committed, directory)
        return
    raise OSError(errno.EBUSY, "the dump directory comes and goes", str(directory))


def recover(directory: Path) -> int:
    """Give their names to the files of ranks that were killed while publishing; return how many ranks those were."""
    found = 0
    try:
        entries = [entry for entry in os.scandir(directory) if entry.name.startswith(COMMITTED)]
    except OSError:
        return 0
    for entry in entries:
        _name(Path(entry.path), directory)
        found += 1
    return found


def sweep(directory: Path) -> None:
    """Remove what ranks left that were killed before their dump was whole, an hour after they last wrote."""
    with suppress(OSError):
        for entry in list(os.scandir(directory.parent)):
            if entry.name.startswith(f".{directory.name[:64]}.") and entry.name.endswith(_STAGE_END):
                with suppress(OSError):
                    if time.time() - entry.stat().st_mtime > _STALE_SECONDS:
                        discard(Path(entry.path))


def _name(committed: Path, directory: Path) -> None:
    """Move files to their names, the manifest last: where it stands, the dump is complete."""
    try:
        names = sorted(os.listdir(committed), key=lambda name: (name.endswith(".json"), name))
    except FileNotFoundError:
        return
    for name in names:
        with suppress(FileNotFoundError):  # another process finishes the same work
            os.rename(committed / name, directory / name)
    with suppress(OSError):
        committed.rmdir()
