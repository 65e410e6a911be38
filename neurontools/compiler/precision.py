"""Pass `precision`: casts that options ask for, each noted in a ledger.

`matmult` casts the operands of products, `all` every float operand of an element-wise operation too; inputs and
outputs keep their types. Sums are kept in fp32 either way. Source: compiler.md 5.3.
"""

from __future__ import annotations

from typing import Any

from formats.named_tuple import NamedTuple
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder, Rule, rewrite

__all__ = ["Cast", "cast_products"]

_TYPES = {"bf16": "bf16", "fp16": "f16", "fp8_e4m3": "f8e4m3"}
# Their result is about the operand's own bits, or is a rounding already.
_UNTOUCHED = frozenset({"convert", "is-finite", "reduce-precision", "copy"})


class Cast(NamedTuple):
    """One cast that an option put in: the operation, which operand, from and to which type, where it came from."""

    operation: str
    opcode: str
    operand: int
    source: str
    target: str
    file: str
    line: int


def cast_products(graph: Graph, options: CompileOptions, ledger: list[Cast]) -> Graph:
    """Return the graph with the casts of --auto-cast."""
    rules: dict[str, Rule] = {}
    if options.auto_cast == "none":
        return graph
    caster = _Caster(options, ledger)
    rules["dot"] = caster.product
    if options.auto_cast == "all":
        rules |= dict.fromkeys(ELEMENTWISE - _UNTOUCHED, caster.elementwise)
    return rewrite(graph, rules)


class _Caster:
    def __init__(self, options: CompileOptions, ledger: list[Cast]) -> None:
        self.options, self.ledger = options, ledger

    def product(self, b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        if all(one.dtype != "f32" for one in operands):
            return None
        cast = [self._cast(b, node, number, one) for number, one in enumerate(operands)]
        return [b.graph.add("dot", cast, node.result.dtype, node.result.shape, **node.attrs)]

    def elementwise(self, b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        """Round the operands; the operation itself computes in fp32, as the engines do."""
        if all(one.dtype != "f32" for one in operands):
            return None
        cast = [
            b.convert(self._cast(b, node, number, one), "f32") if one.dtype == "f32" else one
            for number, one in enumerate(operands)
        ]
        attrs: dict[str, Any] = node.attrs
        return [b.graph.add(node.opcode, cast, node.result.dtype, node.result.shape, **attrs)]

    def _cast(self, b: Builder, node: Node, number: int, value: Value) -> Value:
        if value.dtype != "f32":
            return value
        kind = self.options.auto_cast_type
        origin = node.origin
        self.ledger.append(Cast(origin.name, node.opcode, number, "f32", kind, origin.file, origin.line))
        if kind == "tf32":
            # 10 bits of mantissa in 32: the value is rounded, the type stays.
            return b.op("reduce-precision", value, exponent_bits=8, mantissa_bits=10)
        return b.convert(value, _TYPES[kind])
