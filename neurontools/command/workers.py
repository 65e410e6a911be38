"""What commands hand work to besides this process: processors of this machine, workers of a Dask cluster."""

from __future__ import annotations

import os
from typing import Any

from formats.errors import FormatError, UnsupportedError
from neurontools.version import install_with

__all__ = ["dask_client", "default_jobs"]

_SECONDS = 10  # until a scheduler has to have answered


def default_jobs() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def dask_client(address: str, option: str, **local: Any) -> Any:
    """Return Dask's client of a scheduler at an address, or of one in this process for "local" (as `local` says).

    Raises UnsupportedError where Dask is not installed, FormatError where no scheduler answers.
    """
    try:
        from distributed import Client  # deferred: optional distributed
    except ImportError:
        raise UnsupportedError(f"{option} needs Dask: {install_with('fleet')}") from None
    connect: Any = Client
    try:
        if address == "local":
            return connect(processes=False, dashboard_address=None, **local)
        return connect(address=address, timeout=_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise FormatError(f"no Dask scheduler answers: {' '.join(str(error).split())}", path=address) from None
