"""Pass `canonicalise`: nodes that do nothing go, equal nodes become one, chains of views one view.

A product whose transpose is wanted is made transposed (`turning`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, Rule, rewrite
from neurontools.compiler.turning import turn_products

__all__ = ["canonicalise"]


def canonicalise(graph: Graph) -> Graph:
    """Return the graph without dead, doubled and idle nodes."""
    return without_dead(_shared(turn_products(rewrite(graph, _RULES))))


def _reshape(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    source = operands[0]
    while source.node.opcode == "reshape":
        source = source.node.operands[0]
    if source.shape == node.result.shape:
        return [source]
    return None if source is operands[0] else [b.reshape(source, node.result.shape)]


def _transpose(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    order: tuple[int, ...] = node.attrs["permutation"]
    source = operands[0]
    if source.node.opcode == "transpose":
        inner = source.node.attrs["permutation"]
        return [b.transpose(source.node.operands[0], [inner[axis] for axis in order])]
    return [source] if order == tuple(range(len(order))) else None


def _convert(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    return [operands[0]] if operands[0].dtype == node.result.dtype else None


def _broadcast(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    source = operands[0]
    if source.shape == node.result.shape and node.attrs["dimensions"] == tuple(range(len(source.shape))):
        return [source]
    return None


def _slice(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    return [operands[0]] if operands[0].shape == node.result.shape else None


_RULES: dict[str, Rule] = {
    "broadcast": _broadcast,
    "convert": _convert,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _transpose,
}
# Two of them may not be one (a draw of random bits, an effect), or hold bodies that are dear to compare.
_KEPT = frozenset({"parameter", "while", "conditional", "custom-call", "rng-bit-generator", "scatter", "sort"})


def _shared(graph: Graph) -> Graph:
    """Return the graph with equal nodes made one."""
    known: dict[Any, list[Value]] = {}

    def share(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        key = _key(node, operands)
        if key is None:
            return None
        found = known.get(key)
        if found is None:
            kinds = [(one.dtype, one.shape) for one in node.results]
            found = known[key] = list(b.graph.node(node.opcode, operands, kinds, node.attrs).results)
        return found

    opcodes = {node.opcode for node in graph.nodes} - _KEPT
    return rewrite(graph, dict.fromkeys(opcodes, share), bodies=())


def _key(node: Node, operands: list[Value]) -> Any:
    attrs: list[Any] = []
    for name, value in node.attrs.items():
        if isinstance(value, np.ndarray):
            if value.nbytes > 1 << 16:  # weights are seldom equal, and comparing them costs a copy
                return None
            attrs.append((name, value.dtype.name, value.tobytes()))
        elif isinstance(value, (Graph, list)):
            return None
        else:
            attrs.append((name, repr(value), ""))
    kinds = tuple((one.dtype, one.shape) for one in node.results)
    return node.opcode, tuple(map(id, operands)), kinds, tuple(attrs)


def without_dead(graph: Graph) -> Graph:
    """Return the graph with only the nodes that results depend on, and the parameters."""
    needed: set[int] = set()
    rest = [value.node for value in graph.roots]
    while rest:
        node = rest.pop()
        if node.number not in needed:
            needed.add(node.number)
            rest += [value.node for value in node.operands]
    if all((node.number in needed or node.opcode == "parameter") and node.opcode not in _LOOPS for node in graph.nodes):
        return graph
    out = Graph(graph.name)
    made: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.number not in needed and node.opcode != "parameter":
            continue
        out.origin = node.origin
        attrs = {key: _inner(value) for key, value in node.attrs.items()} if node.opcode in _LOOPS else node.attrs
        copy = out.node(node.opcode, [made[one] for one in node.operands], [
            (one.dtype, one.shape) for one in node.results
        ], attrs)  # fmt: skip
        if node.opcode == "parameter":
            out.parameters.append(copy.result)
        made.update(zip(node.results, copy.results, strict=True))
    out.roots = [made[one] for one in graph.roots]
    out.carry_names(graph, made)
    return out


_LOOPS = ("while", "conditional")


def _inner(value: Any) -> Any:
    if isinstance(value, Graph):
        return without_dead(_shared(value))
    if isinstance(value, list) and value and isinstance(value[0], Graph):
        return [without_dead(_shared(one)) for one in value]
    return value
