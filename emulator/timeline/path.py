"""The critical path: the chain of words, transfers and semaphores that takes exactly as long as the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from emulator.timeline.cause import Causes, Link, Node
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import Owner

__all__ = ["CriticalPath", "critical_path"]


class CriticalPath(NamedTuple):
    """Links from time 0 to the last completion, the earliest first, without gap or overlap."""

    links: tuple[Link, ...]
    end_ps: int

    @property
    def words(self) -> frozenset[tuple[Owner, int]]:
        """Return owner and row of every word and transfer whose own cost lies on the path."""
        return frozenset((link.owner, link.row) for link in self.links if link.kind not in ("semaphore", "order"))

    def by_kind(self) -> dict[str, int]:
        """Return picoseconds by kind of link, the longest first."""
        found: dict[str, int] = {}
        for link in self.links:
            found[link.kind] = found.get(link.kind, 0) + link.duration_ps
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def critical_path(recorder: Recorder, causes: Causes | None = None) -> CriticalPath:
    """Return the critical path of what a recorder saw; UnsupportedError for a run with a seed."""
    causes = Causes(recorder) if causes is None else causes
    last = max((track for track in recorder.tracks.values() if len(track)), key=lambda t: t.completed[-1], default=None)
    if last is None:
        return CriticalPath((), 0)
    end = last.completed[-1]
    links = list(_back(causes, Node("done", last.owner, len(last) - 1, end)))
    links.reverse()
    return CriticalPath(tuple(links), end)


def _back(causes: Causes, node: Node | None) -> Iterator[Link]:
    while node is not None:
        found = causes.before(node)
        if found is None:
            return
        link, node = found
        if link.start_ps < link.end_ps:
            yield link
