"""Replica groups: which ranks take part, where they sit, and which algorithms their shape allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

from emulator.machine.cycles import hamiltonian_cycles, hypercube_labels
from emulator.machine.machine import Machine
from formats.errors import FormatError, UnsupportedError

__all__ = ["MAX_GROUPS", "Group", "group_findings", "pair_findings"]

MAX_GROUPS = 16  # per NEFF; 12 before runtime 2.34.10 (collectives.md 7)


class Group:
    """The ranks of one collective, in the order that numbers their chunks."""

    def __init__(self, machine: Machine, ranks: Iterable[int]) -> None:
        self.machine = machine
        self.ranks = tuple(ranks)
        if not self.ranks:
            raise FormatError("replica group", expected="at least one rank", got="none")
        for rank in self.ranks:
            machine.place(rank)
        twice = [rank for rank, times in Counter(self.ranks).items() if times > 1]
        if twice:
            raise FormatError("replica group", expected="every rank once", got=f"rank {twice[0]} twice")

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    @cached_property
    def by_node(self) -> dict[int, tuple[int, ...]]:
        """Return the ranks of each node, in the group's order."""
        found: dict[int, list[int]] = {}
        for rank in self.ranks:
            found.setdefault(self.machine.place(rank).node, []).append(rank)
        return {node: tuple(ranks) for node, ranks in found.items()}

    @cached_property
    def by_chip(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return the ranks of each chip (node, chip), in the group's order."""
        found: dict[tuple[int, int], list[int]] = {}
        for rank in self.ranks:
            found.setdefault(self.machine.place(rank)[:2], []).append(rank)
        return {chip: tuple(ranks) for chip, ranks in found.items()}

    @property
    def nodes(self) -> int:
        """Return over how many nodes the ranks are spread."""
        return len(self.by_node)

    @property
    def chips(self) -> int:
        """Return over how many chips the ranks are spread."""
        return len(self.by_chip)

    @property
    def per_chip(self) -> int:
        """Return the ranks of each chip, 0 where chips have different numbers."""
        counts = {len(ranks) for ranks in self.by_chip.values()}
        return counts.pop() if len(counts) == 1 else 0

    @property
    def whole_chips(self) -> bool:
        """Return whether every chip takes part with all of its ranks."""
        return self.per_chip == self.machine.ranks_per_chip

    @property
    def same_cores(self) -> bool:
        """Return whether the same core numbers take part on every chip."""
        return len({tuple(self.machine.place(r).core for r in ranks) for ranks in self.by_chip.values()}) == 1

    @property
    def symmetric(self) -> bool:
        """Return whether every node takes part with the same local ranks in the same order."""
        each = self.machine.ranks_per_node
        return len({tuple(rank % each for rank in ranks) for ranks in self.by_node.values()}) == 1

    def part(self, ranks: Sequence[int]) -> Group:
        """Return a smaller group of the same machine."""
        return Group(self.machine, ranks)

    @cached_property
    def orders(self) -> list[tuple[int, ...]]:
        """Return the directed cycles that Ring runs in parallel, as positions in the group.

        All chips of a torus or ring: each of its edge-disjoint Hamiltonian cycles in both directions, the ranks of a
        chip one after the other.  Other groups: the order of the group, in both directions.  hardware.md 6.4: up to
        four channels when all devices take part, else two.
        """
        index = {rank: at for at, rank in enumerate(self.ranks)}
        natural = tuple(range(self.size))
        cycles: list[tuple[int, ...]] = [natural]
        if self.nodes == 1 and self.chips == self.machine.instance.chips and self.chips > 2:
            try:
                rings = hamiltonian_cycles(self.machine.topology)
            except UnsupportedError:
                rings = ()
            node = next(iter(self.by_node))
            found = [tuple(index[rank] for chip in ring for rank in self.by_chip[node, chip]) for ring in rings]
            cycles = found or cycles
        both = [way for cycle in cycles for way in (cycle, tuple(reversed(cycle)))]
        return both if self.size > 2 else both[:1]

    @cached_property
    def axes(self) -> list[int] | None:
        """Return the hypercube label of each chip in the order of `by_chip`, None where the chips are no power of two.

        All chips of a torus have the labels of its Gray code, others are numbered in order.
        """
        if self.chips & (self.chips - 1):
            return None
        if self.nodes == 1 and self.chips == self.machine.instance.chips and self.chips > 1:
            try:
                labels = hypercube_labels(self.machine.topology)
            except UnsupportedError:
                return list(range(self.chips))
            return [labels[chip] for _, chip in self.by_chip]
        return list(range(self.chips))


def group_findings(machine: Machine, groups: Sequence[Sequence[int]], *, limit: int = MAX_GROUPS) -> list[str]:
    """Return what is wrong with the replica groups of one operation; nothing where they are legal."""
    wrong = []
    if len(groups) > limit:
        wrong.append(f"{len(groups)} replica groups; a NEFF has at most {limit} (collectives.md 7)")
    if not groups:
        return ["no replica group"]
    seen: dict[int, int] = {}
    for number, ranks in enumerate(groups):
        if not ranks:
            wrong.append(f"group {number} is empty")
        for rank in ranks:
            if not 0 <= rank < machine.ranks:
                wrong.append(f"group {number}: no rank {rank}, there are 0 to {machine.ranks - 1}")
            elif rank in seen:
                wrong.append(f"rank {rank} is in group {seen[rank]} and in group {number}"
                             if seen[rank] != number else f"group {number} has rank {rank} twice")  # fmt: skip
            seen.setdefault(rank, number)
    sizes = {len(ranks) for ranks in groups}
    if len(sizes) > 1:
        wrong.append(f"groups of different sizes: {', '.join(map(str, sorted(sizes)))}")
    if wrong:
        return wrong
    for number, ranks in enumerate(groups):
        group = Group(machine, ranks)
        if any(len({b - a for a, b in pairwise(part)}) > 1 for part in group.by_node.values()):
            wrong.append(f"group {number} is neither contiguous nor evenly spaced: {_few(ranks)}")
        if group.nodes > 1 and not group.symmetric:
            wrong.append(f"group {number} has other local ranks on other nodes (collectives.md 4)")
    return wrong


def pair_findings(machine: Machine, pairs: Sequence[tuple[int, int]]) -> list[str]:
    """Return what is wrong with the pairs of a permute: only rings of directly linked ranks are supported."""
    wrong = []
    sources, targets = [a for a, _ in pairs], [b for _, b in pairs]
    for rank in {*sources, *targets}:
        if not 0 <= rank < machine.ranks:
            wrong.append(f"no rank {rank}, there are 0 to {machine.ranks - 1}")
    for name, ranks in (("source", sources), ("target", targets)):
        wrong += [f"rank {rank} is a {name} {times} times" for rank, times in Counter(ranks).items() if times > 1]
    if not pairs:
        wrong.append("no pair of source and target")
    if wrong:
        return wrong
    if set(sources) != set(targets):
        alone = sorted({*sources} ^ {*targets})
        return [f"no circular permute: rank {alone[0]} sends or receives, but not both (collectives.md 1)"]
    for a, b in pairs:
        one, other = machine.place(a), machine.place(b)
        if one.node == other.node and machine.topology.distance(one.chip, other.chip) > 1:
            wrong.append(f"ranks {a} and {b} sit on chips {one.chip} and {other.chip}, which are not linked")
    return wrong


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:6])) + (", ..." if len(ranks) > 6 else "")
