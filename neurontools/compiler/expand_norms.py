"""Expansion of batch normalisation: training, inference and gradient."""

from __future__ import annotations

from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["NORMS"]


def _others(value: Value, feature: int) -> list[int]:
    return [axis for axis in range(len(value.shape)) if axis != feature]


def _mean(b: Builder, value: Value, feature: int) -> Value:
    axes = _others(value, feature)
    count = value.size // max(value.shape[feature], 1)  # of nothing the sums are 0, and so is the mean
    total = b.reduce(value, axes, "add", 0.0)
    return b.op("multiply", total, b.like(1.0 / max(count, 1), total))


def _training(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    given, scale, offset = operands
    feature, epsilon = node.attrs["feature"], node.attrs["epsilon"]
    x = b.convert(given, "f32")
    # Two passes: the mean of squares less the square of the mean loses all bits where the mean is large.
    mean = _mean(b, x, feature)
    centred = b.op("subtract", x, b.broadcast(mean, x.shape, (feature,)))
    variance = _mean(b, b.op("multiply", centred, centred), feature)
    out = _scaled(b, centred, variance, scale, offset, feature, epsilon)
    return [b.convert(out, given.dtype), b.convert(mean, scale.dtype), b.convert(variance, scale.dtype)]


def _scaled(
    b: Builder, centred: Value, variance: Value, scale: Value, offset: Value, feature: int, epsilon: float
) -> Value:
    spread = b.op("rsqrt", b.op("add", variance, b.like(epsilon, variance)))
    factor = b.op("multiply", spread, b.convert(scale, "f32"))
    grown = b.op("multiply", centred, b.broadcast(factor, centred.shape, (feature,)))
    return b.op("add", grown, b.broadcast(b.convert(offset, "f32"), centred.shape, (feature,)))


def _inference(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    given, scale, offset, mean, variance = operands
    feature = node.attrs["feature"]
    x = b.convert(given, "f32")
    centred = b.op("subtract", x, b.broadcast(b.convert(mean, "f32"), x.shape, (feature,)))
    out = _scaled(b, centred, b.convert(variance, "f32"), scale, offset, feature, node.attrs["epsilon"])
    return [b.convert(out, given.dtype)]


def _gradient(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    given, scale, mean, variance, output = operands
    feature = node.attrs["feature"]
    x, grad = b.convert(given, "f32"), b.convert(output, "f32")
    axes = _others(x, feature)
    count = x.size // max(x.shape[feature], 1)
    centred = b.op("subtract", x, b.broadcast(b.convert(mean, "f32"), x.shape, (feature,)))
    spread_in = b.convert(variance, "f32")
    spread = b.op("rsqrt", b.op("add", spread_in, b.like(node.attrs["epsilon"], spread_in)))
    normal = b.op("multiply", centred, b.broadcast(spread, x.shape, (feature,)))
    # The input's gradient is what is left of the output's without its mean and its part along the normal values.
    of_scale = b.reduce(b.op("multiply", grad, normal), axes, "add", 0.0)
    of_offset = b.reduce(grad, axes, "add", 0.0)
    share = b.like(1.0 / max(count, 1), of_scale)
    less = b.op("subtract", grad, b.broadcast(b.op("multiply", of_offset, share), x.shape, (feature,)))
    part = b.op("multiply", normal, b.broadcast(b.op("multiply", of_scale, share), x.shape, (feature,)))
    factor = b.op("multiply", spread, b.convert(scale, "f32"))
    out = b.op("multiply", b.op("subtract", less, part), b.broadcast(factor, x.shape, (feature,)))
    return [b.convert(out, given.dtype), b.convert(of_scale, scale.dtype), b.convert(of_offset, scale.dtype)]


NORMS: dict[str, Rule] = {
    "batch-norm-grad": _gradient,
    "batch-norm-inference": _inference,
    "batch-norm-training": _training,
}
