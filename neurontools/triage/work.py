"""Read dump directories with several processes, or on a Dask cluster, and add them up as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import chain
from typing import Protocol

from neurontools.command.workers import dask_client
from neurontools.triage import store
from neurontools.triage.rank import Rank
from neurontools.triage.reading import ranks_of, read_rank
from neurontools.triage.summary import Summary

__all__ = ["add_up"]

_CHUNK = 64  # ranks of one piece of work
_AHEAD = 8  # pieces per worker that are ready before it asks
Piece = tuple[tuple[str, list[store.DumpFile]], ...]
Progress = Callable[[int], None]


class _Future(Protocol):
    """A result that a cluster will have."""

    def result(self) -> list[Rank]: ...


class _Client(Protocol):
    """As much of Dask's client as is used here."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...
    def scheduler_info(self) -> Mapping[str, Sized]: ...
    def submit(self, function: Callable[[Piece], list[Rank]], piece: Piece, *, pure: bool) -> _Future: ...


def add_up(
    places: Iterable[str],
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
    each: Callable[[Rank], None] | None = None,
) -> Summary:
    """Read every dump below the places and return what they say together.

    `jobs` is the number of processes; `dask` the address of a scheduler instead, or "local".  `each` is called with
    every rank as it comes, `progress` with the number of ranks so far.  Raises FileNotFoundError for a place that is
    not there, UnsupportedError where an extra package is missing.
    """
    summary = Summary()
    pieces = _pieces(chain.from_iterable(store.dump_directories(place) for place in places), summary)
    for ranks in _map(pieces, jobs, dask):
        summary.add(ranks)
        if each is not None:
            for rank in ranks:
                each(rank)
        if progress is not None:
            progress(summary.ranks)
    summary.close()
    return summary


def _map(pieces: Iterator[Piece], jobs: int, dask: str | None) -> Iterator[list[Rank]]:
    if dask is not None:
        return _on_dask(pieces, dask)
    return map(_read, pieces) if jobs <= 1 else _with_processes(pieces, jobs)


def _pieces(directories: Iterator[str], summary: Summary) -> Iterator[Piece]:
    """Yield pieces of work, lists of files only; ranks of one directory stay in order."""
    piece: list[tuple[str, list[store.DumpFile]]] = []
    for directory in directories:
        try:
            every = list(ranks_of(directory))
            summary.directories += 1
            for files in every:
                piece.append((directory, files))
                if len(piece) >= _CHUNK:
                    yield tuple(piece)
                    piece = []
        except OSError as error:
            summary.warn(f"{directory}: {(error.strerror or str(error)).lower()}")
    if piece:
        yield tuple(piece)


def _read(piece: Piece) -> list[Rank]:
    return [read_rank(directory, files) for directory, files in piece]


def _with_processes(pieces: Iterator[Piece], jobs: int) -> Iterator[list[Rank]]:
    """Yield results in the order of the pieces, whatever process was faster: reports must not depend on chance."""
    from multiprocessing import get_context  # deferred: start-up

    room = threading.Semaphore(jobs * _AHEAD)  # the pool's feeder would run through all directories at once

    def fed() -> Iterator[Piece]:
        for piece in pieces:
            room.acquire()
            yield piece

    first = next(pieces, None)
    second = None if first is None else next(pieces, None)
    if first is None or second is None:  # too little work for a pool
        yield from map(_read, () if first is None else (first,))
        return
    with get_context("spawn").Pool(jobs) as pool:
        for ranks in pool.imap(_read, chain((first, second), fed())):
            yield ranks
            room.release()


def _on_dask(pieces: Iterator[Piece], address: str) -> Iterator[list[Rank]]:
    """Yield results as a Dask cluster gives them, in the order of the pieces."""
    client: _Client = dask_client(address, "--dask")
    with client:
        ahead = max(_AHEAD, _AHEAD * len(client.scheduler_info()["workers"]))
        waiting: list[_Future] = []
        for piece in pieces:
            waiting.append(client.submit(_read, piece, pure=False))
            if len(waiting) >= ahead:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
