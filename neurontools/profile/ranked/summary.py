"""The summary of a run on several ranks: ranks, collectives, links, and the critical path over all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from neurontools.profile.ranked.results import (
    CollectiveTimes,
    LinkTimes,
    RankLinkRow,
    RankPath,
    RankShare,
    RanksProfile,
    RankTimes,
)
from neurontools.profile.results import LineRow, PathLine, Share
from neurontools.profile.rows import SHOWN, Timeline
from neurontools.profile.summary import line_text, lines_of, ns, percent, summarise, union_ps

if TYPE_CHECKING:
    from emulator.machine.ranks.overlap import Overlap, Span
    from emulator.runtime.ranks import Met, RankedResult
    from emulator.timeline.measure_ranks import MeasuredRanks
    from emulator.timeline.ranked import RankLink

__all__ = ["RankTimelines", "rank_lines", "summarise_ranks"]

_TOP = 20


class RankTimelines(NamedTuple):
    """A measured run on several ranks with what is worked out of it once: timelines by rank, the critical path."""

    result: RankedResult
    ranks: Mapping[int, Timeline]
    overlaps: Mapping[tuple[int, int], Overlap]  # by collective and rank
    computed: Mapping[int, list[Span]]
    path: tuple[RankLink, ...]

    @classmethod
    def of(cls, measured: MeasuredRanks) -> RankTimelines:
        """Return the timelines of a run."""
        from emulator.machine.ranks.overlap import overlap_of, union  # deferred: start-up
        from emulator.timeline.ranked import ranked_path  # deferred: start-up

        found, ranks = measured.result, {rank: Timeline(one) for rank, one in measured.ranks.items()}
        computed = {rank: union(one.compute) for rank, one in measured.activity.items()}
        overlaps = {
            (number, rank): overlap_of(rank, measured.activity[rank], met.begun_ps[rank], ended, found.trigger_ps,
                                       computed[rank])
            for number, met in enumerate(found.collectives) for rank, ended in met.ended_ps.items()
        }  # fmt: skip
        causes = {rank: one.causes for rank, one in ranks.items()}
        return cls(found, ranks, overlaps, computed, tuple(ranked_path(causes, found.collectives, found.moves)))

    @property
    def end_ps(self) -> int:
        """Return when the last rank ended."""
        return max(one.end_ps for one in self.ranks.values())


def summarise_ranks(timelines: RankTimelines, name: str, rank: int | None = None) -> RanksProfile:
    """Return the profile of a run without what takes further runs; `rank` is whose details it has, else the slowest."""
    result, ranks, end = timelines.result, timelines.ranks, timelines.end_ps
    path = _path(timelines)
    critical = {share.rank: share.ns for share in path.ranks}
    rows = tuple(_rank(timelines, one, critical.get(one, 0.0)) for one in range(len(result.results)))
    # Of ranks that a collective lets end together, the one that others waited for is the slowest.
    slowest = min(ranks, key=lambda one: (-rows[one].time_ns, rows[one].late_ns, one))
    fastest = min(ranks, key=lambda one: (rows[one].time_ns, -rows[one].late_ns, one))
    shown = slowest if rank is None else rank
    collectives = tuple(_collective(timelines, number, met) for number, met in enumerate(result.collectives))
    covered = sum(one.hidden_ps for one in timelines.overlaps.values())
    outcomes = {row.outcome for row in rows}
    return RanksProfile(
        name, True, ranks[shown].device.target.name, result.instance, result.nodes,
        next(one for one in ("fault", "hang", "finished") if one in outcomes), ns(end), slowest, fastest,
        max(percent(row.exposed_ns, ns(end)) for row in rows),
        percent(covered, sum(one.time_ps for one in timelines.overlaps.values())),
        rows, collectives, _links(timelines), path, rank_lines(timelines), shown, summarise(ranks[shown], name),
    )  # fmt: skip


def _rank(timelines: RankTimelines, rank: int, critical_ns: float) -> RankTimes:
    result, place = timelines.result, timelines.result.places[rank]
    timeline = timelines.ranks.get(rank)
    if timeline is None:
        return RankTimes(rank, *place, "absent", *(0.0,) * 7, {})
    # A rank that hangs waits to the end of the run.
    end = timelines.end_ps if timeline.device.hang is not None else timeline.end_ps
    computed = timelines.computed[rank]
    mine = [(met.begun_ps[rank], met.ended_ps.get(rank, end), _last_call(met, end)) for met in result.collectives
            if rank in met.begun_ps]  # fmt: skip
    within = union_ps((begin, until) for begin, until, _ in mine)
    both = union_ps([*((begin, until) for begin, until, _ in mine), *computed])
    late = sum(min(last, until) - begin for begin, until, last in mine)
    busy: dict[str, float] = {}
    for track in timeline.engines:
        name = SHOWN.get(track.owner.name, track.owner.name)
        taken = sum(min(free, end) - start for start, free in zip(track.start, track.free, strict=False))
        busy[name] = max(busy.get(name, 0.0), percent(taken, end))
    moved = union_ps(span for track in timeline.queues if not track.collective
                     for span in zip(track.start, track.completed, strict=True))  # fmt: skip
    return RankTimes(rank, *place, timeline.device.outcome, ns(end), ns(union_ps(computed)), ns(moved), ns(within),
                     ns(both - union_ps(computed)), ns(late), critical_ns, busy)  # fmt: skip


def _last_call(met: Met, end: int) -> int:
    """Return when the last rank of a collective called it: never, that is up to the end, where one did not."""
    return end if len(met.begun_ps) < len(met.group) else max(met.begun_ps.values())


def _collective(timelines: RankTimelines, number: int, met: Met) -> CollectiveTimes:
    first, last = min(met.begun_ps.values()), max(met.begun_ps.values())
    latest = min(rank for rank, at in met.begun_ps.items() if at == last)
    whole = len(met.ended_ps) == len(met.group)
    ended = max(met.ended_ps.values()) if whole else None
    overlaps = [timelines.overlaps[number, rank] for rank in met.ended_ps]
    worst = max(overlaps, key=lambda one: (one.exposed_ps, -one.rank), default=None)
    return CollectiveTimes(
        met.name, met.group, met.core, met.stream, met.algorithm, _place(met), ns(first), latest, ns(last - first),
        None if ended is None else ns(ended - last), None if ended is None else ns(ended),
        percent(sum(one.hidden_ps for one in overlaps), sum(one.time_ps for one in overlaps)),
        0.0 if worst is None else ns(worst.exposed_ps), latest if worst is None else worst.rank,
    )  # fmt: skip


def _place(met: Met) -> str:
    return met.source.rsplit("/", 1)[-1] or "unknown"


def _links(timelines: RankTimelines) -> tuple[LinkTimes, ...]:
    """Return the ways between ranks over which something went, the busiest first."""
    from emulator.machine.machine import Machine  # deferred: start-up

    result = timelines.result
    cores = max(len(one.device.cores) for one in timelines.ranks.values())
    machine = Machine(result.instance, nodes=result.nodes, lnc=cores)
    spans: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    moved: Counter[tuple[int, int]] = Counter()
    for move in result.moves:
        for target in move.targets:
            if target != move.rank:
                spans[move.rank, target].append((move.begin_ps, move.end_ps))
                moved[move.rank, target] += move.nbytes
    found = []
    for (source, target), each in spans.items():
        busy, nbytes = union_ps(each), moved[source, target]
        kinds = dict.fromkeys(hop.kind for hop in machine.way(source, target))
        rate = round(nbytes * 1000 / busy, 2) if busy else 0.0
        found.append(LinkTimes(source, target, len(each), nbytes, ns(busy), rate, ", ".join(kinds)))
    return tuple(sorted(found, key=lambda one: (-one.busy_ns, one.source, one.target)))


def _path(timelines: RankTimelines) -> RankPath:
    end = timelines.end_ps
    kinds: Counter[str] = Counter()
    ranks: Counter[int] = Counter()
    by_line: dict[str, Counter[str]] = defaultdict(Counter)
    rows = []
    for rank, link in timelines.path:
        timeline = timelines.ranks[rank]
        line = line_text(timeline.link_line(link))
        kinds[link.kind] += link.duration_ps
        ranks[rank] += link.duration_ps
        by_line[line][link.kind] += link.duration_ps
        rows.append(RankLinkRow(
            rank, ns(link.start_ps), ns(link.end_ps), link.kind, link.owner.text,
            timeline.opcode(link.owner, link.row), timeline.recorder.tracks[link.owner].pc[link.row], line, link.detail,
        ))  # fmt: skip
    lines = sorted(by_line.items(), key=lambda item: -item[1].total())[:_TOP]
    return RankPath(
        ns(timelines.path[-1].link.end_ps if timelines.path else 0),
        tuple(Share(kind, ns(ps), percent(ps, end)) for kind, ps in kinds.most_common()),
        tuple(RankShare(rank, ns(ps), percent(ps, end)) for rank, ps in sorted(ranks.items())),
        tuple(PathLine(line, ns(each.total()), percent(each.total(), end),
                       {kind: ns(ps) for kind, ps in each.most_common()}) for line, each in lines),
        tuple(rows),
    )  # fmt: skip


def rank_lines(timelines: RankTimelines) -> tuple[LineRow, ...]:
    """Return what each source line took on all ranks together, and its part of the critical path over them."""
    parts: Iterable[int] = timelines.ranks
    return lines_of(
        ((timelines.ranks[rank], [each.link for each in timelines.path if each.rank == rank]) for rank in parts),
        timelines.end_ps,
    )
