"""A graph as a Python function that a person can read: one line a node."""

from __future__ import annotations

import re

from neurontools.compiler.graph import Graph, Node, Value

__all__ = ["listing_of"]


def _name(value: Value) -> str:
    return "v" + value.label[1:].replace(".", "_")


def _line(node: Node) -> str:
    results = ", ".join(map(_name, node.results))
    operands = ", ".join(map(_name, node.operands))
    notes = "".join(
        f", {key}={value}" for key, value in node.attrs.items() if isinstance(value, (int, float, str, tuple))
    )
    kinds = ", ".join(f"{one.dtype}{list(one.shape)}" for one in node.results)
    return f"    {results} = {node.opcode.replace('-', '_')}({operands}{notes})  # {kinds}, %{node.origin.name}"


def listing_of(graph: Graph) -> str:
    """Return the listing of a graph; it is for reading, nothing defines the operations."""
    name = re.sub(r"\W", "_", graph.name) or "main"
    head = f"def {name}({', '.join(map(_name, graph.parameters))}):"
    body = [_line(node) for node in graph.nodes if node.opcode != "parameter"]
    return "\n".join([head, *body, f"    return {', '.join(map(_name, graph.roots))}", ""])
