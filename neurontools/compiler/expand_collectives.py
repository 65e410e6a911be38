"""Expansion of collectives among one rank: what a rank alone gets is what it gave."""

from __future__ import annotations

from neurontools.compiler.errors import UnsupportedGraphError
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["COLLECTIVES"]


def _alone(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    ranks = max((len(group) for group in node.attrs["groups"]), default=1)
    if ranks > 1:
        raise UnsupportedGraphError("EUOC002", f"{node.opcode} among {ranks} ranks is not supported: one rank is "
                                    "compiled at a time", node.origin)  # fmt: skip
    return operands


def _permute(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    pairs = node.attrs["pairs"]
    if any(source or target for source, target in pairs):
        raise UnsupportedGraphError("EUOC002", "collective-permute among several ranks is not supported: one rank is "
                                    "compiled at a time", node.origin)  # fmt: skip
    return operands if pairs else [b.like(0, operands[0])]


COLLECTIVES: dict[str, Rule] = {
    "all-gather": _alone,
    "all-reduce": _alone,
    "all-to-all": _alone,
    "collective-broadcast": _alone,
    "collective-permute": _permute,
    "reduce-scatter": _alone,
}
