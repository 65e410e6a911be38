"""Transposes of products: the operands change places, so that nothing has to be turned in memory.

The gradient of a weight is a product whose transpose is wanted, mostly behind an all-reduce. Read the other way round,
each of its elements would be a descriptor of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from formats.isa import CollectiveKind
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, rewrite

__all__ = ["turn_products"]


def turn_products(graph: Graph) -> Graph:
    """Return the graph with products in the place of transposed ones that nothing else uses, bodies included.

    Factors commute, and what is summed up is the same.
    """
    uses = _uses(graph)

    def turned(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        found = _turned(b, operands[0], node.operands[0], node.attrs["permutation"], uses)
        return None if found is None else [found]

    return rewrite(graph, {"transpose": turned})


def _uses(graph: Graph) -> Counter[Value]:
    """Count the uses of values, those in bodies of loops and branches too."""
    found = Counter(graph.roots)
    for node in graph.nodes:
        found.update(node.operands)
        for value in node.attrs.values():
            for body in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(body, Graph):
                    found.update(_uses(body))
    return found


def _turned(b: Builder, made: Value, given: Value, order: Sequence[int], uses: Counter[Value]) -> Value | None:
    """Return a value with its dimensions in another order, where a product can be made in it; None elsewhere.

    `made` is what `given`, a value of the graph as it was, has become.
    """
    node, old = made.node, given.node
    if uses[given] > 1 or node.opcode != old.opcode:
        return None
    if node.opcode == "dot":
        return _swapped(b, node, order)
    if not _is_of_one_program(node):
        return None
    # An all-reduce works element by element; all ranks run this program, and turn theirs too.
    operand = _turned(b, node.operands[0], old.operands[0], order, uses)
    if operand is None:
        return None
    return b.graph.add(node.opcode, (operand,), operand.dtype, operand.shape, **node.attrs)


def _is_of_one_program(node: Node) -> bool:
    attrs: dict[str, Any] = node.attrs
    return (node.opcode == "rank-collective" and attrs["kind"] == CollectiveKind.ALL_REDUCE
            and bool(attrs.get("one_program")))  # fmt: skip


def _swapped(b: Builder, node: Node, order: Sequence[int]) -> Value | None:
    """Return a product with its operands the other way round, if that is what an order of its dimensions asks for."""
    attrs = node.attrs
    left, right = node.operands
    batch = len(attrs["lhs_batch"])
    rows = len(left.shape) - batch - len(attrs["lhs_contracting"])
    rank = len(node.result.shape)
    if tuple(order) != (*range(batch), *range(batch + rows, rank), *range(batch, batch + rows)):
        return None
    names = {"lhs": "rhs", "rhs": "lhs"}
    swapped = {names.get(name[:3], name[:3]) + name[3:]: value for name, value in attrs.items()}
    if "precision" in attrs:
        swapped["precision"] = attrs["precision"][::-1]  # one of each operand
    shape = tuple(node.result.shape[axis] for axis in order)
    return b.graph.add("dot", (right, left), node.result.dtype, shape, **swapped)
