"""What the commands of `neurontools compile cache` share: the option that names the cache, a row for an entry."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.compiler.cache_commands.entries import Entry, State

__all__ = ["CacheFolder", "EntryRow", "entry_row"]

CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache_dir",
        "--cache-dir",
        metavar="FOLDER",
        help="The cache; without it NEURON_COMPILE_CACHE_URL, then /var/tmp/neuron-compile-cache.",
        show_default=False,
    ),
]


class EntryRow(NamedTuple):
    """One entry of a compile cache."""

    key: Annotated[str, "MODULE_<hash of the graph>+<hash of the options>"]
    compiler: str
    state: State
    size: Annotated[int, "bytes of all files"]
    written: Annotated[str, "when its newest file was written, UTC"]


def entry_row(entry: Entry) -> EntryRow:
    """Return what a report tells of an entry."""
    written = datetime.fromtimestamp(int(entry.modified), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return EntryRow(entry.key, entry.compiler, entry.state, entry.size, written)
