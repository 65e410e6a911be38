"""The result of an execution on several ranks as lines."""

from __future__ import annotations

from collections.abc import Iterator

from neurontools.running.ranked_results import RankedRun, RankHangRow, RankRow, RootRow
from neurontools.running.view import trouble_lines, verdict
from neurontools.text.table import bytes_text, duration, table

__all__ = ["ranked_lines", "waiting_lines"]

_MOST = 64  # ranks in the table
_SHOWN = 4  # ranks whose trouble is told in full


def ranked_lines(title: str, run: RankedRun) -> Iterator[str]:
    """Return an execution on several ranks for people."""
    failed = [row for row in run.ranks if row.run.fault is not None or row.run.hang is not None]
    # Where ranks wait for each other, their own hangs say no more; a fault does, and is what they wait for.
    troubled = failed if run.waiting is None else [row for row in failed if row.run.fault is not None]
    if title:
        how = "done" if not failed else f"{len(failed)} of {len(run.ranks)} ranks did not finish"
        yield f"{title}: {how} after {duration(run.time_ps)} of device time"
    if run.histories:
        yield f"ranks that go the same way were emulated once: {run.histories} for {len(run.ranks)}"
    yield from waiting_lines(run)
    for row in troubled[:_SHOWN]:
        yield f"rank {row.rank}: {verdict(row.run)}"
        yield from trouble_lines(row.run)
    if len(troubled) > _SHOWN:
        yield f"and {len(troubled) - _SHOWN} more ranks that did not finish"
    for row in run.ranks:
        if row.run.dump is not None:
            yield f"dump of rank {row.rank}: {row.run.dump}"
    yield ""
    heads = ["rank", "node", "chip", "core", "time", "instructions", "transfers", "moved", "end"]
    yield from table(heads, [
        [row.rank, row.node, row.chip, row.core, duration(row.run.time_ps), row.run.stats.instructions,
         row.run.stats.transfers, bytes_text(row.run.stats.dma_bytes), _end(row)]
        for row in run.ranks[:_MOST]
    ])  # fmt: skip
    if len(run.ranks) > _MOST:
        yield f"and {len(run.ranks) - _MOST} more ranks"
    if run.collectives:
        yield ""
        heads = ["collective", "ranks", "stream", "algorithm", "first came", "last came", "through"]
        yield from table(heads, [
            [row.name, len(row.group), row.stream, row.algorithm or None, duration(row.begun_ps),
             duration(row.last_ps) if row.came == len(row.group) else f"{row.came} of {len(row.group)}",
             None if row.ended_ps is None else duration(row.ended_ps)]
            for row in run.collectives[:_MOST]
        ])  # fmt: skip


def _end(row: RankRow) -> str:
    return verdict(row.run).split(" ")[0] if row.launched else "no program"


def waiting_lines(run: RankedRun) -> Iterator[str]:
    """Return why ranks wait for each other, for people."""
    found = run.waiting
    if found is None:
        return
    yield from _root_lines(found)
    for root in found.more[:_SHOWN]:
        yield from _root_lines(root)
    if len(found.more) > _SHOWN:
        yield f"and {len(found.more) - _SHOWN} more reasons"
    for wait in found.waits[:8]:
        at = f" at {wait.source}" if wait.source else ""
        whom = ", ".join(map(str, wait.waits_for[:8])) + (", ..." if len(wait.waits_for) > 8 else "")
        yield f"  rank {wait.rank}: {wait.engine} pc {wait.pc}{at}: {wait.what}; waits for {whom or 'transfers'}"
    if len(found.waits) > 8:
        yield f"  and {len(found.waits) - 8} more ranks wait"


def _root_lines(root: RootRow | RankHangRow) -> Iterator[str]:
    yield f"{root.cause}: {root.sentence}"
    if root.cycle:
        yield "  cycle: " + " waits for ".join(f"rank {rank}" for rank in (*root.cycle, root.cycle[0]))
    yield f"  hint: {root.hint}"
