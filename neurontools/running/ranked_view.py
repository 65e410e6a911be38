"""The result of an execution on several ranks as lines."""

from __future__ import annotations

from collections.abc import Iterator

from neurontools.running.ranked_results import RankedRun
from neurontools.running.view import trouble_lines, verdict
from neurontools.text.table import bytes_text, duration, table

__all__ = ["ranked_lines", "waiting_lines"]

_MOST = 64  # ranks in the table


def ranked_lines(title: str, run: RankedRun) -> Iterator[str]:
    """Return an execution on several ranks for people."""
    failed = [row for row in run.ranks if row.run.fault is not None or row.run.hang is not None]
    if title:
        how = "done" if not failed else f"{len(failed)} of {len(run.ranks)} ranks did not finish"
        yield f"{title}: {how} after {duration(run.time_ps)} of device time"
    if run.histories:
        yield f"ranks that go the same way were emulated once: {run.histories} for {len(run.ranks)}"
    yield from waiting_lines(run)
    if failed and run.waiting is None:
        for row in failed[:4]:
            yield f"rank {row.rank}: {verdict(row.run)}"
            yield from trouble_lines(row.run)
    for row in run.ranks:
        if row.run.dump is not None:
            yield f"dump of rank {row.rank}: {row.run.dump}"
    yield ""
    heads = ["rank", "node", "chip", "core", "time", "instructions", "transfers", "moved", "end"]
    yield from table(heads, [
        [row.rank, row.node, row.chip, row.core, duration(row.run.time_ps), row.run.stats.instructions,
         row.run.stats.transfers, bytes_text(row.run.stats.dma_bytes), verdict(row.run).split(" ")[0]]
        for row in run.ranks[:_MOST]
    ])  # fmt: skip
    if len(run.ranks) > _MOST:
        yield f"and {len(run.ranks) - _MOST} more ranks"
    if run.collectives:
        yield ""
        heads = ["collective", "ranks", "stream", "algorithm", "first came", "last came", "through"]
        yield from table(heads, [
            [row.name, len(row.group), row.stream, row.algorithm or None, duration(row.begun_ps), duration(row.last_ps),
             None if row.ended_ps is None else duration(row.ended_ps)]
            for row in run.collectives[:_MOST]
        ])  # fmt: skip


def waiting_lines(run: RankedRun) -> Iterator[str]:
    """Return why ranks wait for each other, for people."""
    found = run.waiting
    if found is None:
        return
    yield f"{found.cause}: {found.sentence}"
    for wait in found.waits[:8]:
        at = f" at {wait.source}" if wait.source else ""
        whom = ", ".join(map(str, wait.waits_for[:8])) + (", ..." if len(wait.waits_for) > 8 else "")
        yield f"  rank {wait.rank}: {wait.engine} pc {wait.pc}{at}: {wait.what}; waits for {whom or 'transfers'}"
    if len(found.waits) > 8:
        yield f"  and {len(found.waits) - 8} more"
    if found.cycle:
        yield "  cycle: " + " waits for ".join(f"rank {rank}" for rank in (*found.cycle, found.cycle[0]))
