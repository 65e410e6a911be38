"""A profile of several ranks as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neurontools.profile.view import KINDS, delta, engine_lines, line_lines, share, signed, time, what_if_lines
from neurontools.profile.view import deltas as delta_lines
from neurontools.text.table import bold, bytes_text, count, table

if TYPE_CHECKING:
    from neurontools.profile.ranked.results import RanksComparison, RanksProfile

__all__ = ["lines"]

_ENGINES = ("tensor", "vector", "scalar", "gpsimd")


def lines(result: RanksProfile, top: int = 10) -> Iterator[str]:
    """Return the profile for people: `top` is how many ranks, collectives, links and lines are shown."""
    many = count(len(result.ranks), "rank")
    where = result.instance if result.nodes == 1 else f"{result.nodes} x {result.instance}"
    yield bold(f"{result.name} on {many} of {where}: {time(result.total_time_ns)} (simulated)")
    if result.outcome != "finished":
        yield f"the run did not finish: {result.outcome}; the profile ends there"
    yield _verdict(result)
    yield ""
    yield from _ranks(result, top)
    if result.collectives:
        yield ""
        yield from _collectives(result, top)
    if result.links:
        yield ""
        yield from _links(result, top)
    yield ""
    yield from _path(result, top)
    yield ""
    yield from line_lines(result.lines, top, "lines, by their part of the critical path; times of all ranks together")
    yield ""
    yield bold(f"engines of rank {result.rank}{', the slowest' if result.rank == result.slowest else ''}")
    yield from engine_lines(result.profile)
    if result.what_if is not None:
        yield ""
        yield from what_if_lines(result.what_if, top)
    if result.against is not None:
        yield ""
        yield from _against(result.against, top)


def _verdict(result: RanksProfile) -> str:
    first, last = result.ranks[result.fastest], result.ranks[result.slowest]
    text = f"rank {last.rank} is the slowest"
    if last.time_ns > first.time_ns:
        text += f", it ends {time(last.time_ns - first.time_ns)} after rank {first.rank}"
    elif first.late_ns > last.late_ns:
        text += f": it waited {time(last.late_ns)} for others, rank {first.rank} {time(first.late_ns)}"
    elif len(result.ranks) > 1:
        text = "all ranks take the same time"
    if not result.collectives:
        return f"{text}; no collective was called"
    return (f"{text}; collectives: {share(result.hidden_percent)} % hidden behind compute, "
            f"exposed for up to {share(result.exposed_percent)} % of the run")  # fmt: skip


def _ranks(result: RanksProfile, top: int) -> Iterator[str]:
    shown = result.ranks
    if len(shown) > top:
        # The slowest, and the one whose profile follows.
        order = sorted(shown, key=lambda row: (-row.time_ns, row.late_ns, row.rank))
        kept = {result.rank, *(row.rank for row in order[:top])}
        shown = tuple(row for row in shown if row.rank in kept)
    rows = [
        [f"{'*' if row.rank == result.slowest else ''}{row.rank}", f"n{row.node} c{row.chip} nc{row.core}",
         row.outcome if row.outcome != "finished" else time(row.time_ns),
         *(share(row.busy_percent.get(name, 0.0)) for name in _ENGINES), time(row.compute_ns), time(row.dma_ns),
         time(row.collective_ns), time(row.exposed_ns), time(row.late_ns), time(row.critical_ns)]
        for row in shown
    ]  # fmt: skip
    heads = ["rank", "at", "time", *(f"{name} %" for name in _ENGINES), "compute", "DMA", "collectives", "exposed",
             "for others", "critical"]  # fmt: skip
    yield from table(heads, rows)
    if len(shown) < len(result.ranks):
        yield f"  and {count(len(result.ranks) - len(shown), 'rank')} more that end earlier; --top shows more"


def _collectives(result: RanksProfile, top: int) -> Iterator[str]:
    yield bold("collectives, the most exposed first")
    shown = sorted(result.collectives, key=lambda row: (-row.exposed_ns, row.called_ns))[:top]
    rows = [
        [row.name, len(row.group), row.algorithm or None, row.stream, time(row.called_ns), f"rank {row.latest}",
         time(row.skew_ns), None if row.time_ns is None else time(row.time_ns), f"{share(row.hidden_percent)} %",
         f"{time(row.exposed_ns)} (rank {row.exposed_rank})", row.line]
        for row in shown
    ]  # fmt: skip
    heads = ["collective", "ranks", "algorithm", "stream", "called", "last to call", "after", "then takes", "hidden",
             "exposed", "line"]  # fmt: skip
    yield from (f"  {line}" for line in table(heads, rows))
    if len(result.collectives) > len(shown):
        yield f"  and {count(len(result.collectives) - len(shown), 'collective')} more; --top shows more, --json all"


def _links(result: RanksProfile, top: int) -> Iterator[str]:
    yield bold("links between ranks, the busiest first")
    rows = [
        [f"{row.source} > {row.target}", row.kind, row.transfer_count, bytes_text(row.bytes), time(row.busy_ns),
         f"{row.gb_per_s:.1f}"]
        for row in result.links[:top]
    ]  # fmt: skip
    yield from (f"  {line}" for line in table(["ranks", "over", "transfers", "moved", "busy", "GB/s"], rows))
    if len(result.links) > top:
        yield f"  and {count(len(result.links) - top, 'link')} more; --top shows more, --json all"


def _path(result: RanksProfile, top: int) -> Iterator[str]:
    path = result.critical_path
    kinds = ", ".join(f"{KINDS.get(one.kind, one.kind)} {share(one.percent)} %" for one in path.kinds)
    yield bold(f"critical path over all ranks: {time(path.total_ns)} in {count(len(path.links), 'link')}")
    yield f"  {kinds}"
    longest = sorted(path.ranks, key=lambda one: -one.ns)[:top]
    yield "  " + ", ".join(f"rank {one.rank} {share(one.percent)} %" for one in longest)
    chosen = sorted(path.links, key=lambda link: link.start_ns - link.end_ns)[:top]
    rows = [
        [time(link.start_ns), time(link.end_ns - link.start_ns), link.rank, KINDS.get(link.kind, link.kind), link.owner,
         f"{'' if link.opcode in ('DMA', 'COLLECTIVE') else link.opcode} {link.detail}".strip(), link.line]
        for link in sorted(chosen, key=lambda link: link.start_ns)
    ]  # fmt: skip
    yield from (f"  {line}" for line in table(["at", "took", "rank", "by", "where", "what", "line"], rows))


def _against(found: RanksComparison, top: int) -> Iterator[str]:
    yield bold(f"against {found.name}: {time(found.total_time_ns)} here, {time(found.before_ns)} there "
               f"({delta(found.total_time_ns, found.before_ns)})")  # fmt: skip
    ranks = sorted(found.ranks, key=lambda row: -abs(row.time_delta_ns))[:top]
    yield from (f"  {line}" for line in table(["rank", "time", "compute", "exposed"], [
        [row.rank, signed(row.time_delta_ns), signed(row.compute_delta_ns), signed(row.exposed_delta_ns)]
        for row in sorted(ranks, key=lambda row: row.rank)
    ]))  # fmt: skip
    yield from (f"  {line}" for line in table(["collective", "line", "takes", "last to call", "exposed"], [
        [row.name, row.line, signed(row.time_delta_ns), signed(row.skew_delta_ns), signed(row.exposed_delta_ns)]
        for row in found.collectives[:top]
    ]))  # fmt: skip
    yield from delta_lines(found.lines, top)
