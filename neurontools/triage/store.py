"""Where dumps lie: folders of this machine, or anything that fsspec can list (extra `fleet`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, TypedDict

from formats.errors import FormatError, UnsupportedError
from formats.named_tuple import NamedTuple
from formats.nrt.names import parse_directory, parse_file
from neurontools.dump.publish import COMMITTED
from neurontools.version import install_with

__all__ = ["DumpFile", "dump_directories", "files", "is_url", "read"]

_DEPTH = 4  # folders below the one that was named


class DumpFile(NamedTuple):
    """One file of a dump directory; `identity` is equal for names that share their bytes."""

    name: str
    path: str
    identity: object


class _FileSystem(Protocol):
    """As much of fsspec's file systems as is used here."""

    def exists(self, path: str) -> bool: ...
    def ls(self, path: str, detail: Literal[True]) -> list[_Listed]: ...
    def open(self, path: str, mode: Literal["rb"]) -> BinaryIO: ...
    def walk(self, path: str, maxdepth: int) -> Iterator[tuple[str, list[str], list[str]]]: ...


class _Listed(TypedDict):
    """One entry of a folder, as fsspec lists it."""

    name: str
    type: str


def is_url(place: str) -> bool:
    """Return whether a place is read through fsspec."""
    return "://" in place


def dump_directories(place: str) -> Iterator[str]:
    """Yield the dump directories at or below a place: named as documented, or holding files that are.

    Raises FileNotFoundError where there is nothing, FormatError where the place cannot be listed.
    """
    if is_url(place):
        yield from _remote_directories(place)
        return
    if not Path(place).is_dir():
        raise FileNotFoundError(2, "no such folder", place)
    yield from _local_directories(place, _DEPTH)


def _local_directories(place: str, depth: int) -> Iterator[str]:
    below: list[str] = []
    mine = parse_directory(os.path.basename(place.rstrip("/"))) is not None
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(COMMITTED):
                    mine = True
                elif entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        below.append(entry.path)
                elif not mine:
                    mine = parse_file(entry.name) is not None
    except OSError as error:
        if depth == _DEPTH:
            raise FormatError(f"cannot be listed: {(error.strerror or str(error)).lower()}", path=place) from None
        mine = True  # one folder among many: whoever reads it is told, and the others count
    if mine:
        yield place
    elif depth:
        for each in sorted(below):
            yield from _local_directories(each, depth - 1)


def files(directory: str) -> Iterator[DumpFile]:
    """Yield the files of a dump directory that have documented names."""
    if is_url(directory):
        system, path = _remote(directory)
        for item in system.ls(path, detail=True):
            name = item["name"].rstrip("/").rpartition("/")[2]
            if item["type"] == "file" and parse_file(name) is not None:
                yield DumpFile(name, f"{directory.partition('://')[0]}://{item['name']}", item["name"])
        return
    folders = [directory]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith(COMMITTED):
                        folders.append(entry.path)
                    elif parse_file(entry.name) is not None and entry.is_file():
                        yield DumpFile(entry.name, entry.path, entry.inode())
        except FileNotFoundError:  # its files got their names in the meantime
            continue


def read(path: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a file; raises OSError."""
    if is_url(path):
        system, inner = _remote(path)
        with system.open(inner, "rb") as remote:
            return remote.read(limit)
    with open(path, "rb") as file:
        return file.read(limit)


def _remote_directories(place: str) -> Iterator[str]:
    system, path = _remote(place)
    if not system.exists(path):
        raise FileNotFoundError(2, "no such folder", place)
    scheme = place.partition("://")[0]
    for folder, _below, names in system.walk(path, maxdepth=_DEPTH):
        name = folder.rstrip("/").rpartition("/")[2]
        if parse_directory(name) is not None or any(parse_file(each) is not None for each in names):
            yield f"{scheme}://{folder}"


def _remote(place: str) -> tuple[_FileSystem, str]:
    try:
        from fsspec.core import url_to_fs  # deferred: optional fsspec
    except ImportError:
        raise UnsupportedError(f"{place}: URLs need fsspec: {install_with('fleet')}") from None
    try:
        system, path = url_to_fs(place)
    except (ValueError, ImportError) as error:
        raise UnsupportedError(f"{place}: {' '.join(str(error).split())}") from None
    return system, path
