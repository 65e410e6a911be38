"""Profiles for other viewers: Perfetto, Chrome's trace viewer, and tables in the words of the public schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline

__all__ = ["chrome_lines", "csv_lines", "write"]


def chrome_lines(timeline: Timeline) -> Iterator[str]:
    """Return the lines of a JSON trace for chrome://tracing and compatible viewers."""
    from neurontools.profile.export import chrome  # deferred: start-up
    from neurontools.profile.export.scene import scene_of  # deferred: start-up

    return chrome.lines(scene_of(timeline))


def csv_lines(timeline: Timeline) -> Iterator[str]:
    """Return the Instruction table of the public schema as comma-separated values."""
    from neurontools.profile.export import tables  # deferred: start-up

    return tables.csv_lines(tables.instructions(timeline))


def write(form: str, timeline: Timeline, path: Path) -> None:
    """Write a profile in a format of one file: perfetto, chrome or csv."""
    if form == "perfetto":
        from neurontools.profile.export import perfetto  # deferred: start-up
        from neurontools.profile.export.scene import scene_of  # deferred: start-up

        path.write_bytes(perfetto.encode(scene_of(timeline)))
        return
    lines = chrome_lines(timeline) if form == "chrome" else csv_lines(timeline)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(line + "\n" for line in lines)
