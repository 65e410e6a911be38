"""Expansion of custom calls: the known names of the Neuron compiler that are ordinary mathematics, and markers."""

from __future__ import annotations

import math

from formats.hlo.attributes import extreme_dimension
from neurontools.builder.native_kernel import TARGET
from neurontools.compiler.errors import UnsupportedGraphError
from neurontools.compiler.expand_sort import extreme_of, top_of
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["CALLS", "COMPILED", "KNOWN_TARGETS", "UNDERSTOOD"]

# Source: compiler.md 5.4 (the list of EVRF015 and EHCA005).
KNOWN_TARGETS = frozenset(
    {
        *(f"AwsNeuron{name}" for name in (
            "ArgMax", "ArgMin", "CollectiveMatmul", "CustomNativeKernel", "CustomOp", "DevicePrint", "DropoutMaskV1",
            "Erf", "Gelu", "GeluApprxTanh", "GeluBackward", "IntMatmult", "LNCShardingConstraint",
            "ModuleMarkerEnd-Backward", "ModuleMarkerEnd-Forward", "ModuleMarkerStart-Backward",
            "ModuleMarkerStart-Forward", "RmsNorm", "Silu", "SiluBackward", "Softmax", "SoftmaxBackward", "TopK",
            "TransferWithStaticRing",
        )),
        "NeuronBoundaryMarker-End",
        "NeuronBoundaryMarker-Start",
        "ResizeBilinear",
        "ResizeNearest",
        "ResizeNearestGrad",
    }
)  # fmt: skip
_MARKERS = ("AwsNeuronModuleMarker", "NeuronBoundaryMarker", "AwsNeuronLNCShardingConstraint")
_FRAMEWORK_MARKERS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")


def _custom_call(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
    target: str = node.attrs["target"]
    if target == TARGET:
        return None  # `inlining` lowers it
    if target.startswith(_MARKERS) or target in _FRAMEWORK_MARKERS:
        if len(operands) != len(node.results):
            raise UnsupportedGraphError("EUOC002", f"{target} with {len(operands)} operands and "
                                        f"{len(node.results)} results is not supported", node.origin)  # fmt: skip
        return operands
    if target in ("AwsNeuronTopK", "TopK", "mhlo.topk"):
        return top_of(b, operands[0], node.results[0].shape[-1], True, node.results[1].dtype)
    if target in ("AwsNeuronArgMax", "AwsNeuronArgMin"):
        (given,) = operands
        axis = extreme_dimension(node.attrs["config"], len(given.shape))
        last = b.transpose(given, sorted(range(len(given.shape)), key=lambda one: (one == axis, one)))
        places = extreme_of(b, last, target.endswith("Max"), node.results[-1].dtype)
        return [b.reshape(places, node.results[-1].shape)]
    function = _UNARY.get(target)
    if function is not None:
        x = b.convert(operands[0], "f32")
        return [b.convert(function(b, x), node.result.dtype)]
    raise UnsupportedGraphError("EUOC002", f"custom call {target} is not supported by this compiler", node.origin)


def _erf(b: Builder, x: Value) -> Value:
    return b.op("erf", x)


def _gelu(b: Builder, x: Value) -> Value:
    inner = b.op("erf", b.op("multiply", x, b.like(math.sqrt(0.5), x)))
    half = b.op("multiply", x, b.like(0.5, x))
    return b.op("multiply", half, b.op("add", inner, b.like(1.0, x)))


def _gelu_tanh(b: Builder, x: Value) -> Value:
    cube = b.op("multiply", x, b.op("multiply", x, x))
    inner = b.op("add", x, b.op("multiply", cube, b.like(0.044715, x)))
    bent = b.op("tanh", b.op("multiply", inner, b.like(math.sqrt(2.0 / math.pi), x)))
    return b.op("multiply", b.op("multiply", x, b.like(0.5, x)), b.op("add", bent, b.like(1.0, x)))


def _silu(b: Builder, x: Value) -> Value:
    return b.op("multiply", x, b.op("logistic", x))


_UNARY = {
    "AwsNeuronErf": _erf,
    "AwsNeuronGelu": _gelu,
    "AwsNeuronGeluApprxTanh": _gelu_tanh,
    "AwsNeuronSilu": _silu,
    "mhlo.erf": _erf,
}

# Names of frameworks that mean the same as one of ours, or nothing at all.
UNDERSTOOD = frozenset({*_FRAMEWORK_MARKERS, *_UNARY, "TopK", "mhlo.topk"})
COMPILED = frozenset(
    {*UNDERSTOOD, TARGET, "AwsNeuronArgMax", "AwsNeuronArgMin", "AwsNeuronTopK"}
    | {name for name in KNOWN_TARGETS if name.startswith(_MARKERS)}
)
CALLS: dict[str, Rule] = {"custom-call": _custom_call}
