"""Nodes that run as one kernel: element-wise chains, folds of rows, and rows spread over what they were folded from.

A kernel has one index space. Its last dimensions, where something folds them, lie inside partitions, so that a softmax
or a norm loads its rows once and stores them once. Groups grow along the graph as long as no path leaves one and comes
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from formats.named_tuple import NamedTuple
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.tile_folds import is_tile_fold

__all__ = ["REACH", "Group", "Reach", "plan", "squeezed"]

_SEARCHED = 500  # clusters looked at for a path before one is supposed: time stays linear
_ROWS = 16  # rows below which a fold is better spread over partitions, unless everything is small
_SMALL = 4096


class Reach(NamedTuple):
    """How much a kernel takes together: elements of a row that it folds, nodes, nodes behind a product."""

    longest: int
    nodes: int
    behind: int


REACH = {
    "generic": Reach(1024, 40, 12),
    "transformer": Reach(4096, 40, 12),  # whole rows of softmax and norms stay in SBUF
    "unet-inference": Reach(1024, 120, 40),  # long chains behind convolutions do
}
"""By --model-type; the figures are ours."""


class Group(NamedTuple):
    """Nodes in program order; the index space without dimensions of 1, the first `split` of which are the rows.

    `inputs` are read from outside, `outputs` needed there.
    """

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    split: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without dimensions of 1."""
    return tuple(extent for extent in shape if extent != 1)


class _Cluster:
    """A group while it grows; one node is one too. `shape` is None for what is no part of a kernel."""

    __slots__ = ("needs", "nodes", "shape", "split")

    def __init__(self, node: Node, shape: tuple[int, ...] | None) -> None:
        self.nodes = [node]
        self.shape = shape
        self.split: int | None = None
        self.needs: set[int] = set()


class _Planner:
    def __init__(self, graph: Graph, reach: Reach) -> None:
        self.graph, self.limits = graph, reach
        self.clusters: dict[int, _Cluster] = {}
        self.home: list[int] = []

    def find(self, number: int) -> int:
        """Return the cluster that a node is in now."""
        home = self.home
        while home[number] != number:
            home[number] = home[home[number]]
            number = home[number]
        return number

    def needs(self, cluster: int) -> set[int]:
        """Return the clusters that one reads from, as they are now."""
        home, held = self.home, self.clusters[cluster].needs
        if all(home[one] == one for one in held):
            return held
        found = {self.find(one) for one in held}
        found.discard(cluster)
        self.clusters[cluster].needs = found
        return found

    def reach(self, starts: set[int], wanted: int) -> bool:
        """Return whether one of some clusters depends on another, or is it; yes where that takes long to tell."""
        if wanted in starts:
            return True
        seen, rest = set(starts), list(starts)
        while rest:
            new = self.needs(rest.pop()) - seen
            if wanted in new or len(seen) > _SEARCHED:
                return True
            seen |= new
            rest += new
        return False

    def joinable(self, a: int, b: int) -> bool:
        """Return whether no path leads from one cluster out and into the other."""
        # Nothing depends yet on a node that is just being added.
        fresh = b == len(self.home) - 1
        return (fresh or not self.reach(self.needs(a) - {b}, b)) and not self.reach(self.needs(b) - {a}, a)

    def join(self, into: int, other: int) -> None:
        a, b = self.clusters[into], self.clusters.pop(other)
        a.nodes += b.nodes
        a.needs = (a.needs | b.needs) - {into}
        if a.split is None:
            a.split = b.split
        self.home[other] = into

    def add(self, node: Node) -> None:
        """Put a node into the cluster of its operands where it fits there, else into one of its own."""
        number = node.number
        cluster = self.clusters[number] = _Cluster(node, None)
        if node.opcode in ELEMENTWISE and node.result.size:
            cluster.shape = squeezed(node.result.shape)
        elif node.opcode == "reduce" and node.result.size and node.operands[0].size:
            shape = squeezed(node.operands[0].shape)
            cluster.split = _rows_of(node, shape, self.limits)
            cluster.shape = None if cluster.split is None else shape
        self.home.append(number)
        cluster.needs = {self.find(one.node.number) for one in node.operands}
        for operand in node.operands[: 1 if node.opcode == "reduce" else None]:
            other = self.find(operand.node.number)
            mine = self.find(number)
            if other == mine or other not in self.clusters or self.clusters[other].shape is None:
                continue
            if len(self.clusters[other].nodes) + len(self.clusters[mine].nodes) > self.limits.nodes:
                continue
            split = self._fits(self.clusters[other], self.clusters[mine], node, operand)
            if split is not None and self.joinable(other, mine):
                self.join(other, mine)
                if split >= 0:
                    self.clusters[other].split = split

    def _fits(self, group: _Cluster, mine: _Cluster, node: Node, operand: Value) -> int | None:
        """Return whether a node can be part of a cluster: its split, -1 where it has none yet, None where it cannot."""
        shape, split = group.shape, group.split
        assert shape is not None  # the caller has looked
        keep = -1 if split is None else split
        if node.opcode in ELEMENTWISE:
            own = squeezed(node.result.shape)
            if own == shape:
                both = {one for one in (split, mine.split) if one is not None}
                return None if len(both) > 1 else next(iter(both), -1)
            if split is not None and own == shape[:split] and len(mine.nodes) == 1:
                return split
            return None
        if len(mine.nodes) > 1:
            return None
        if node.opcode == "reduce":
            kept = _rows_of(node, shape, self.limits)
            if kept is None or split not in (None, kept) or operand is not node.operands[0]:
                return None
            return kept if squeezed(operand.shape) == shape else None
        if split is None:
            return None
        if node.opcode == "broadcast" and squeezed(operand.shape) == shape[:split]:
            return keep if squeezed(node.result.shape) == shape and _leads(node, split) else None
        same = squeezed(operand.shape) == squeezed(node.result.shape)
        return keep if node.opcode == "reshape" and same and squeezed(operand.shape) == shape[:split] else None


def _rows_of(node: Node, shape: tuple[int, ...], reach: Reach) -> int | None:
    """Return how many dimensions a reduction keeps where it folds the last ones, and that is done on tiles."""
    if not is_tile_fold(node):
        return None
    given = node.operands[0].shape
    folded = [axis in node.attrs["dimensions"] for axis, extent in enumerate(given) if extent != 1]
    kept = folded.index(True) if True in folded else len(folded)
    if not all(folded[kept:]) or kept == len(folded) or kept == 0:
        return None
    rows, length = prod(shape[:kept]), prod(shape[kept:])
    return kept if length <= reach.longest and (rows >= _ROWS or rows * length <= _SMALL) else None


def _leads(node: Node, split: int) -> bool:
    """Return whether a broadcast puts its operand's dimensions first."""
    given, out = node.operands[0].shape, node.result.shape
    places = [axis for axis, extent in zip(node.attrs["dimensions"], given, strict=True) if extent != 1]
    real = [axis for axis, extent in enumerate(out) if extent != 1]
    return places == real[:split]


def plan(graph: Graph, reach: Reach = REACH["generic"]) -> Iterator[Group | Node]:
    """Yield kernels and other nodes, in an order in which everything is there that they read."""
    planner = _Planner(graph, reach)
    for node in graph.nodes:
        planner.add(node)
    users: dict[Value, set[int]] = {}
    for node in graph.nodes:
        for operand in node.operands:
            users.setdefault(operand, set()).add(planner.find(node.number))
    roots = set(graph.roots)
    for number in _ordered(planner):
        cluster = planner.clusters[number]
        if cluster.shape is None:
            yield cluster.nodes[0]
            continue
        nodes = tuple(sorted(cluster.nodes, key=lambda one: one.number))
        inside = {one.result for one in nodes}
        inputs = dict.fromkeys(
            value
            for node in nodes
            for value in (node.operands[:1] if node.opcode == "reduce" else node.operands)
            if value not in inside
        )
        outputs = tuple(
            value for value in (one.result for one in nodes) if value in roots or users.get(value, set()) - {number}
        )
        split = len(cluster.shape) if cluster.split is None else cluster.split
        yield Group(nodes, cluster.shape, split, tuple(inputs), outputs)


def _ordered(planner: _Planner) -> Iterator[int]:
    """Yield clusters with those they need before them, otherwise by their first node."""
    done: set[int] = set()
    for first in sorted(planner.clusters):
        stack = [(first, iter(sorted(planner.needs(first))))]
        if first in done:
            continue
        done.add(first)
        while stack:
            one, rest = stack[-1]
            for other in rest:
                if other not in done:
                    done.add(other)
                    stack.append((other, iter(sorted(planner.needs(other)))))
                    break
            else:
                stack.pop()
                yield one
