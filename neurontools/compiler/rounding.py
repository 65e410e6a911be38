"""Pass `rounding`: products round fp32 operands to 16 bits themselves, in SBUF, where nothing else wants them rounded.

A conversion by itself is a kernel: it loads a tensor, stores it shorter, and the product loads that. Chains of
element-wise operations end with the shorter type at no cost, so their conversions stay with them.
"""

from __future__ import annotations

from neurontools.compiler.canonicalise import without_dead
from neurontools.compiler.dots import loads_left_once
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, graphs_of, rewrite

__all__ = ["round_in_products"]

_SHORT = ("bf16", "f16")
_MADE_BY_KERNELS = ELEMENTWISE | {"reduce", "dot"}
_PASSED = frozenset({"reshape", "broadcast"})  # kernels take these along
_MOST_READERS = 3  # loads of 4 bytes then move no more than one of 4, a store of 2, and as many loads of 2


def round_in_products(graph: Graph) -> Graph:
    """Return the graph with `rounded` products in the place of conversions before them, bodies of loops included."""
    readers: dict[Value, list[tuple[Node, int]]] = {}
    given_back: set[Value] = set()
    for each in graphs_of(graph):
        given_back.update(each.roots)
        for node in each.nodes:
            for place, operand in enumerate(node.operands):
                if operand.node.opcode == "convert":
                    readers.setdefault(operand, []).append((node, place))
    found = {value for value, by in readers.items() if value not in given_back and _pays(value, by)}
    if not found:
        return graph

    def product(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        if not found.intersection(node.operands):
            return None
        given = [
            new.node.operands[0] if old in found else new for old, new in zip(node.operands, operands, strict=True)
        ]
        return [b.graph.add("dot", given, node.result.dtype, node.result.shape, **node.attrs,
                            rounded=node.operands[0].dtype)]  # fmt: skip

    return without_dead(rewrite(graph, {"dot": product}))


def _pays(value: Value, readers: list[tuple[Node, int]]) -> bool:
    """Return whether a conversion would be a kernel of its own, and all that read it are products that load it once."""
    (source,) = value.node.operands
    if value.dtype not in _SHORT or source.dtype != "f32" or len(readers) > _MOST_READERS:
        return False
    while source.node.opcode in _PASSED:
        source = source.node.operands[0]
    return source.node.opcode not in _MADE_BY_KERNELS and all(
        node.opcode == "dot"
        and all(one.dtype == value.dtype for one in node.operands)
        and (place == 1 or loads_left_once(node))
        for node, place in readers
    )
