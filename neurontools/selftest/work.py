"""Run the cases of a suite in this process, in several, or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from neurontools.command.workers import dask_client
from neurontools.selftest.rows import CaseRow

__all__ = ["Suite", "run_suite", "sampled"]

_PIECE = 25  # cases of one piece of work
_SAMPLE_STEP = 7_919  # prime: a sample is spread over the suite, and the same each time


class Suite(Protocol):
    """A module with the cases of a suite; loaded once in each process."""

    def version(self) -> str: ...
    def count(self) -> int: ...
    def name_of(self, number: int) -> str: ...
    def run(self, number: int, backend: str) -> CaseRow: ...


def sampled(count: int, sample: int | None) -> list[int]:
    """Return the numbers of the cases to run: all, or so many that are spread over the suite."""
    if sample is None or sample >= count:
        return list(range(count))
    step = _SAMPLE_STEP
    while count % step == 0:
        step += 2
    return sorted({number * step % count for number in range(sample)})


def run_suite(
    suite: str, backend: str, numbers: Sequence[int], *, jobs: int = 1, dask: str | None = None
) -> Iterator[list[CaseRow]]:
    """Yield the results of pieces of work as they come."""
    pieces = [tuple(numbers[at : at + _PIECE]) for at in range(0, len(numbers), _PIECE)]
    tasks = [(suite, backend, piece) for piece in pieces]
    if dask is not None:
        yield from _on_dask(tasks, dask)
    elif jobs <= 1 or len(tasks) < 2:
        yield from map(_piece, tasks)
    else:
        from multiprocessing import get_context  # deferred: start-up

        with get_context("spawn").Pool(min(jobs, len(tasks))) as pool:  # forking a process with jax in it deadlocks
            yield from pool.imap_unordered(_piece, tasks)
            pool.close()  # a worker that is ended by a signal prints a stack of jax's
            pool.join()


def _piece(task: tuple[str, str, tuple[int, ...]]) -> list[CaseRow]:
    name, backend, numbers = task
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    suite = cast("Suite", import_module(name))
    return [suite.run(number, backend) for number in numbers]


class _Client(Protocol):
    """As much of Dask's client as is used here."""

    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...
    def submit(self, function: Callable[..., list[CaseRow]], task: Any, *, pure: bool) -> Any: ...


def _on_dask(tasks: Sequence[tuple[str, str, tuple[int, ...]]], address: str) -> Iterator[list[CaseRow]]:
    client: _Client = dask_client(address, "--dask")
    with client:
        for future in [client.submit(_piece, task, pure=False) for task in tasks]:
            yield future.result()
