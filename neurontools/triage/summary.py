"""Add up ranks as they come: executions by cluster id, signatures, instances; only what differs takes memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from formats.nrt.names import NO_CLUSTER
from neurontools.triage.rank import Rank, Signature

__all__ = ["Cluster", "Execution", "Summary"]

_EXAMPLES, _KEPT_NAMES, _KEPT_WARNINGS = 5, 64, 100


@dataclass
class Execution:
    """The ranks of one collective execution: those with one cluster id, or one dump directory without one."""

    key: str
    cluster: str
    ranks: int = 0
    world: int | None = None
    statuses: Counter[str] = field(default_factory=Counter)
    first: Rank | None = None
    consequences: int = 0

    def add(self, rank: Rank) -> None:
        """Add one rank; the first failure is the earliest of those that do not follow from another."""
        self.ranks += 1
        self.world = rank.world if rank.world is not None else self.world
        self.statuses[rank.status_name or "unknown"] += 1
        self.consequences += rank.consequence
        if self.first is None or _order(rank) < _order(self.first):
            self.first = rank

    @property
    def missing(self) -> int | None:
        """Return how many ranks left no dump; None where the size of the execution is not known."""
        return None if self.world is None else max(0, self.world - self.ranks)


@dataclass
class Cluster:
    """Failures that look alike."""

    signature: Signature
    count: int = 0
    firsts: int = 0  # how many of them were the first of their execution
    instances: Counter[str] = field(default_factory=Counter)
    more_instances: bool = False
    examples: list[Rank] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    @property
    def executions(self) -> int:
        """Return how many executions have it; their ranks come in any order, since one may lie in several places."""
        return len(self._seen)

    def add(self, rank: Rank, execution: str) -> None:
        """Add one failure."""
        self.count += 1
        if rank.instance in self.instances or len(self.instances) < _KEPT_NAMES:
            self.instances[rank.instance] += 1
        else:
            self.more_instances = True
        self._seen.add(execution)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(rank)

    @property
    def example(self) -> Rank:
        """Return the first of them that was read."""
        return self.examples[0]


class Summary:
    """What all dumps together say."""

    def __init__(self) -> None:
        self.ranks = 0
        self.directories = 0
        self.unread = 0
        self.executions: dict[str, Execution] = {}
        self.clusters: dict[Signature, Cluster] = {}
        self.hardware: Counter[tuple[str, str]] = Counter()  # (instance, error)
        self.warnings: list[str] = []
        self.more_warnings = 0

    def add(self, ranks: Iterable[Rank]) -> None:
        """Add ranks of one directory."""
        for rank in ranks:
            self.ranks += 1
            key = rank.cluster if rank.cluster != NO_CLUSTER else rank.directory
            execution = self.executions.get(key)
            if execution is None:
                execution = self.executions[key] = Execution(key, rank.cluster)
            execution.add(rank)
            cluster = self.clusters.get(rank.signature)
            if cluster is None:
                cluster = self.clusters[rank.signature] = Cluster(rank.signature)
            cluster.add(rank, key)
            if rank.hardware:
                self.hardware[rank.instance, rank.hardware] += 1
            if rank.knowledge == "name" and rank.status is None:
                self.unread += 1
            for text in rank.warnings:
                self.warn(f"{rank.path}: {text}")

    def warn(self, text: str) -> None:
        """Keep a warning while there are few, and count the others."""
        if len(self.warnings) < _KEPT_WARNINGS:
            self.warnings.append(text)
        else:
            self.more_warnings += 1

    def close(self) -> None:
        """Count the executions that failed first with each signature."""
        for execution in self.executions.values():
            if execution.first is not None:
                self.clusters[execution.first.signature].firsts += 1

    @property
    def by_size(self) -> list[Cluster]:
        """Return the signatures: those that came first most often, then the most frequent."""
        return sorted(self.clusters.values(), key=lambda c: (-c.firsts, -c.count, c.signature))


def _order(rank: Rank) -> tuple[bool, bool, float, int, str, int]:
    """Return the key that puts the first failure first: no consequence of another, timed by a log, early."""
    coarse = rank.when_from == "directory"  # all ranks of a directory share its time
    return (rank.consequence, coarse or rank.when is None, rank.when or 0.0, rank.rank or 0, rank.instance, rank.pid)
