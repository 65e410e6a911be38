"""What is likeliest to be wrong, from a summary: rules with the evidence they rest on, ranked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from formats.nrt.lookup import fact_of
from formats.nrt.status import NrtStatus as S
from neurontools.render.table import count
from neurontools.triage.summary import Cluster, Summary

__all__ = ["Hypothesis", "hypotheses"]

_HARDWARE = frozenset(
    (
        S.NRT_EXEC_HW_ERR_HBM_UE,
        S.NRT_EXEC_HW_ERR_NC_UE,
        S.NRT_EXEC_HW_ERR_DMA_ABORT,
        S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE,
        S.NRT_HW_ERROR,
    )
)


class Hypothesis(NamedTuple):
    """One explanation; `score` is the share of executions it explains, weighted by how surely its evidence says so."""

    cause: str
    score: float
    text: str
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]


def hypotheses(summary: Summary) -> list[Hypothesis]:
    """Return the explanations, the likeliest first."""
    total = max(1, len(summary.executions))
    found = [one for cluster in summary.by_size[:50] for one in _of_cluster(cluster, total)]
    found += _of_hardware(summary)
    found += _of_absence(summary, total)
    found += _of_consequences(summary, total)
    return sorted(found, key=lambda each: -each.score)


def _of_cluster(cluster: Cluster, total: int) -> Iterator[Hypothesis]:
    rank, share = cluster.example, cluster.firsts / total
    if not cluster.firsts or rank.consequence:
        return
    where = f"{rank.engine} pc {rank.pc}" if rank.engine else rank.instance
    where += f" ({rank.line})" if rank.line else ""
    evidence = [
        f"first failure of {cluster.firsts} of {total} executions, {count(cluster.count, 'rank')} in all",
        f"for example {rank.path}",
    ]
    spread = len(cluster.instances)
    if spread > 1:
        evidence.insert(1, f"on {'more than ' if cluster.more_instances else ''}{spread} instances: not one machine")
    elif cluster.executions > 2:
        evidence.insert(1, f"on {rank.instance} alone, in {cluster.executions} executions: perhaps that machine")
    status = rank.status
    known = fact_of(rank.status_name) if rank.status_name else None
    steps = tuple(known.next_steps[:3]) if known is not None else ()
    if status in _HARDWARE or rank.hardware:
        yield Hypothesis("hardware", share * 0.95, f"hardware of {rank.instance} is faulty", tuple(evidence), steps)
    elif status == S.NRT_EXEC_OOB:
        limit = f": {rank.found}, allowed {rank.limit}" if rank.found else ""
        yield Hypothesis(
            "out-of-bounds",
            share * 0.9,
            f"an access out of bounds at {where}{limit}",
            (*evidence, *filter(None, [rank.message])),
            steps,
        )
    elif rank.cycle:
        yield Hypothesis(
            "deadlock",
            share * 0.9,
            f"engines wait for each other: {rank.other or where}",
            tuple(evidence),
            ("Look at the order of signals and waits on both lines.", *steps[:1]),
        )
    elif rank.lost:
        yield Hypothesis(
            "lost-signal",
            share * 0.85,
            f"{where} waits for {rank.awaited}, which nothing signals",
            tuple(evidence),
            ("Look for the signal that was left out, or counted wrongly.",),
        )
    elif status == S.NRT_TIMEOUT:
        text = f"{where} waits for {rank.awaited}" if rank.awaited else "an execution did not end"
        yield Hypothesis("hang", share * 0.6, text, tuple(evidence), steps)
    elif status == S.NRT_EXEC_COMPLETED_WITH_NUM_ERR:
        yield Hypothesis("numerical", share * 0.8, f"NaN at {where}", tuple(evidence), steps)
    elif status is not None:
        meaning = known.meaning if known is not None else ""
        yield Hypothesis("status", share * 0.7, f"{rank.status_name} at {where}: {meaning}", tuple(evidence), steps)
    else:
        yield Hypothesis(
            "unknown",
            share * 0.1,
            f"no status is known of {cluster.count} ranks",
            tuple(evidence),
            ("Keep the runtime's log beside the dump.",),
        )


def _of_hardware(summary: Summary) -> Iterator[Hypothesis]:
    for (instance, error), number in summary.hardware.most_common(10):
        fact = fact_of(error) if _known(error) else None
        yield Hypothesis(
            "hardware",
            0.97,
            f"hardware of {instance} reports {error}",
            (f"named by {number} logs",),
            () if fact is None else fact.next_steps,
        )


def _known(name: str) -> bool:
    from formats.errors import NotFoundError

    try:
        fact_of(name)
    except NotFoundError:
        return False
    return True


def _of_absence(summary: Summary, total: int) -> Iterator[Hypothesis]:
    lacking = [(each, each.missing) for each in summary.executions.values() if each.missing]
    if lacking:
        number = sum(missing or 0 for _each, missing in lacking)
        first = lacking[0][0]
        yield Hypothesis(
            "missing-ranks",
            0.5 * len(lacking) / total,
            f"{number} ranks left no dump: killed, or out of reach",
            (f"{first.key}: {first.ranks} of {first.world}",),
            ("Look whether the host killed them (kernel log, scheduler).",),
        )


def _of_consequences(summary: Summary, total: int) -> Iterator[Hypothesis]:
    alone = [each for each in summary.executions.values() if each.first is not None and each.first.consequence]
    if alone:
        rank = alone[0].first
        assert rank is not None
        yield Hypothesis(
            "elsewhere",
            0.4 * len(alone) / total,
            f"{len(alone)} executions failed because of a rank whose dump is not here",
            (f"all ranks of {alone[0].key} report a consequence, {rank.status_name}",),
            ("Gather the dumps of the other instances.",),
        )
