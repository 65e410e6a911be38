"""Whether an emulated run is to be dumped when it fails: asked before every run, so it must cost nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from formats.nrt.names import DIRECTORY_VARIABLE, PREFIX_VARIABLE

if TYPE_CHECKING:
    from neurontools.dump.hook import DumpObserver

__all__ = ["dump_observers", "rank_observers"]


def dump_observers(name: str = "", directory: Path | None = None) -> list[DumpObserver]:
    """Return the observer that has a dump collected, in a list; an empty one where no dump is wanted."""
    if directory is None and not os.environ.get(DIRECTORY_VARIABLE) and not os.environ.get(PREFIX_VARIABLE):
        return []
    from neurontools.dump.hook import DumpObserver, DumpSettings  # deferred: start-up

    settings = DumpSettings.of(os.environ, directory)
    return [] if settings is None else [DumpObserver(settings, name)]


def rank_observers(name: str, directory: Path | None, places: Sequence[tuple[int, int]]) -> list[list[DumpObserver]]:
    """Return for every rank what `dump_observers` does; their dumps go to one directory, as those of one execution.

    `places` are the device and the first core of each.
    """
    if not dump_observers(name, directory):
        return [[] for _ in places]
    from datetime import UTC, datetime  # deferred: start-up

    from neurontools.dump.call import CLUSTER_VARIABLE  # deferred: start-up
    from neurontools.dump.hook import DumpedRank, DumpObserver, DumpSettings  # deferred: start-up

    settings, now = DumpSettings.of(os.environ, directory), datetime.now(UTC)
    cluster = os.environ.get(CLUSTER_VARIABLE) or f"{os.getpid() & 0xFFFF:04x}{int(now.timestamp() * 1e3):012x}"
    environ = {**os.environ, CLUSTER_VARIABLE: cluster}
    assert settings is not None
    return [[DumpObserver(settings, name, environ, DumpedRank(rank, place, now))] for rank, place in enumerate(places)]
