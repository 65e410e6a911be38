"""Whether an emulated run is to be dumped when it fails: asked before every run, so it must cost nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from formats.nrt.names import DIRECTORY_VARIABLE, PREFIX_VARIABLE

if TYPE_CHECKING:
    from neurontools.dump.hook import DumpObserver

__all__ = ["dump_observers"]


def dump_observers(name: str = "", directory: Path | None = None) -> list[DumpObserver]:
    """Return the observer that has a dump collected, in a list; an empty one where no dump is wanted."""
    if directory is None and not os.environ.get(DIRECTORY_VARIABLE) and not os.environ.get(PREFIX_VARIABLE):
        return []
    from neurontools.dump.hook import DumpObserver, DumpSettings  # deferred: start-up

    settings = DumpSettings.of(os.environ, directory)
    return [] if settings is None else [DumpObserver(settings, name)]
