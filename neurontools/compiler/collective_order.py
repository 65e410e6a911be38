"""Order of a graph with collectives: what needs none of those under way goes first, so that work hides them."""

from __future__ import annotations

from neurontools.compiler.graph import Graph, Node

__all__ = ["call_early"]

_MEETS = "rank-collective"
# These may have collectives of their own, in kernels and bodies.
_MAY_MEET = (_MEETS, "custom-call", "call", "while", "conditional")


def call_early(graph: Graph) -> Graph:
    """Put nodes in the order of how many collectives lie one behind the other before them; return the graph.

    Engines take words in order: a use right behind a collective would hold up all that follows. So every collective
    that can be under way is called before the first use of any. Collectives stay in the order they were given in, as
    ranks that run other programs expect it, and so do all nodes that are equals.
    """
    if not any(node.opcode == _MEETS for node in graph.nodes):
        return graph
    behind: dict[Node, int] = {}
    last = 0
    for node in graph.nodes:
        passed = max((behind[one.node] + (one.node.opcode == _MEETS) for one in node.operands), default=0)
        if node.opcode in _MAY_MEET:
            passed = last = max(passed, last)
        behind[node] = passed
    graph.nodes.sort(key=behind.__getitem__)
    for number, node in enumerate(graph.nodes):
        node.number = number
    return graph
