"""The critical path of several ranks: a chain that changes ranks where one of them waited in a collective for another.

A collective of a rank ends because the last of those that it exchanges data with called it: the time from that call
belongs to the collective, what was before it to the rank that called last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from emulator.runtime.ranks import Met, Moved
from emulator.timeline.cause import Causes, Link, Node
from emulator.timeline.track import Owner, QueueTrack
from formats.named_tuple import NamedTuple

__all__ = ["RankLink", "contributors", "ranked_path"]


class RankLink(NamedTuple):
    """A link of the chain, and the rank whose time it is."""

    rank: int
    link: Link


def contributors(met: Met, rank: int, moves: Sequence[Moved]) -> set[int]:
    """Return the ranks of a collective that one of them waited for, as far as its CC-cores were watched.

    A transfer needs who sends, and who receives: that one must have room. `moves` are those of the collective's job, by
    their ends; without any all that called it count.
    """
    if not moves:
        return set(met.begun_ps)
    found, last = {rank}, met.ended_ps.get(rank, 0)
    for move in reversed(moves):
        both = {move.rank, *move.targets}
        if move.end_ps <= last and not found.isdisjoint(both):
            found |= both
    return found & set(met.begun_ps)


def ranked_path(causes: Mapping[int, Causes], collectives: Sequence[Met], moves: Sequence[Moved]) -> list[RankLink]:
    """Return the links from time 0 to the last completion of all ranks, the earliest first, without gap or overlap.

    `causes` are those of every rank that ran. UnsupportedError for a run with a seed.
    """
    last = max(
        ((track.completed[-1], -rank, track.owner, len(track) - 1) for rank, each in causes.items()
         for track in each.recorder.tracks.values() if len(track)), default=None, key=lambda one: one[:2],
    )  # fmt: skip
    if last is None:
        return []
    by_job: dict[int, list[Moved]] = {}
    for move in sorted(moves, key=lambda move: move.end_ps):
        by_job.setdefault(move.job, []).append(move)
    calls = {(rank, *call): met for met in collectives for rank, call in met.calls.items()}
    end_ps, rank, owner, row = last
    links = list(_back(causes, calls, by_job, -rank, Node("done", owner, row, end_ps)))
    links.reverse()
    return links


def _back(causes: Mapping[int, Causes], calls: Mapping[tuple[int, int, str, int], Met],
          by_job: Mapping[int, list[Moved]], rank: int, start: Node) -> Iterator[RankLink]:  # fmt: skip
    node: Node | None = start
    while node is not None:
        found = causes[rank].before(node)
        if found is None:
            return
        link, node = found
        here = rank
        if link.kind == "collective":
            met = calls.get((rank, *_call(causes[rank], link.owner, link.row)))
            if met is not None:
                rank, link, node = _joined(causes, met, by_job.get(met.job, ()), rank, link, node)
        if link.start_ps < link.end_ps:
            yield RankLink(here, link)


def _call(causes: Causes, owner: Owner, row: int) -> tuple[int, str, int]:
    track = causes.recorder.tracks[owner]
    assert isinstance(track, QueueTrack)
    return owner.core, owner.name, track.transfer[row]


def _joined(causes: Mapping[int, Causes], met: Met, moves: Sequence[Moved], rank: int, link: Link,
            node: Node) -> tuple[int, Link, Node]:  # fmt: skip
    """Return the rank whose call a collective waited for, the link from that call, and the call."""
    called = {each: met.begun_ps[each] for each in contributors(met, rank, moves) if met.begun_ps[each] < link.end_ps}
    latest = max(called, key=lambda each: (called[each], -each), default=rank)
    own = called.get(rank, link.start_ps)
    if latest == rank or called[latest] <= own or latest not in causes:
        return rank, link, node
    core, queue, number = met.calls[latest]
    place = causes[latest].transfer(number)
    if place is None or place[0] != Owner(core, queue, "queue"):
        return rank, link, node  # the partner stopped before its own end of it
    begun = called[latest]
    return (latest, link._replace(start_ps=begun, detail=f"rank {latest} came last"),
            Node("generate", place[0], place[1], begun))  # fmt: skip
