"""Order of a graph with collectives: what needs none of those under way goes first, so that work hides them."""

from __future__ import annotations

from neurontools.compiler.graph import Graph, Node
from neurontools.compiler.shifting import gathers_of, scatters_of, shift

__all__ = ["call_early"]

_MEETS = "rank-collective"
# These may have collectives of their own, in kernels and bodies.
_MAY_MEET = (_MEETS, "custom-call", "call", "while", "conditional")


def call_early(graph: Graph, early: int = -1, late: int = -1) -> Graph:
    """Put nodes in the order of how many collectives lie one behind the other before them; return the graph.

    Engines take words in order: a use right behind a collective would hold up all that follows. So every collective
    that can be under way is called before the first use of any. Collectives stay in the order they were given in, as
    ranks that run other programs expect it, and so do all nodes that are equals.

    Gathers of weights that are to be called `early` layers before their use, and scatters of gradients `late` ones
    behind, have places of their own (`shifting`); -1 treats them like the others.
    """
    if not any(node.opcode == _MEETS for node in graph.nodes):
        return graph
    gathers = frozenset(gathers_of(graph)) if early >= 0 else frozenset()
    scatters = frozenset(scatters_of(graph)) if late >= 0 else frozenset()
    behind: dict[Node, int] = {}
    last = 0
    for node in graph.nodes:
        # Gathers that are called in time hold up nobody: their uses stay where they are.
        passed = max((behind[one.node] + (one.node.opcode == _MEETS and one.node not in gathers)
                      for one in node.operands), default=0)  # fmt: skip
        if node.opcode in _MAY_MEET and node not in gathers and node not in scatters:
            passed = last = max(passed, last)
        behind[node] = passed
    graph.nodes.sort(key=behind.__getitem__)
    shift(graph, early, late)
    for number, node in enumerate(graph.nodes):
        node.number = number
    return graph
