"""The compiler's own graph: nodes in program order, values with an element type and a shape, nested bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from formats.named_tuple import NamedTuple

__all__ = ["Graph", "Named", "Node", "Origin", "Value"]


class Origin(NamedTuple):
    """Say where a node comes from: the operation of the given module, and the line of the model's source."""

    name: str
    file: str
    line: int


class Value:
    """Name one result of a node, with its element type as HLO spells it and its shape."""

    __slots__ = ("dtype", "index", "node", "shape")

    def __init__(self, node: Node, index: int, dtype: str, shape: tuple[int, ...]) -> None:
        self.node, self.index, self.dtype, self.shape = node, index, dtype, shape

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def label(self) -> str:
        """Return the value as dumps print it."""
        behind = f".{self.index}" if len(self.node.results) > 1 else ""
        return f"%{self.node.number}{behind}"

    def __repr__(self) -> str:
        return f"<{self.label} {self.dtype}[{','.join(map(str, self.shape))}] of {self.node.opcode}>"


class Node:
    """Hold one operation: opcode as HLO spells it, operands, what else it says, results and origin."""

    __slots__ = ("attrs", "number", "opcode", "operands", "origin", "results")

    def __init__(
        self,
        number: int,
        opcode: str,
        operands: Sequence[Value],
        kinds: Iterable[tuple[str, tuple[int, ...]]],
        origin: Origin,
        attrs: dict[str, Any],
    ) -> None:
        self.number, self.opcode, self.operands, self.origin, self.attrs = (
            number, opcode, tuple(operands), origin, attrs,
        )  # fmt: skip
        self.results = tuple(Value(self, i, dtype, tuple(shape)) for i, (dtype, shape) in enumerate(kinds))

    @property
    def result(self) -> Value:
        """Return the first result, of most nodes the only one."""
        return self.results[0]

    def __repr__(self) -> str:
        return f"<node {self.number} {self.opcode} of {self.origin.name}>"


class Named(NamedTuple):
    """Say which values an operation of the given module became; None stands for one that nothing holds any more.

    `path` names the calls, loops and branches around the operation, with `/` between them.
    """

    path: str
    opcode: str
    origin: Origin
    results: tuple[Value | None, ...]


class Graph:
    """Hold nodes in an order in which operands stand before their uses, the parameters, and the values given back.

    `named` has the operations of the given module in its order; passes that make another graph carry it over.
    """

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.parameters: list[Value] = []
        self.roots: list[Value] = []
        self.named: list[Named] = []
        self.origin = Origin(name, "?", 0)

    def add(
        self,
        opcode: str,
        operands: Sequence[Value],
        dtype: str,
        shape: Sequence[int],
        **attrs: Any,
    ) -> Value:
        """Append a node of one result, from the current origin; return its value."""
        return self.node(opcode, operands, [(dtype, tuple(shape))], attrs).result

    def node(
        self,
        opcode: str,
        operands: Sequence[Value],
        kinds: Iterable[tuple[str, tuple[int, ...]]],
        attrs: dict[str, Any],
    ) -> Node:
        """Append a node of any number of results."""
        made = Node(len(self.nodes), opcode, operands, kinds, self.origin, attrs)
        self.nodes.append(made)
        return made

    def parameter(self, dtype: str, shape: Sequence[int], **attrs: Any) -> Value:
        """Append a parameter."""
        value = self.add("parameter", (), dtype, shape, index=len(self.parameters), **attrs)
        self.parameters.append(value)
        return value

    def carry_names(self, old: Graph, made: Mapping[Value, Value]) -> None:
        """Take over the names of a graph that this one was made from."""
        self.named = [
            one._replace(results=tuple(None if value is None else made.get(value) for value in one.results))
            for one in old.named
        ]

    def text(self, indent: str = "") -> str:
        """Return the graph as `--dump-after` prints it."""
        lines = [f"{indent}graph {self.name} {{"]
        for node in self.nodes:
            kinds = ", ".join(f"{one.dtype}[{','.join(map(str, one.shape))}]" for one in node.results)
            operands = ", ".join(one.label for one in node.operands)
            notes = "".join(f", {key}={_shown(value)}" for key, value in node.attrs.items() if not _is_body(value))
            lines.append(f"{indent}  %{node.number} = {kinds} {node.opcode}({operands}){notes}  // {node.origin.name}")
            for value in node.attrs.values():
                for body in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(body, Graph):
                        lines.append(body.text(indent + "    "))
        lines.append(f"{indent}  return {', '.join(one.label for one in self.roots)}")
        lines.append(f"{indent}}}")
        return "\n".join(lines)


def _is_body(value: Any) -> bool:
    return isinstance(value, Graph) or (
        isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], Graph)
    )


def _shown(value: Any) -> str:
    size = getattr(value, "size", None)
    if isinstance(size, int) and size > 8:
        return f"<{size} elements>"
    return str(value.tolist()) if hasattr(value, "tolist") else str(value)
