"""What a triage says: the result of `neurontools core triage`."""

from __future__ import annotations

from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.triage.hypotheses import Hypothesis, hypotheses
from neurontools.triage.rank import Rank
from neurontools.triage.summary import Cluster, Execution, Summary

__all__ = ["ClusterRow", "FailureRow", "Triage", "of_summary"]


class ClusterRow(NamedTuple):
    """Failures that look alike: those of one signature, null where nothing is known."""

    status: str | None
    engine: str | None
    opcode: str | None
    awaited: Annotated[str | None, "Condition that they wait for."]
    source: Annotated[str | None, "Source line, as FILE:LINE."]
    message: str | None
    ranks: int
    first_in: Annotated[int, "Executions that failed with it first."]
    executions: int
    instances: Annotated[int, "Instances that it was on."]
    more_instances: Annotated[bool, "Whether there are more instances than were counted."]
    example: Annotated[str, "File of the first rank that was read."]


class FailureRow(NamedTuple):
    """One execution that failed."""

    execution: Annotated[str, "Cluster id, or dump directory of an execution without one."]
    cluster: Annotated[str, "Collective execution, sixteen zeros without one."]
    ranks: int
    world: Annotated[int | None, "Ranks that the execution had."]
    missing: Annotated[int | None, "Ranks that left no dump."]
    statuses: Annotated[dict[str, int], "How many ranks ended with which status."]
    consequences: Annotated[int, "Ranks whose status follows from another failure."]
    first: Annotated[Rank | None, "The rank that failed first."]


class Triage(NamedTuple):
    """What many dumps say together."""

    directories: int
    ranks: int
    executions: int
    signatures: int
    unread: Annotated[int, "Ranks of which nothing but file names is known."]
    hypotheses: Annotated[tuple[Hypothesis, ...], "The likeliest first."]
    clusters: Annotated[tuple[ClusterRow, ...], "Those that came first most often, then the most frequent."]
    failures: Annotated[tuple[FailureRow, ...], "By the time of their first failure."]


def of_summary(summary: Summary, top: int | None = None) -> Triage:
    """Return a triage; `top` limits each list, the counts are of everything."""
    executions = sorted(summary.executions.values(), key=_by_time)
    return Triage(
        summary.directories,
        summary.ranks,
        len(executions),
        len(summary.clusters),
        summary.unread,
        tuple(hypotheses(summary)[:top]),
        tuple(_cluster(each) for each in summary.by_size[:top]),
        tuple(_failure(each) for each in executions[:top]),
    )


def _by_time(each: Execution) -> tuple[float, str]:
    return (each.first.when or 0.0 if each.first is not None else 0.0, each.key)


def _cluster(item: Cluster) -> ClusterRow:
    status, engine, opcode, awaited, source, message = (text or None for text in item.signature)
    return ClusterRow(status, engine, opcode, awaited, source, message, item.count, item.firsts, item.executions,
                      len(item.instances), item.more_instances, item.example.path)  # fmt: skip


def _failure(item: Execution) -> FailureRow:
    return FailureRow(item.key, item.cluster, item.ranks, item.world, item.missing, dict(item.statuses.most_common()),
                      item.consequences, item.first)  # fmt: skip
