"""Reductions over the last free dimensions, and what is built of them."""

from __future__ import annotations

from math import prod as product
from typing import Any

from neurontools.nki.dtype import DType, dtype_of, float32
from neurontools.nki.isa.activations import activation
from neurontools.nki.isa.checks import flag
from neurontools.nki.isa.matmul import nc_matmul
from neurontools.nki.isa.reduce import tensor_reduce, trailing_axes
from neurontools.nki.isa.vector import reciprocal, tensor_scalar
from neurontools.nki.language.elementwise import combine, unary
from neurontools.nki.language.movement import cast, in_sbuf, load, transpose
from neurontools.nki.operators import OPERATORS
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["all", "matmul", "max", "mean", "min", "prod", "rms_norm", "softmax", "sum", "var"]


def _tile(t: Tracer, function: str, argument: str, x: Any) -> NkiTensor:
    if not isinstance(x, NkiTensor):
        raise t.error(f"nl.{function}: {argument} is {x!r}, must be a tensor")
    return x if x.on_chip else load(x)


def _reduce(function: str, op: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> NkiTensor:
    """Return x folded by one TENSOR_REDUCE; a tile keeps two dimensions at least."""
    t = tracer()
    x = _tile(t, function, "x", x)
    first = trailing_axes(t, f"nl.{function}", x.shape, axis)
    folded = x.ndim - first
    if flag(t, f"nl.{function}", "keepdims", keepdims):
        shape = x.shape[:first] + (1,) * folded
    else:
        shape = x.shape[:first] if first > 1 else (x.shape[0], 1)
    result = new_tensor(t, shape, x.dtype if dtype is None else dtype_of(dtype))
    tensor_reduce(result, OPERATORS[op], x, axis)
    return result


def sum(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the sum along the last axes, left to right in fp32."""
    return _reduce("sum", "add", x, axis, dtype, keepdims)


def max(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the maximum along the last axes."""
    return _reduce("max", "maximum", x, axis, dtype, keepdims)


def min(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the minimum along the last axes."""
    return _reduce("min", "minimum", x, axis, dtype, keepdims)


def prod(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the product along the last axes, left to right in fp32."""
    return _reduce("prod", "multiply", x, axis, dtype, keepdims)


def all(x: NkiTensor, axis: Any, dtype: Any = None) -> NkiTensor:
    """Return 1 where all elements along the last axes are not zero, else 0."""
    return _reduce("all", "logical_and", x, axis, dtype, False)


def _extent(t: Tracer, function: str, x: NkiTensor, axis: Any) -> int:
    return product(x.shape[trailing_axes(t, f"nl.{function}", x.shape, axis) :])


def mean(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the mean along the last axes: an fp32 sum times 1/n."""
    t = tracer()
    x = _tile(t, "mean", "x", x)
    # in fp32 whatever the type of x: a sum of many bfloat16 numbers stands still
    total = _reduce("mean", "add", x, axis, float32, keepdims)
    result = new_tensor(t, total.shape, x.dtype if dtype is None else dtype_of(dtype))
    tensor_scalar(result, total, OPERATORS["multiply"], 1.0 / _extent(t, "mean", x, axis))
    return result


def var(x: NkiTensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> NkiTensor:
    """Return the variance (divided by n) along the last axes, which stay with size 1 whatever `keepdims` says."""
    t = tracer()
    x = _tile(t, "var", "x", x)
    centred = combine(t, OPERATORS["subtract"], x, mean(x, axis, float32, True), dtype=float32)
    square = combine(t, OPERATORS["multiply"], centred, centred, dtype=float32)
    return mean(square, axis, x.dtype if dtype is None else dtype, True)


def softmax(x: NkiTensor, axis: Any = -1, dtype: Any = None) -> NkiTensor:
    """Return exp(x - max) / sum(exp(x - max)) along the last axes, in fp32 inside."""
    t = tracer()
    x = _tile(t, "softmax", "x", x)
    kind = x.dtype if dtype is None else dtype_of(dtype)
    # with the maximum at 0 no power overflows, and the sum is at least 1
    shifted = combine(t, OPERATORS["subtract"], x, max(x, axis, float32, True), dtype=float32)
    weights = unary(OPERATORS["exp"], shifted)
    total = sum(weights, axis, float32, True)
    reciprocal(total, total)
    return combine(t, OPERATORS["multiply"], weights, total, dtype=kind)


def rms_norm(
    x: NkiTensor, w: NkiTensor, axis: Any, n: int, epsilon: float = 1e-06, dtype: Any = None, compute_dtype: Any = None
) -> NkiTensor:
    """Return x / sqrt(sum(x * x) / n + epsilon) * w along the last axes; the middle is of `compute_dtype` (fp32)."""
    t = tracer()
    x = _tile(t, "rms_norm", "x", x)
    w = _tile(t, "rms_norm", "w", w)
    middle: DType = float32 if compute_dtype is None else dtype_of(compute_dtype)
    square = combine(t, OPERATORS["multiply"], x, x, dtype=middle)
    scale = sum(square, axis, float32, True)
    tensor_scalar(scale, scale, OPERATORS["multiply"], 1.0 / n, op1=OPERATORS["add"], operand1=epsilon)
    activation(scale, OPERATORS["rsqrt"], scale)
    normal = combine(t, OPERATORS["multiply"], x, scale, dtype=middle)
    return combine(t, OPERATORS["multiply"], normal, w, dtype=x.dtype if dtype is None else dtype_of(dtype))


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False) -> NkiTensor:
    """Return x @ y (x.T @ y with `transpose_x`, else x is transposed first) as an fp32 tile in PSUM."""
    t = tracer()
    x, y = _tile(t, "matmul", "x", x), _tile(t, "matmul", "y", y)
    for argument, one in (("x", x), ("y", y)):
        if one.ndim != 2:
            raise t.error(f"nl.matmul: {argument} is of shape {one.shape}, must have two dimensions")
    turned = flag(t, "nl.matmul", "transpose_x", transpose_x)
    if x.shape[0 if turned else 1] != y.shape[0]:
        raise t.error(f"nl.matmul: x of shape {x.shape}{', transposed,' if turned else ''} does not multiply y of "
                      f"shape {y.shape}")  # fmt: skip
    x, y = in_sbuf(t, x), in_sbuf(t, y)
    if not turned:
        kind = x.dtype
        x = cast(t, in_sbuf(t, transpose(x)), kind)
    result = new_tensor(t, (x.shape[1], y.shape[1]), float32, MemoryRegion.psum)
    nc_matmul(result, x, y)
    return result
