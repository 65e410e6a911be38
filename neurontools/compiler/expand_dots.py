"""Expansion of products of integers: the array multiplies floats, so wide integers are multiplied and added one by one.

Products of 8-bit integers that fp32 sums hold exactly stay products.
"""

from __future__ import annotations

from math import prod

from neurontools.compiler.element_types import element_type, is_float
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["DOTS"]

_EXACT = 1 << 24  # integers up to this are floats


def _dot(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    kinds = [one.dtype for one in operands]
    if all(is_float(one) for one in kinds):
        return None
    wanted = node.result.dtype
    attrs = node.attrs
    depth = prod(operands[0].shape[axis] for axis in attrs["lhs_contracting"])
    small = all(element_type(one).bits <= 8 and not is_float(one) for one in kinds)
    # A product of two bytes has 16 bits at most, so `depth` of them stay below 2^24.
    if small and depth << 16 <= _EXACT and element_type(wanted).bits == 32:
        return None
    if is_float(wanted) or any(is_float(one) for one in kinds):
        left, right = (b.convert(one, "f32") for one in operands)
        made = b.graph.add("dot", (left, right), "f32", node.result.shape, **attrs)
        return [b.convert(made, wanted)]
    left, right = (b.convert(one, wanted) for one in operands)
    if wanted == "pred":
        left, right = (b.convert(one, "s32") for one in (left, right))  # a sum of truths counts, and any is true
    lhs = [axis for axis in range(len(left.shape)) if axis not in (*attrs["lhs_batch"], *attrs["lhs_contracting"])]
    rhs = [axis for axis in range(len(right.shape)) if axis not in (*attrs["rhs_batch"], *attrs["rhs_contracting"])]
    left = b.transpose(left, (*attrs["lhs_batch"], *lhs, *attrs["lhs_contracting"]))
    right = b.transpose(right, (*attrs["rhs_batch"], *rhs, *attrs["rhs_contracting"]))
    batch, summed = len(attrs["lhs_batch"]), len(attrs["lhs_contracting"])
    middle = batch + len(lhs)
    rank = middle + len(rhs) + summed
    shape = (*left.shape[:middle], *right.shape[batch:])
    inner = range(rank - summed, rank)
    wide = b.broadcast(left, shape, (*range(middle), *inner))
    tall = b.broadcast(right, shape, (*range(batch), *range(middle, middle + len(rhs)), *inner))
    total = b.reduce(b.op("multiply", wide, tall), tuple(inner), "add", 0)
    return [b.convert(total, wanted)]


DOTS: dict[str, Rule] = {"dot": _dot}
