"""Folds of 64-bit integers: values that begin a minimum or maximum, where 32 bits do not hold them.

64-bit integers are held by their lower words (compiler.md 5.2), and that of the largest one is -1. Nothing that is held
lies beyond the largest or smallest of 32 bits, so these begin the fold as well.
"""

from __future__ import annotations

import numpy as np

from neurontools.compiler.element_types import element_type
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["FOLDS"]


def _fold(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    body, begin = node.attrs["body"], operands[-1]
    kind = element_type(begin.dtype)
    if kind.given == kind.storage.size or len(operands) != 2 or begin.node.opcode != "constant":
        return None
    held = np.iinfo(kind.storage.numpy_name)
    data = begin.node.attrs["data"]
    clipped = np.clip(data, data.dtype.type(held.min), data.dtype.type(held.max))
    if body.roots[0].node.opcode not in ("minimum", "maximum") or np.array_equal(clipped, data):
        return None
    result = node.result
    return [b.graph.add(node.opcode, (operands[0], b.constant(clipped, begin.dtype)), result.dtype, result.shape,
                        **node.attrs)]  # fmt: skip


FOLDS: dict[str, Rule] = {"reduce": _fold, "reduce-window": _fold}
