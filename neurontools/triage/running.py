"""Run a triage for the command line: rows to a file, progress to the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neurontools.output import write_whole
from neurontools.triage.rank import Rank
from neurontools.triage.summary import Summary
from neurontools.triage.work import default_jobs, triage

__all__ = ["run"]

_EVERY = 500


def run(places: Sequence[str], jobs: int | None, dask: str | None, rows: Path | None) -> Summary:
    """Return the summary of the dumps below the places; each rank goes to `rows` as it comes."""
    with _rows(rows) as each:
        return triage(places, jobs=default_jobs() if jobs is None else jobs, dask=dask, each=each, progress=_progress())


@contextmanager
def _rows(path: Path | None) -> Iterator[Callable[[Rank], None] | None]:
    if path is None:
        yield None
        return
    with write_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield lambda rank: print(json.dumps(rank.as_dict()), file=file)


def _progress() -> Callable[[int], None] | None:
    if not sys.stderr.isatty():
        return None
    shown = 0

    def tell(ranks: int) -> None:
        nonlocal shown
        if ranks - shown >= _EVERY:
            shown = ranks
            print(f"\r{ranks:,} ranks", end="\r", file=sys.stderr, flush=True)

    return tell
