"""What is most likely wrong: explanations from a summary, each with its evidence, ranked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.nrt.facts import Fact
from formats.nrt.lookup import fact_of
from formats.nrt.status import NrtStatus as S
from neurontools.text.table import count
from neurontools.triage.summary import Cluster, Summary

__all__ = ["Cause", "Hypothesis", "hypotheses"]

Cause = Literal[
    "hardware", "out-of-bounds", "deadlock", "lost-signal", "hang", "numerical", "status", "unknown", "missing-ranks",
    "elsewhere",
]  # fmt: skip
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
    """One explanation."""

    cause: Cause
    score: Annotated[float, "Share of executions that it explains, weighted by how surely the evidence says so."]
    text: str
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]


def hypotheses(summary: Summary) -> list[Hypothesis]:
    """Return the explanations, the likeliest first."""
    total = max(1, len(summary.executions))
    found = [one for cluster in summary.by_size for one in _of_cluster(cluster, total)]
    found += _of_hardware(summary)
    found += _of_absence(summary, total)
    found += _of_consequences(summary, total)
    return [each._replace(score=round(each.score, 3)) for each in sorted(found, key=lambda each: -each.score)]


def _of_cluster(cluster: Cluster, total: int) -> Iterator[Hypothesis]:
    rank, share = cluster.example, cluster.firsts / total
    # Ranks that failed after others, or because of them, explain nothing.
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
    known = _known(rank.status_name)
    steps = known.next_steps[:3] if known is not None else ()
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
            (*evidence, *filter(None, [rank.message])),
            ("Look at the order of signals and waits on both lines.", *filter(None, [rank.hint]), *steps[:1]),
        )
    elif rank.lost:
        yield Hypothesis(
            "lost-signal",
            share * 0.85,
            f"{where} waits for {rank.awaited}, which nothing signals",
            (*evidence, *filter(None, [rank.message])),
            ("Look for the signal that was left out, or counted wrongly.", *filter(None, [rank.hint])),
        )
    elif status == S.NRT_TIMEOUT:
        text = f"{where} waits for {rank.awaited}" if rank.awaited else "an execution did not end"
        why = filter(None, [rank.message])
        yield Hypothesis("hang", share * 0.6, text, (*evidence, *why), (*filter(None, [rank.hint]), *steps))
    elif status == S.NRT_EXEC_COMPLETED_WITH_NUM_ERR:
        yield Hypothesis("numerical", share * 0.8, f"NaN at {where}", tuple(evidence), steps)
    elif status is not None:
        meaning = known.meaning if known is not None else ""
        yield Hypothesis("status", share * 0.7, f"{rank.status_name} at {where}: {meaning}", tuple(evidence), steps)
    else:
        yield Hypothesis(
            "unknown",
            share * 0.1,
            f"no status is known of {count(cluster.count, 'rank')}",
            tuple(evidence),
            ("Keep the runtime's log beside the dump.",),
        )


def _of_hardware(summary: Summary) -> Iterator[Hypothesis]:
    for (instance, error), number in summary.hardware.most_common():
        known = _known(error)
        steps = known.next_steps if known is not None else ()
        evidence = (f"named by {count(number, 'log')}",)
        yield Hypothesis("hardware", 0.97, f"hardware of {instance} reports {error}", evidence, steps)


def _known(name: str) -> Fact | None:
    """Return what is known of an error; a dump may name one that this version has no entry for."""
    try:
        return fact_of(name) if name else None
    except NotFoundError:
        return None


def _of_absence(summary: Summary, total: int) -> Iterator[Hypothesis]:
    lacking = [(each, each.missing) for each in summary.executions.values() if each.missing]
    if lacking:
        number = sum(missing or 0 for _each, missing in lacking)
        first = lacking[0][0]
        yield Hypothesis(
            "missing-ranks",
            0.5 * len(lacking) / total,
            f"{count(number, 'rank')} left no dump: killed, or out of reach",
            (f"{first.key}: {first.ranks} of {first.world}",),
            ("Check whether the host killed them (kernel log, scheduler).",),
        )


def _of_consequences(summary: Summary, total: int) -> Iterator[Hypothesis]:
    firsts = [(each.key, each.first) for each in summary.executions.values() if each.first is not None]
    alone = [(key, rank) for key, rank in firsts if rank.consequence]
    if alone:
        key, rank = alone[0]
        yield Hypothesis(
            "elsewhere",
            0.4 * len(alone) / total,
            f"{count(len(alone), 'execution')} failed because of a rank whose dump is not here",
            (f"all ranks of {key} report a consequence, {rank.status_name}",),
            ("Gather the dumps of the other instances.",),
        )
