"""ONNX operators that normalise."""

from __future__ import annotations

from formats.errors import UnsupportedError
from formats.hlo import PrimitiveType
from formats.hlo.attributes import WindowDimension
from neurontools.onnx_import.builder import Tensor
from neurontools.onnx_import.registry import Node, operator

__all__: list[str] = []


def _channels(values: Tensor, x: Tensor) -> Tensor:
    return values.put(x.shape, (1,))


@operator("BatchNormalization")
def batch_normalization(n: Node) -> Tensor | tuple[Tensor, ...]:
    """Normalise channels by given means and variances, or in training by those of the batch."""
    x, scale, bias, mean, variance = (n.input(each) for each in range(5))
    epsilon: float = n.get("epsilon", 1e-5)
    if n.get("training_mode", 0):
        axes = [dim for dim in range(x.rank) if dim != 1]
        now = x.mean(axes)
        centred = x - _channels(now, x)
        spread = (centred * centred).mean(axes)
        momentum: float = n.get("momentum", 0.9)
        y = centred / (_channels(spread, x) + epsilon).unary("sqrt") * _channels(scale, x) + _channels(bias, x)
        return y, mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum)
    root = (_channels(variance, x) + epsilon).unary("sqrt")
    return (x - _channels(mean, x)) / root * _channels(scale, x) + _channels(bias, x)


@operator("InstanceNormalization")
def instance_normalization(n: Node) -> Tensor:
    """Normalise each channel of each instance."""
    x, scale, bias = (n.input(each) for each in range(3))
    axes = list(range(2, x.rank))
    centred = x - x.mean(axes, keep=True)
    epsilon: float = n.get("epsilon", 1e-5)
    root = ((centred * centred).mean(axes, keep=True) + epsilon).unary("sqrt")
    return centred / root * _channels(scale, x) + _channels(bias, x)


@operator("LayerNormalization")
def layer_normalization(n: Node) -> tuple[Tensor, ...]:
    """Normalise everything from one dimension on, in float32 where that is wider."""
    x, scale, bias = n.input(0), n.input(1), n.optional(2)
    axes = list(range(x.axis(n.get("axis", -1)), x.rank))
    wide = x.cast(PrimitiveType.F32) if x.kind.bits < 32 else x
    mean = wide.mean(axes, keep=True)
    centred = wide - mean
    inverse = 1 / ((centred * centred).mean(axes, keep=True) + n.get("epsilon", 1e-5)).unary("sqrt")
    y = (centred * inverse).cast(x.kind) * scale
    return (y if bias is None else y + bias), mean, inverse


@operator("LpNormalization")
def lp_normalization(n: Node) -> Tensor:
    """Divide by the norm along one dimension."""
    x, axis = n.input(0), n.get("axis", -1)
    if n.get("p", 2) not in (1, 2):
        raise UnsupportedError(f"LpNormalization with p {n.get('p')} is not modelled")
    if n.get("p", 2) == 1:
        norm = x.unary("abs").sum([axis], keep=True)
    else:
        norm = (x * x).sum([axis], keep=True).unary("sqrt")
    # Nothing to scale: ONNX's reference has 0 where a division would have NaN.
    return norm.equals(0).where(n.to.constant(0, x.kind).expand(x.shape), x / norm)


@operator("LRN")
def local_response(n: Node) -> Tensor:
    """Divide by the sum of squares of the channels around."""
    x, size = n.input(0), int(n.required("size"))
    window = [WindowDimension() for _ in x.shape]
    low = (size - 1) // 2
    window[1] = WindowDimension(size=size, padding_low=low, padding_high=size - 1 - low)
    squares = n.to.emit("reduce-window", [x * x, n.to.constant(0, x.kind)], window=tuple(window),
                        called=[n.to.body("add", x.kind)])  # fmt: skip
    alpha, beta, bias = float(n.get("alpha", 1e-4)), float(n.get("beta", 0.75)), float(n.get("bias", 1.0))
    return x / (squares * (alpha / size) + bias).binary("power", beta)
