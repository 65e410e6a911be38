"""Ranks on the workers of a Dask cluster: a site on each, asked for as long as a run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from emulator.runtime.site import Site, SiteOrder
from emulator.runtime.spread import Asker
from emulator.runtime.spread_ranks import Sites
from formats.errors import FormatError, NeuronError
from formats.named_tuple import NamedTuple
from neurontools.command.workers import dask_client
from neurontools.version import __version__

__all__ = ["FleetError", "RemoteSite", "fleet"]


class FleetError(NeuronError):
    """Says that a worker is lost: its ranks cannot be had again in the middle of a run."""

    kind = "worker"


class _Failed(NamedTuple):
    """An error of a site, which crosses to here as a value."""

    error: NeuronError


class RemoteSite:
    """A site as a worker holds it: an actor of Dask."""

    def __init__(self, order: SiteOrder) -> None:
        self._site: Site | None = None
        self._order = order

    def ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Return what a method of the site gives, or the error it raised."""
        try:
            if self._site is None:  # not in __init__, whose errors Dask gives back as those of a future
                self._site = Site(self._order)
            return getattr(self._site, name)(*arguments)
        except NeuronError as error:
            return _Failed(error)


class _Answer:
    """What a worker will have answered."""

    def __init__(self, future: Any, worker: str) -> None:
        self._future, self._worker = future, worker

    def result(self) -> Any:
        """Wait for it; FleetError where the worker is gone."""
        try:
            found = self._future.result()
        except (OSError, TimeoutError, ValueError) as error:  # ValueError is what Dask raises for a lost actor
            raise _lost(self._worker, error) from None
        if isinstance(found, _Failed):
            raise found.error
        return found


def _lost(worker: str, error: BaseException) -> FleetError:
    said = " ".join(str(error).split())
    return FleetError(f"the worker {worker} was lost in the middle of the run{': ' + said if said else ''}")


# An expression, because a worker without the package cannot take a function of it either.
_VERSION = "__import__('neurontools.version', fromlist=['__version__']).__version__"


def _need_the_same(client: Any, address: str) -> None:
    """Raise FormatError where a worker does not have this version of the package."""
    for worker, found in sorted(client.run(eval, _VERSION, on_error="return").items()):
        if found != __version__:
            has = f"neurontools {found}" if isinstance(found, str) else " ".join(str(found).split())
            raise FormatError(f"the worker {worker} has not what runs here", path=address,
                              expected=f"neurontools {__version__}", got=has)  # fmt: skip


@contextmanager
def fleet(address: str) -> Iterator[tuple[int, Sites]]:
    """Give the number of workers of a scheduler at an address ("local": in here), and what makes sites on them.

    Raises UnsupportedError where Dask is not installed, FormatError where no scheduler answers or it has no workers.
    """
    client = dask_client(address, "--cluster", n_workers=2, threads_per_worker=1)
    with client:
        # Sorted: which ranks are where must not depend on the order in which workers came.
        workers: list[str] = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise FormatError("the Dask scheduler has no workers", path=address)
        _need_the_same(client, address)

        @contextmanager
        def sites(orders: Sequence[SiteOrder]) -> Iterator[Sequence[Asker]]:
            made = [
                # Not pure: two equal orders are two sites.
                client.submit(RemoteSite, order, actor=True, workers=[worker], allow_other_workers=False, pure=False)
                for order, worker in zip(orders, workers, strict=False)
            ]
            actors = []
            for future, worker in zip(made, workers, strict=False):
                try:
                    actors.append(future.result())
                except (OSError, TimeoutError, RuntimeError) as error:
                    raise _lost(worker, error) from None
            yield [_asker(actor, worker) for actor, worker in zip(actors, workers, strict=False)]

        yield len(workers), sites


def _asker(actor: Any, worker: str) -> Callable[..., _Answer]:
    def ask(name: str, *arguments: Any) -> _Answer:
        try:
            return _Answer(actor.ask(name, arguments), worker)
        except (OSError, TimeoutError, ValueError) as error:
            raise _lost(worker, error) from None

    return ask
