"""Opening what a command line names: a file that is not there is told apart from one that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["need_file", "need_folder", "need_place", "open_neff_file", "read_text"]


def need_file(path: Path) -> Path:
    """Return `path`; FileNotFoundError when nothing is there, IsADirectoryError for a folder."""
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder, not a file", str(path))
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    return path


def need_folder(path: Path) -> Path:
    """Return `path` when it is a folder; FileNotFoundError otherwise."""
    if not path.is_dir():
        raise FileNotFoundError(2, "no such folder", str(path))
    return path


def need_place(path: Path) -> Path:
    """Return `path` when a file can have that name; FileNotFoundError without its folder, IsADirectoryError for one."""
    need_folder(path.parent)
    if path.is_dir():
        raise IsADirectoryError(21, "is a folder, not a file", str(path))
    return path


def open_neff_file(path: Path) -> Neff:
    """Return the NEFF that a path names."""
    from formats.neff import open_neff  # deferred: start-up

    return open_neff(need_file(path))


def read_text(path: Path) -> str:
    """Return the text of a file; bytes that are not UTF-8 are a FormatError with their offset."""
    try:
        return need_file(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("not text in UTF-8", path=str(path), offset=error.start) from None
