"""Reductions: of whole dimensions, of windows, and map."""

from __future__ import annotations

import math

import numpy as np

from formats.hlo import Instruction
from neurontools.hlo_interpreter.mapped import fold, fold_present
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, operation
from neurontools.hlo_interpreter.windows import spread, view

__all__: list[str] = []


def _result(instruction: Instruction, values: tuple[Array, ...]) -> Value:
    return values if instruction.shape.is_tuple else values[0]


@operation("reduce")
def reduce(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Combine all elements along some dimensions."""
    count = len(operands) // 2
    away = instruction.dimensions
    kept = [dim for dim in range(operands[0].ndim) if dim not in away]
    shape = [operands[0].shape[dim] for dim in kept]
    length = math.prod(operands[0].shape[dim] for dim in away)
    arrays = [each.transpose([*kept, *sorted(away)]).reshape([*shape, length]) for each in operands[:count]]
    return _result(instruction, fold(instruction.to_apply, arrays, operands[count:], evaluator))


@operation("reduce-window")
def reduce_window(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Combine the initial value and the elements in each place of a window; padding takes no part (compiler.md 3.3).

    One dimension after the other: bodies are associative and commutative, as XLA demands.
    """
    count = len(operands) // 2
    arrays, initial = operands[:count], operands[count:]
    body = instruction.to_apply
    there = spread(np.ones(arrays[0].shape, bool), instruction.window, np.zeros((), bool))
    arrays = [spread(each, instruction.window, np.zeros((), each.dtype)) for each in arrays]
    for dim, window in enumerate(instruction.window):
        if window.size == 1 and window.stride == 1:
            continue
        windows, there = [view(each, dim, window) for each in arrays], view(there, dim, window)
        arrays, there = fold_present(body, windows, there, evaluator)
    final = evaluator.mapped(body, [*initial, *arrays])
    whole = final if isinstance(final, tuple) else (final,)
    shape = arrays[0].shape
    found = [
        np.where(there, each, start).astype(each.dtype).reshape(shape)
        for each, start in zip(whole, initial, strict=True)
    ]  # fmt: skip
    return _result(instruction, tuple(found))


@operation("map")
def map_elements(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Apply a computation to each element."""
    return evaluator.mapped(instruction.to_apply, operands)
