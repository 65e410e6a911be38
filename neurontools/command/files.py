"""Opening what a command line names: a file that is not there is told apart from one that cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from formats.errors import FormatError

if TYPE_CHECKING:
    from formats.neff import Neff

__all__ = ["need_file", "need_folder", "need_place", "open_neff_file", "read_text", "read_text_or_input"]

_INPUT = "-"  # what stands for standard input


def need_file(path: Path) -> Path:
    """Return `path`; FileNotFoundError when nothing is there, IsADirectoryError for a folder."""
    if path.is_file():  # the usual case, asked for once
        return path
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


def read_text(path: Path, largest: int | None = None) -> str:
    """Return the text of a file; FormatError for bytes that are not UTF-8, with their offset, and for too many."""
    with need_file(path).open("rb") as file:
        return _decoded(file.read() if largest is None else _bounded(file, path, largest), path)


def read_text_or_input(path: Path, largest: int) -> str:
    """Return the text of a file, or for "-" that of standard input; FormatError for more bytes of it than `largest`."""
    if str(path) != _INPUT:
        return read_text(path)
    return _decoded(_bounded(sys.stdin.buffer, path, largest), path)


def _bounded(file: BinaryIO, path: Path, largest: int) -> bytes:
    """Return the bytes of a file that may have no end, as a device or a pipe; FormatError for more than `largest`."""
    data = file.read(largest + 1)
    if len(data) > largest:
        what = "too much on standard input" if str(path) == _INPUT else "file is too large"
        raise FormatError(what, path=str(path), expected=f"at most {largest:,} bytes")
    return data


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("not text in UTF-8", path=str(path), offset=error.start) from None
