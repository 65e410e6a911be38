"""The critical path: the chain of words, transfers and semaphores that takes exactly as long as the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emulator.timeline.cause import Causes, Link, Node
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import Owner
from formats import isa
from formats.named_tuple import NamedTuple

__all__ = ["CriticalPath", "critical_path"]

_ARRAY = (isa.LoadWeights, isa.MatMul)


class CriticalPath(NamedTuple):
    """Links from time 0 to the last completion, the earliest first, without gap or overlap.

    `behind` are words that a matmul of the path, or a load, found in the Tensor engine's array: its link holds what
    they cost it, which is not told apart.
    """

    links: tuple[Link, ...]
    end_ps: int
    behind: frozenset[tuple[Owner, int]] = frozenset()

    @property
    def words(self) -> frozenset[tuple[Owner, int]]:
        """Return owner and row of every word and transfer whose own cost lies on the path, or in a link of it."""
        own = frozenset((link.owner, link.row) for link in self.links if link.kind not in ("semaphore", "order"))
        return own | self.behind

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
    return CriticalPath(tuple(links), end, frozenset(_behind(recorder, causes, links)))


def _behind(recorder: Recorder, causes: Causes, links: Iterable[Link]) -> set[tuple[Owner, int]]:
    """Return the words that were still in the array when one of the path was taken, and so on from those."""
    found: set[tuple[Owner, int]] = set()
    times = {owner: (track.start, track.completed) for owner, track in recorder.tracks.items()}
    for owner, row in {(link.owner, link.row) for link in links if link.owner.name == "PE" and link.kind != "data"}:
        start, completed = times[owner]
        while row and isinstance(causes.word(owner, row), _ARRAY) and completed[row - 1] > start[row]:
            row -= 1
            if (owner, row) in found:
                break
            found.add((owner, row))
    return found


def _back(causes: Causes, node: Node | None) -> Iterator[Link]:
    while node is not None:
        found = causes.before(node)
        if found is None:
            return
        link, node = found
        if link.start_ps < link.end_ps:
            yield link
