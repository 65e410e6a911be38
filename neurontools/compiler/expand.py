"""Pass `expand`: operations that have no lowering of their own become several that have.

Windows become strided slices, convolutions a product over gathered patches, sorts networks of comparisons.
"""

from __future__ import annotations

import numpy as np

from neurontools.compiler.expand_calls import CALLS
from neurontools.compiler.expand_collectives import COLLECTIVES
from neurontools.compiler.expand_convolution import CONVOLUTIONS
from neurontools.compiler.expand_dots import DOTS
from neurontools.compiler.expand_folds import FOLDS
from neurontools.compiler.expand_linear import LINEAR
from neurontools.compiler.expand_norms import NORMS
from neurontools.compiler.expand_random import RANDOM
from neurontools.compiler.expand_sort import SORTS
from neurontools.compiler.expand_windows import WINDOWS
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, Rule, graphs_of, rewrite

__all__ = ["EXPANDED", "expand"]


def _clamp(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    """Give limits that are scalars the shape of what they limit."""
    low, x, high = operands
    if low.shape == high.shape == x.shape:
        return None
    limits = [one if one.shape == x.shape else b.broadcast(one, x.shape, ()) for one in (low, high)]
    return [b.op("clamp", limits[0], x, limits[1])]


_RULES: dict[str, Rule] = {
    "clamp": _clamp,
    **WINDOWS,
    **CONVOLUTIONS,
    **SORTS,
    **NORMS,
    **CALLS,
    **COLLECTIVES,
    **RANDOM,
    **LINEAR,
}
EXPANDED = frozenset(_RULES)
# These do more than give their results.
_KEPT = frozenset({"parameter", "custom-call", *COLLECTIVES})


def expand(graph: Graph) -> Graph:
    """Return the graph in operations that have a lowering."""
    return rewrite(rewrite(rewrite(_without_empty(graph), FOLDS), _RULES), DOTS)


def _without_empty(graph: Graph) -> Graph:
    """Return the graph with what has no elements as constants: nothing else has to ask whether there are any."""
    empty = {node.opcode for each in graphs_of(graph) for node in each.nodes if not any(v.size for v in node.results)}
    return rewrite(graph, dict.fromkeys(empty - _KEPT, _nothing)) if empty - _KEPT else graph


def _nothing(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    if any(one.size for one in node.results):
        return None
    return [b.constant(np.empty(one.shape), one.dtype) for one in node.results]
