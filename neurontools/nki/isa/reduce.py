"""Reductions along the free dimensions."""

from __future__ import annotations

import operator as integers
from collections.abc import Sequence
from math import prod
from typing import Any

from formats.isa import ReduceDims, TensorReduce
from neurontools.nki.isa.checks import alu, bitvec_dtypes, flag, same_partitions, tile
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.refusals import reject
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, threads, tracer

__all__ = ["tensor_reduce", "trailing_axes"]

_FIRST, _LAST = ReduceDims.X, ReduceDims.XYZW

# Source: hardware.md 7.5, column "reduce?".
REDUCING = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "logical_and",
        "logical_or",
        "logical_xor",
        "abs_max",
        "abs_min",
    }
)


def trailing_axes(t: Tracer, instruction: str, shape: tuple[int, ...], axis: Any) -> int:
    """Return the first reduced axis; the axes must be the last ones, and never the partition dimension."""
    given = list(axis) if isinstance(axis, Sequence) else [axis]
    try:
        # -1 for an axis outside of the shape, which the next line refuses
        axes = sorted({integers.index(one) % len(shape) if -len(shape) <= one < len(shape) else -1 for one in given})
    except TypeError:
        raise reject(t, instruction, "axis", repr(axis), "must be an integer or a list of them") from None
    if not axes or axes[0] < 1 or axes != list(range(axes[0], len(shape))):
        raise reject(t, instruction, "axis", axis,
                     f"must be the last dimensions of shape {shape}, without the partition dimension 0")  # fmt: skip
    return axes[0]


def merge_dims(dims: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return (step, count) pairs, outermost first, with dims that run on merged and dims of 1 left out."""
    merged: list[tuple[int, int]] = []
    for step, count in dims:
        if count == 1:
            continue
        if merged and merged[-1][0] == step * count:
            merged[-1] = (step, merged[-1][1] * count)
        else:
            merged.append((step, count))
    return tuple(merged)


def tensor_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    axis: Any,
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """Fold the last dimensions of a tile, left to right in fp32; Vector engine.

    The word folds its innermost pattern dimensions, so kept and folded dimensions are merged apart from each other.
    """
    t = threads.tracer or tracer()
    instruction = "tensor_reduce"
    key: tuple[Any, ...] | None = None
    if axis.__class__ is int and negate.__class__ is bool and keepdims.__class__ is bool:
        try:
            key = instruction, dst._kind or dst._find_kind(), op, data._kind or data._find_kind(), axis, negate
            known = t.known.get(key)
        except (AttributeError, TypeError):  # something else than a tensor or an operator
            key = known = None
        if known is not None:
            folds, merged, its = known
            src = data._view or data.base_view
            if merged is not None:
                src = src._replace(dims=merged)
            views = {"src": src, "dst": dst._view or dst.base_view}
            return NkiInstruction(t.compute(TensorReduce, "DVE", views,
                                            {"op": its, "dims": folds, "negate": int(negate)}, name))  # fmt: skip
    src, out = tile(t, instruction, "data", data), tile(t, instruction, "dst", dst)
    same_partitions(t, instruction, "dst and data", out, src)
    operator = alu(t, instruction, "op", op)
    if operator.name not in REDUCING:
        raise reject(t, instruction, "op", f"nl.{operator.name}", "is no reduction operator")
    if operator.kind == "bitvec":
        bitvec_dtypes(t, instruction, operator, dst=dst, data=data)
        if negate:
            raise reject(t, instruction, "negate", True, "applies to arithmetic operators only")
    first = trailing_axes(t, instruction, data.shape, axis)
    kept = prod(data.shape[1:first])
    if dst.free_size != kept:
        raise reject(t, instruction, "elements per partition of dst", dst.free_size,
                     f"must be {kept} for axis {axis} of shape {data.shape}")  # fmt: skip
    folded = merge_dims(src.dims[first - 1 :]) or ((1, 1),)
    dims = _FIRST + len(folded) - 1
    if dims > _LAST:
        raise reject(t, instruction, "axis", axis, "folds more than four separate dimensions")
    merged = merge_dims(src.dims[: first - 1]) + folded
    if merged != src.dims:
        src = src._replace(dims=merged)
    negative = flag(t, instruction, "negate", negate)
    flag(t, instruction, "keepdims", keepdims)  # dst has a shape already
    fields: dict[str, object] = {"op": operator.alu, "dims": ReduceDims(dims), "negate": negative}
    if key is not None:
        t.known.note(key, (fields["dims"], None if merged == data.base_view.dims else merged, operator.alu))
    return NkiInstruction(t.compute(TensorReduce, "DVE", {"src": src, "dst": out}, fields, name))
