"""Convolutions of any dimension numbers: strides, paddings, dilations of either side, groups of features or batches."""

from __future__ import annotations

import numpy as np

from formats.hlo import Instruction
from formats.hlo.attributes import WindowDimension
from neurontools.hlo_interpreter.numbers import exact, rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation
from neurontools.hlo_interpreter.windows import spread, view

__all__: list[str] = []


@operation("convolution")
def convolution(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Multiply each place of the window with the kernel and sum, in float64 or 64-bit integers."""
    numbers, window = instruction.convolution, instruction.window
    kind = dtype(instruction)
    base, kernel = (_carried(each, kind) for each in operands)
    base = base.transpose(
        [numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions]
    )
    kernel = kernel.transpose(
        [numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension,
         *numbers.kernel_spatial_dimensions]
    )  # fmt: skip
    for dim, each in enumerate(window):
        if each.window_reversal:
            kernel = np.flip(kernel, dim + 2)
    base = spread(base, [WindowDimension(), WindowDimension(), *window], np.zeros((), base.dtype))
    for dim, each in enumerate(window):
        base = view(base, dim + 2, each)
    # base: batch, feature, places..., window...; kernel: output feature, input feature, window...
    result = _grouped(base, kernel, len(window), instruction.feature_group_count, instruction.batch_group_count)
    # result: batch, output feature, places...
    order = [numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions]
    return rounded(result.transpose(np.argsort(order)), kind)


def _carried(values: Array, kind: np.dtype[np.generic]) -> Array:
    """Return values in the type in which products are summed."""
    if kind.kind in "iu" or kind.name.startswith(("int", "uint")):
        return exact(values).astype(np.int64)
    return exact(values).astype(np.complex128 if kind.kind == "c" else np.float64)


def _grouped(base: Array, kernel: Array, spatial: int, features: int, batches: int) -> Array:
    """Sum over features and window, group by group: of features of the input, or of its batches."""
    outputs = kernel.shape[0]
    groups = max(features, batches)
    each = outputs // groups
    found = []
    for group in range(groups):
        part = base
        if features > 1:
            part = np.take(base, np.arange(group, group + 1) * kernel.shape[1] + np.arange(kernel.shape[1]), axis=1)
        elif batches > 1:
            size = base.shape[0] // batches
            part = base[group * size : (group + 1) * size]
        weights = kernel[group * each : (group + 1) * each]
        axes = [1, *range(2 + spatial, 2 + 2 * spatial)]
        found.append(np.tensordot(part, weights, (axes, [1, *range(2, 2 + spatial)])))
    whole = np.concatenate(found, axis=-1)  # batch, places..., output feature
    return np.moveaxis(whole, -1, 1)
