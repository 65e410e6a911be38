"""Ranks as lines: the table of them, and which wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neurontools.debugger.view import place_of
from neurontools.text.table import duration, table

if TYPE_CHECKING:
    from neurontools.debugger.rank_results import RankRow

__all__ = ["rank_lines"]


def rank_lines(rows: tuple[RankRow, ...]) -> Iterator[str]:
    """Return ranks as lines."""
    yield from table(
        ["", "rank", "state", "time", "events", "run", "wait", "done", "at", "waits for", "line"],
        [
            [
                "*" if r.selected else "",
                r.rank,
                r.outcome,
                duration(r.time_ps),
                r.events,
                r.runs,
                r.waits,
                r.done,
                f"nc{r.core} {r.engine} pc {r.pc}" if r.engine else None,
                r.waits_for or None,
                None if r.source is None else place_of(r.source),
            ]
            for r in rows
        ],
    )
