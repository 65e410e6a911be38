"""Where gathers of weights and scatters of gradients are called: so many layers before their use, or behind their sum.

Fully sharded training gathers a layer's weights while an earlier layer computes, and scatters its gradients while a
later one of the way back does (NEURON_FSDP_NUM_LAYER_EARLY_AG_SHIFT and NEURON_FSDP_NUM_LAYER_LATE_RS_SHIFT,
collectives.md 9).  What a layer is, no graph says.  Here it is what lies as many products deep (ours): uses that have
the same number of products one behind the other in front of them are of one layer, as those of the weights of q, k and
v.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formats.isa import CollectiveKind
from neurontools.compiler.graph import Graph, Node
from neurontools.compiler.placing import VIEWS

__all__ = ["assign_streams", "gathers_of", "scatters_of", "shift"]

_MEETS = "rank-collective"
_PRODUCTS = frozenset({"dot", "attention", "custom-call", "call", "while", "conditional"})
# What stays a weight: another look at it, or its cast.
_SAME = VIEWS | {"convert"}


def gathers_of(graph: Graph) -> dict[Node, tuple[Node, ...]]:
    """Return the all-gathers of weights, each with what leads from a parameter to it.

    A weight is a parameter, a cast of one or a view.
    """
    found: dict[Node, tuple[Node, ...]] = {}
    for node in graph.nodes:
        if node.opcode == _MEETS and node.attrs["kind"] == CollectiveKind.ALL_GATHER:
            way, at = [], node.operands[0].node
            while at.opcode in _SAME:
                way.append(at)
                at = at.operands[0].node
            if at.opcode == "parameter":
                found[node] = tuple(way)
    return found


def scatters_of(graph: Graph) -> list[Node]:
    """Return the reduce-scatters of gradients: those that no product and no other collective is behind."""
    busy: set[Node] = set()  # something behind them works on what they give
    for node in reversed(graph.nodes):
        if node in busy or node.opcode in _PRODUCTS or node.opcode == _MEETS:
            busy.update(one.node for one in node.operands)
    found = [node for node in graph.nodes if node.opcode == _MEETS and node not in busy]
    return [node for node in found if node.attrs["kind"] == CollectiveKind.REDUCE_SCATTER]


def assign_streams(graph: Graph, streams: int) -> None:
    """Put gathers of weights and scatters of gradients on streams 1 and up in turn, everything else on stream 0."""
    own = {*gathers_of(graph), *scatters_of(graph)}
    turn = 0
    for node in graph.nodes:
        if node.opcode == _MEETS:
            node.attrs["stream"] = 0
            if node in own and streams > 1:
                node.attrs["stream"] = 1 + turn % (streams - 1)
                turn += 1


def shift(graph: Graph, early: int, late: int) -> None:
    """Order the nodes of a graph: gathers of weights `early` layers before their use, scatters `late` behind their sum.

    A number below 0 leaves them where they are.  All that a node needs stays before it.
    """
    place = {node: number for number, node in enumerate(graph.nodes)}
    deep = _depths(graph.nodes)
    key: dict[Node, float] = {}
    if early >= 0:
        key |= _early(graph, early, place, deep)
    if late >= 0:
        key |= _late(graph, late, place, deep)
    if not key:
        return
    order: dict[Node, float] = {}
    for node in graph.nodes:
        own = key.get(node, float(place[node]))
        order[node] = max([own, *(order[one.node] for one in node.operands)])
    graph.nodes.sort(key=order.__getitem__)


def _depths(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return how many products lie one behind the other before each node."""
    deep: dict[Node, int] = {}
    for node in nodes:
        deep[node] = max([deep[one.node] + (one.node.opcode in _PRODUCTS) for one in node.operands], default=0)
    return deep


def _layers(found: Iterable[tuple[Node, int, int]]) -> tuple[dict[Node, int], list[list[int]]]:
    """Return the layer of each node of (node, depth, place), and the places of each layer."""
    listed = list(found)
    number = {depth: at for at, depth in enumerate(sorted({depth for _, depth, _ in listed}))}
    places: list[list[int]] = [[] for _ in number]
    for _, depth, place in listed:
        places[number[depth]].append(place)
    return {node: number[depth] for node, depth, _ in listed}, places


def _early(graph: Graph, early: int, place: Mapping[Node, int], deep: Mapping[Node, int]) -> dict[Node, float]:
    """Return places in front of a layer for gathers of weights, and for what leads to them."""
    gathers = gathers_of(graph)
    known = {node: {node} for node in gathers}  # the gathers that a node is another look at
    uses: dict[Node, Node] = {}
    for node in graph.nodes:
        mine = set().union(*(known.get(one.node, ()) for one in node.operands))
        if mine and node.opcode in _SAME:
            known[node] = mine
        elif node not in gathers:
            for gather in mine:
                uses.setdefault(gather, node)
    layers, places = _layers((gather, deep[use], place[use]) for gather, use in uses.items())
    key: dict[Node, float] = {}
    for gather, layer in layers.items():
        # The first layers' are called at the beginning: there is nothing before them.
        at = min(places[layer - early]) - 0.5 if layer >= early else -1.0
        for node in (gather, *gathers[gather]):
            key[node] = min(at, key.get(node, at))
    return key


def _late(graph: Graph, late: int, place: Mapping[Node, int], deep: Mapping[Node, int]) -> dict[Node, float]:
    """Return places behind a layer for scatters of gradients, and for what is computed for them alone."""
    scatters = scatters_of(graph)
    needed: set[Node] = set()  # by something else than these scatters
    for node in reversed(graph.nodes):
        used = node in needed or any(one in graph.roots for one in node.results) or node.opcode == "parameter"
        if used and node not in scatters:
            needed.add(node)
            needed.update(one.node for one in node.operands)
    chains: dict[Node, list[Node]] = {}
    ready: list[tuple[Node, int, int]] = []
    taken: set[Node] = set()
    for scatter in scatters:
        chain, inputs, rest = [scatter], [], [one.node for one in scatter.operands]
        while rest:
            node = rest.pop()
            if node in needed:
                inputs.append(node)
            elif node not in taken:
                taken.add(node)
                chain.append(node)
                rest += [one.node for one in node.operands]
        if inputs:
            chains[scatter] = chain
            last = max(deep[one] + (one.opcode in _PRODUCTS) for one in inputs)
            ready.append((scatter, last, max(place[one] for one in inputs)))
    layers, places = _layers(ready)
    key: dict[Node, float] = {}
    for scatter, layer in layers.items():
        at = max(places[layer + late]) + 0.5 if layer + late < len(places) else float(len(graph.nodes))
        for node in chains[scatter]:
            key[node] = at
    return key
