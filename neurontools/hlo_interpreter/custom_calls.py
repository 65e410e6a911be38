"""Custom calls that are known by name: those of AWS's compiler, and the few that frameworks emit for any device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import Instruction, dtype_of
from formats.hlo.attributes import extreme_dimension
from neurontools.builder.native_kernel import TARGET
from neurontools.hlo_interpreter.native_kernels import native_kernel
from neurontools.hlo_interpreter.numbers import exact, is_float, rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation
from neurontools.hlo_interpreter.sorting import largest_first
from neurontools.hlo_interpreter.unary import error_function

__all__ = ["TARGETS"]

CustomCall = Callable[[Instruction, list[Value]], Value]


@operation("custom-call")
def custom_call(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Compute a custom call of a known name."""
    function = TARGETS.get(instruction.custom_call_target)
    if function is None:
        raise UnsupportedError(
            f"%{instruction.name}: custom call {instruction.custom_call_target!r} is not known to the interpreter"
        )
    return function(instruction, operands)


def _same(_: Instruction, operands: list[Value]) -> Value:
    return operands[0] if len(operands) == 1 else tuple(operands)


def _need(instruction: Instruction, operands: list[Value], count: int) -> None:
    if len(operands) != count:
        raise FormatError(f"%{instruction.name}", expected=f"{count} operands", got=len(operands))


def _of_numbers(function: Callable[..., Array], count: int = 1) -> CustomCall:
    def computed(instruction: Instruction, operands: list[Value]) -> Value:
        _need(instruction, operands, count)
        for each in operands:
            if not isinstance(each, np.ndarray | np.generic) or not is_float(each.dtype):
                raise FormatError(
                    f"%{instruction.name}", expected="an array of floats", got=getattr(each, "dtype", None)
                )
            if each.shape != instruction.shape.dimensions:
                raise FormatError(f"%{instruction.name}", expected=f"operands as {instruction.shape}", got=each.shape)
        if not instruction.shape.size:
            return np.empty(instruction.shape.dimensions, dtype(instruction))
        return rounded(function(*(exact(each) for each in operands)), dtype(instruction))

    return computed


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + error_function(x / np.sqrt(2))))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _gelu_gradient(grad: Array, x: Array) -> Array:
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return np.asarray(grad * (0.5 * (1 + error_function(x / np.sqrt(2))) + x * density))


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def _silu_gradient(grad: Array, x: Array) -> Array:
    gate = 1 / (1 + np.exp(-x))
    return np.asarray(grad * gate * (1 + x * (1 - gate)))


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _softmax_gradient(grad: Array, y: Array) -> Array:
    return np.asarray(y * (grad - (grad * y).sum(-1, keepdims=True)))


def _top_k(instruction: Instruction, operands: list[Value]) -> Value:
    """Return values and positions; k is the last dimension of the result, as AWS's form says it in the config too."""
    _need(instruction, operands, 1)
    if len(instruction.shape.tuple_shapes) < 2 or not np.ndim(operands[0]) or (
        instruction.shape.tuple_shapes[0].rank != np.ndim(operands[0])
    ):  # fmt: skip
        raise FormatError(
            f"%{instruction.name}", expected="a tuple of values and positions", got=str(instruction.shape)
        )
    first, second = instruction.shape.tuple_shapes[:2]
    values, places = largest_first(operands[0], first.dimensions[-1])
    return values, places.astype(dtype_of(second.element_type))


def _extreme(function: Callable[..., Array]) -> CustomCall:
    def computed(instruction: Instruction, operands: list[Value]) -> Value:
        """Return where the extreme of a dimension is; the config names the dimension, else it is the last."""
        _need(instruction, operands, 1)
        axis = extreme_dimension(instruction.backend_config, operands[0].ndim)
        if axis is None or not operands[0].shape[axis]:
            raise FormatError(f"%{instruction.name}", expected="elements along a dimension of the operand", got=axis)
        found = function(operands[0], axis=axis)
        if not instruction.shape.is_array or found.size != instruction.shape.size:
            raise FormatError(f"%{instruction.name}", expected=f"{found.size} positions", got=str(instruction.shape))
        return rounded(found.reshape(instruction.shape.dimensions), dtype(instruction))

    return computed


TARGETS: dict[str, CustomCall] = {
    TARGET: native_kernel,
    "AwsNeuronErf": _of_numbers(error_function),
    "AwsNeuronGelu": _of_numbers(_gelu),
    "AwsNeuronGeluApprxTanh": _of_numbers(_gelu_tanh),
    "AwsNeuronGeluBackward": _of_numbers(_gelu_gradient, 2),
    "AwsNeuronSilu": _of_numbers(_silu),
    "AwsNeuronSiluBackward": _of_numbers(_silu_gradient, 2),
    "AwsNeuronSoftmax": _of_numbers(_softmax),
    "AwsNeuronSoftmaxBackward": _of_numbers(_softmax_gradient, 2),
    "AwsNeuronTopK": _top_k,
    "TopK": _top_k,
    "AwsNeuronArgMax": _extreme(np.argmax),
    "AwsNeuronArgMin": _extreme(np.argmin),
    "AwsNeuronTransferWithStaticRing": _same,
    "AwsNeuronLNCShardingConstraint": _same,
    "AwsNeuronModuleMarkerStart-Forward": _same,
    "AwsNeuronModuleMarkerEnd-Forward": _same,
    "AwsNeuronModuleMarkerStart-Backward": _same,
    "AwsNeuronModuleMarkerEnd-Backward": _same,
    "NeuronBoundaryMarker-Start": _same,
    "NeuronBoundaryMarker-End": _same,
    "Sharding": _same,
    "SPMDFullToShardShape": _same,
    "SPMDShardToFullShape": _same,
    "annotate_device_placement": _same,
}
