"""Tools of the passes that make a graph from another: a builder of common nodes, and the walk over all nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from neurontools.compiler.element_types import element_type
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.errors import no_lowering
from neurontools.compiler.graph import Graph, Node, Value

__all__ = ["LOOPS", "Builder", "Rule", "graphs_of", "rewrite", "scalar_body"]

LOOPS = ("while", "conditional")  # whose attributes are graphs that are lowered as they stand


class Builder:
    """Append nodes to a graph by their usual names."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def constant(self, data: Any, dtype: str) -> Value:
        """Append a constant."""
        array = np.asarray(data).astype(element_type(dtype).numpy)
        return self.graph.add("constant", (), dtype, array.shape, data=array)

    def full(self, number: float, dtype: str, shape: Sequence[int]) -> Value:
        """Append one number repeated."""
        return self.broadcast(self.constant(number, dtype), shape, ())

    def like(self, number: float, value: Value) -> Value:
        """Append a number in the type and shape of a value."""
        return self.full(number, value.dtype, value.shape)

    def op(self, opcode: str, *operands: Value, dtype: str | None = None, **attrs: Any) -> Value:
        """Append an element-wise node; its type is that of the last operand unless said."""
        last = operands[-1]
        return self.graph.add(opcode, operands, dtype or last.dtype, last.shape, **attrs)

    def compare(self, direction: str, left: Value, right: Value) -> Value:
        """Append a comparison."""
        return self.op("compare", left, right, dtype="pred", direction=direction, type="")

    def convert(self, value: Value, dtype: str) -> Value:
        """Append a conversion, unless the type is that already."""
        return value if value.dtype == dtype else self.op("convert", value, dtype=dtype)

    def broadcast(self, value: Value, shape: Sequence[int], dimensions: Sequence[int]) -> Value:
        """Append a broadcast."""
        return self.graph.add("broadcast", (value,), value.dtype, shape, dimensions=tuple(dimensions))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Append a reshape, unless the shape is that already."""
        return value if value.shape == tuple(shape) else self.graph.add("reshape", (value,), value.dtype, shape)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Append a transpose, unless the order is that already."""
        if tuple(order) == tuple(range(len(value.shape))):
            return value
        shape = tuple(value.shape[axis] for axis in order)
        return self.graph.add("transpose", (value,), value.dtype, shape, permutation=tuple(order))

    def slice(self, value: Value, starts: Sequence[int], shape: Sequence[int], strides: Sequence[int] = ()) -> Value:
        """Append a slice of `shape` elements."""
        steps = tuple(strides) or (1,) * len(shape)
        return self.graph.add("slice", (value,), value.dtype, shape, starts=tuple(starts), strides=steps)

    def part(self, value: Value, axis: int, start: int, count: int) -> Value:
        """Append a slice along one dimension."""
        starts = [start if i == axis else 0 for i in range(len(value.shape))]
        shape = [count if i == axis else extent for i, extent in enumerate(value.shape)]
        return self.slice(value, starts, shape)

    def reverse(self, value: Value, dimensions: Sequence[int]) -> Value:
        """Append a reversal."""
        if not dimensions:
            return value
        return self.graph.add("reverse", (value,), value.dtype, value.shape, dimensions=tuple(dimensions))

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        """Append a concatenation."""
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(one.shape[axis] for one in values)
        return self.graph.add("concatenate", values, values[0].dtype, shape, dimension=axis)

    def pad(self, value: Value, filler: Value, padding: Sequence[tuple[int, int, int]]) -> Value:
        """Append a pad, unless nothing is added or taken away."""
        if not any(any(one) for one in padding):
            return value
        shape = [
            low + high + (extent + (extent - 1) * inner if extent else 0)
            for extent, (low, high, inner) in zip(value.shape, padding, strict=True)
        ]
        return self.graph.add("pad", (value, filler), value.dtype, shape, padding=tuple(padding))

    def iota(self, dtype: str, shape: Sequence[int], dimension: int) -> Value:
        """Append an iota."""
        return self.graph.add("iota", (), dtype, shape, dimension=dimension)

    def reduce(self, value: Value, dimensions: Sequence[int], fold: str, start: float) -> Value:
        """Append a reduction by one operation."""
        shape = [extent for axis, extent in enumerate(value.shape) if axis not in dimensions]
        first = self.constant(start, value.dtype)
        body = scalar_body(fold, value.dtype)
        return self.graph.add("reduce", (value, first), value.dtype, shape, dimensions=tuple(dimensions), body=body)

    def apply(self, body: Graph, operands: Sequence[Value], shape: Sequence[int]) -> list[Value]:
        """Append a body of scalar operations for arrays of one shape; return its results."""
        made: dict[Value, Value] = dict(zip(body.parameters, operands, strict=True))
        for node in body.nodes:
            if node.opcode == "parameter":
                continue
            result = node.result
            if node.opcode == "constant":
                value = self.constant(node.attrs["data"], result.dtype)
                made[result] = self.broadcast(value, shape, ())
            elif node.opcode in ("reshape", "broadcast"):
                made[result] = made[node.operands[0]]
            elif node.opcode not in ELEMENTWISE and node.opcode != "bitcast-convert":
                raise no_lowering(node, f"{node.opcode} in a body of scalars")
            else:
                mine = [made[one] for one in node.operands]
                made[result] = self.graph.add(node.opcode, mine, result.dtype, shape, **node.attrs)
        return [made[one] for one in body.roots]


def scalar_body(opcode: str, dtype: str) -> Graph:
    """Return a body that is one operation of two scalars."""
    body = Graph(opcode)
    left, right = body.parameter(dtype, ()), body.parameter(dtype, ())
    body.roots = [body.add(opcode, (left, right), dtype, ())]
    return body


def graphs_of(graph: Graph) -> Iterator[Graph]:
    """Yield a graph and the bodies of its loops and branches."""
    yield graph
    for node in graph.nodes:
        if node.opcode in LOOPS:
            for value in node.attrs.values():
                for body in value if isinstance(value, list) else (value,):
                    if isinstance(body, Graph):
                        yield from graphs_of(body)


Rule = Callable[[Builder, Node, list[Value]], list[Value] | None]


def rewrite(graph: Graph, rules: dict[str, Rule], *, bodies: Sequence[str] = LOOPS) -> Graph:
    """Return the graph with the nodes of some opcodes replaced; a rule that returns None leaves its node.

    Bodies of loops and branches are rewritten too. A graph without such nodes is given back as it is.
    """
    if not any(node.opcode in rules or node.opcode in bodies for node in graph.nodes):
        return graph
    out = Graph(graph.name)
    builder = Builder(out)
    made: dict[Value, Value] = {}
    for node in graph.nodes:
        out.origin = node.origin
        operands = [made[one] for one in node.operands]
        rule = rules.get(node.opcode)
        results = rule(builder, node, operands) if rule is not None else None
        if results is None:
            attrs = node.attrs
            if node.opcode in bodies:
                attrs = {key: _inside(value, rules) for key, value in attrs.items()}
            kinds = [(one.dtype, one.shape) for one in node.results]
            copy = out.node(node.opcode, operands, kinds, attrs)
            if node.opcode == "parameter":
                out.parameters.append(copy.result)
            results = list(copy.results)
        made.update(zip(node.results, results, strict=True))
    out.roots = [made[one] for one in graph.roots]
    out.carry_names(graph, made)
    return out


def _inside(value: Any, rules: dict[str, Rule]) -> Any:
    if isinstance(value, Graph):
        return rewrite(value, rules)
    if isinstance(value, list) and value and isinstance(value[0], Graph):
        return [rewrite(one, rules) for one in value]
    return value
