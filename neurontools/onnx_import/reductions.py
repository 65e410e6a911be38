"""ONNX operators that fold dimensions, or run along one."""

from __future__ import annotations

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import PrimitiveType
from formats.hlo.attributes import WindowDimension
from neurontools.onnx_import.builder import Tensor
from neurontools.onnx_import.indices import first_extreme
from neurontools.onnx_import.registry import Node, operator

__all__ = ["normal_axes", "softmax"]


@operator("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum",
          "ReduceLogSumExp", "ReduceSumSquare")  # fmt: skip
def fold(n: Node) -> Tensor:
    """Fold dimensions: all of them where none is named, unless that is asked to mean none."""
    x, axes = n.input(0), n.numbers("axes", 1)
    keep = bool(n.get("keepdims", 1))
    if not axes:
        if n.get("noop_with_empty_axes", 0):
            # Each element alone: a square, a logarithm or an absolute value is taken all the same.
            return _folded(n, x.unsqueeze(0), [0], keep=False)
        axes = list(range(x.rank))
    return _folded(n, x, axes, keep=keep)


def _folded(n: Node, x: Tensor, axes: list[int], *, keep: bool) -> Tensor:
    match n.op.removeprefix("Reduce"):
        case "Max":
            return x.reduce("maximum", axes, keep=keep)
        case "Min":
            return x.reduce("minimum", axes, keep=keep)
        case "Prod":
            return x.reduce("multiply", axes, keep=keep)
        case "Mean":
            return x.mean(axes, keep=keep)
        case "L1":
            return x.unary("abs").sum(axes, keep=keep)
        case "L2":
            total = (x * x).sum(axes, keep=keep)
            if total.kind.is_integral:  # HLO has no root of integers
                return total.cast(PrimitiveType.F64).unary("sqrt").cast(total.kind)
            return total.unary("sqrt")
        case "SumSquare":
            return (x * x).sum(axes, keep=keep)
        case "LogSum":
            return x.sum(axes, keep=keep).unary("log")
        case "LogSumExp":
            top = x.reduce("maximum", axes, keep=True)
            # An infinite top would make infinity less infinity.
            finite = top.unary("is-finite").where(top, 0)
            total = (x - finite).unary("exponential").sum(axes, keep=keep).unary("log")
            return total + (finite if keep else finite.reshape(total.shape))
        case _:
            return x.sum(axes, keep=keep)


@operator("ArgMax", "ArgMin")
def extreme(n: Node) -> Tensor:
    """Return where the extreme is: the first, or the last."""
    x, axis = n.input(0), n.input(0).axis(n.get("axis", 0))
    last = bool(n.get("select_last_index", 0))
    at = first_extreme(x.reverse(axis) if last else x, axis, largest=n.op == "ArgMax")
    found = (x.shape[axis] - 1) - at if last else at
    return found.unsqueeze(axis) if n.get("keepdims", 1) else found


def softmax(x: Tensor, axes: list[int], *, log: bool = False) -> Tensor:
    """Return exponentials that sum to one, or their logarithms."""
    shifted = x - x.reduce("maximum", axes, keep=True)
    powers = shifted.unary("exponential")
    total = powers.sum(axes, keep=True)
    return shifted - total.unary("log") if log else powers / total


def normal_axes(n: Node, x: Tensor) -> list[int]:
    """Return the dimensions of a softmax: one since version 13, before that all from one on."""
    axis = x.axis(n.get("axis", -1 if n.version >= 13 else 1))
    return [axis] if n.version >= 13 else list(range(axis, x.rank))


@operator("Softmax", "LogSoftmax")
def soft_maximum(n: Node) -> Tensor:
    """Return shares, or their logarithms."""
    return softmax(n.input(0), normal_axes(n, n.input(0)), log=n.op == "LogSoftmax")


@operator("Hardmax")
def hard_maximum(n: Node) -> Tensor:
    """Return one where the first maximum is."""
    x = n.input(0)
    if n.version < 13:
        raise UnsupportedError("Hardmax before version 13 is not modelled")
    axis = x.axis(n.get("axis", -1))
    at = first_extreme(x, axis, largest=True)
    kept = [dim for dim in range(x.rank) if dim != axis]
    return n.to.iota(PrimitiveType.S64, x.shape, axis).equals(at.put(x.shape, kept)).cast(x.kind)


@operator("CumSum", "CumProd")
def cumulative(n: Node) -> Tensor:
    """Fold all elements up to each one."""
    x = n.input(0)
    axis = x.axis(int(np.asarray(n.static(1)).reshape(())))
    if not x.shape[axis]:
        return x
    opcode, neutral = ("add", 0) if n.op == "CumSum" else ("multiply", 1)
    size, exclusive = x.shape[axis], n.get("exclusive", 0)
    low, high = (0, size - 1) if n.get("reverse", 0) else (size - 1, 0)
    shift = (-1 if n.get("reverse", 0) else 1) if exclusive else 0
    window = [WindowDimension() for _ in x.shape]
    window[axis] = WindowDimension(size=size, padding_low=low + shift, padding_high=high - shift)
    initial = n.to.constant(neutral, x.kind)
    return n.to.emit("reduce-window", [x, initial], window=tuple(window), called=[n.to.body(opcode, x.kind)])
