"""Trials side by side: each in a process of this machine, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from formats.named_tuple import NamedTuple
from neurontools.command.workers import dask_client
from neurontools.tuning.children import none_left
from neurontools.tuning.results import Order, Trial
from neurontools.tuning.trial import run_trial

__all__ = ["Workers", "workers"]

_AGAIN = 2  # times that a variant is tried again whose process was killed


class Workers(NamedTuple):
    """`submit` hands out work, `first` gives those of some futures that are done, one at least; `room` at a time."""

    room: int
    submit: Callable[..., Any]
    first: Callable[[set[Any]], set[Any]]


@contextmanager
def workers(jobs: int, cluster: str | None) -> Iterator[Workers]:
    """Give workers for a while: `jobs` processes, or those of a Dask scheduler at an address ("local": in here).

    Raises UnsupportedError where Dask is not installed, FormatError where no scheduler answers.
    """
    if cluster is None:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield Workers(jobs, pool.submit, _first)
            except BaseException:  # Ctrl-C above all: nobody waits for trials that nobody will look at
                with none_left():
                    pool.shutdown(cancel_futures=True)
                raise
            finally:  # whoever stops asking wants no more of them
                pool.shutdown(wait=False, cancel_futures=True)
        return
    client = dask_client(cluster, "--cluster", n_workers=jobs, threads_per_worker=1)
    from importlib import import_module  # deferred: start-up

    distributed: Any = import_module("distributed")
    with client:
        threads = sum(client.nthreads().values())  # a cluster has its own idea of how much goes on at a time

        def submit(function: Callable[..., Any], *arguments: Any) -> Any:
            return client.submit(function, *arguments, pure=False, retries=_AGAIN)

        def first(futures: set[Any]) -> set[Any]:
            return set(distributed.wait(futures, return_when="FIRST_COMPLETED").done)

        yield Workers(max(threads, 1), submit, first)


def _first(futures: set[Future[Any]]) -> set[Future[Any]]:
    return wait(futures, return_when=FIRST_COMPLETED).done


def persistent_trial(order: Order, values: Mapping[str, Any], explain: bool = False, limit_ps: int = 0) -> Trial:
    """Run a trial, again where its process was killed from outside."""
    # A signal says nothing of the variant: the machine may have run out of memory elsewhere.
    for _ in range(_AGAIN):
        found = run_trial(order, values, explain, limit_ps)
        if found.state != "died" or not found.message.startswith("signal"):
            return found
    return run_trial(order, values, explain, limit_ps)
