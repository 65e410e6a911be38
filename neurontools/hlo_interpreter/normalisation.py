"""Batch normalisation: forward for training and inference, and its gradient."""

from __future__ import annotations

import numpy as np

from formats.errors import FormatError
from formats.hlo import Instruction, dtype_of
from neurontools.hlo_interpreter.numbers import exact, rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, operation

__all__: list[str] = []


def _along(values: Array, rank: int, feature: int) -> Array:
    shape = [1] * rank
    shape[feature] = values.size
    return exact(values).reshape(shape)


def _others(rank: int, feature: int) -> tuple[int, ...]:
    return tuple(dim for dim in range(rank) if dim != feature)


def _as_results(instruction: Instruction, values: list[Array]) -> Value:
    shapes = instruction.shape.tuple_shapes
    return tuple(rounded(each, dtype_of(shape.element_type)) for each, shape in zip(values, shapes, strict=True))


@operation("batch-norm-training")
def training(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the normalised operand, the mean and the variance of each feature."""
    values, feature = exact(operands[0]), instruction.feature_index
    others = _others(values.ndim, feature)
    mean, variance = values.mean(others), values.var(others)
    scale, offset, m, v = (_along(each, values.ndim, feature) for each in (*operands[1:], mean, variance))
    normal = (values - m) / np.sqrt(v + instruction.epsilon) * scale + offset
    return _as_results(instruction, [normal, mean, variance])


@operation("batch-norm-inference")
def inference(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the operand normalised by a given mean and variance."""
    values, feature = exact(operands[0]), instruction.feature_index
    scale, offset, m, v = (_along(each, values.ndim, feature) for each in operands[1:])
    normal = (values - m) / np.sqrt(v + instruction.epsilon) * scale + offset
    return rounded(normal, operands[0].dtype)


@operation("batch-norm-grad")
def gradient(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the gradients of operand, scale and offset."""
    values, output = exact(operands[0]), exact(operands[4])
    feature = instruction.feature_index
    if output.shape != values.shape:
        raise FormatError(f"%{instruction.name}", expected=f"gradients of shape {values.shape}", got=output.shape)
    others = _others(values.ndim, feature)
    scale, m, v = (_along(each, values.ndim, feature) for each in operands[1:4])
    count = values.size // max(1, values.shape[feature])
    centred = values - m
    root = 1 / np.sqrt(v + instruction.epsilon)
    offset_grad = output.sum(others)
    scale_grad = (output * centred * root).sum(others)
    inner = _along(offset_grad, values.ndim, feature) / count
    outer = centred * root * root * (output * centred).sum(others, keepdims=True) / count
    return _as_results(instruction, [scale * root * (output - inner - outer), scale_grad, offset_grad])
