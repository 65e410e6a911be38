"""Expansion of convolutions: patches of the input, one slice for each element of the kernel, times the kernel."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from formats.hlo.attributes import WindowDimension
from neurontools.compiler.element_types import element_type
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["CONVOLUTIONS"]


def _convolution(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    """Expand a convolution of any dimension numbers, groups, strides and dilations into one batched product."""
    image, kernel = operands
    numbers, windows = node.attrs["numbers"], node.attrs["window"]
    image = b.transpose(image, (numbers.input_batch_dimension, *numbers.input_spatial_dimensions,
                                numbers.input_feature_dimension))  # fmt: skip
    kernel = b.transpose(kernel, (*numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension,
                                  numbers.kernel_output_feature_dimension))  # fmt: skip
    kernel = b.reverse(kernel, [axis for axis, one in enumerate(windows) if one.window_reversal])
    padding = [(0, 0, 0), *((one.padding_low, one.padding_high, one.base_dilation - 1) for one in windows), (0, 0, 0)]
    places = [node.result.shape[axis] for axis in numbers.output_spatial_dimensions]
    if not prod(node.result.shape) or not prod(kernel.shape) or not prod(image.shape):
        zero = np.zeros((), element_type(node.result.dtype).numpy)
        return [b.broadcast(b.constant(zero, node.result.dtype), node.result.shape, ())]
    image = b.pad(image, b.constant(0, image.dtype), padding)
    patches = _patches(b, image, windows, places)
    groups, batches = node.attrs["feature_groups"], node.attrs["batch_groups"]
    elements, batch, features = prod(kernel.shape[:-2]), image.shape[0], image.shape[-1]
    inputs, outputs = kernel.shape[-2:]
    rank = len(places)
    # Patches become (elements, ..., groups, features of one); the group is the batch of the product.
    if batches > 1:
        patches = b.reshape(patches, (elements, batches, batch // batches, *places, features))
        group, free = 1, list(range(2, 3 + rank))
        batch //= batches
    else:
        patches = b.reshape(patches, (elements, batch, *places, groups, features // groups))
        group, free = 2 + rank, list(range(1, 2 + rank))
    many = max(groups, batches)
    weights = b.reshape(kernel, (elements, inputs, many, outputs // many))
    last = len(patches.shape) - 1
    made = b.graph.add(
        "dot", (patches, weights), node.result.dtype,
        (many, *(patches.shape[axis] for axis in free), outputs // many),
        lhs_batch=(group,), rhs_batch=(2,), lhs_contracting=(0, last), rhs_contracting=(0, 1), precision=(),
    )  # fmt: skip
    made = b.transpose(made, (*range(1, 2 + rank), 0, 2 + rank))
    made = b.reshape(made, (batch, *places, outputs))
    order = [0] * (rank + 2)
    order[numbers.output_batch_dimension] = 0
    order[numbers.output_feature_dimension] = rank + 1
    for place, axis in enumerate(numbers.output_spatial_dimensions):
        order[axis] = place + 1
    return [b.transpose(made, order)]


def _patches(b: Builder, image: Value, windows: tuple[WindowDimension, ...], places: list[int]) -> Value:
    """Return (elements of the kernel, batch, places..., features)."""
    batch, features = image.shape[0], image.shape[-1]
    parts = []
    for place in product(*(range(one.size) for one in windows)):
        starts = [0, *(at * one.window_dilation for at, one in zip(place, windows, strict=True)), 0]
        strides = [1, *(one.stride for one in windows), 1]
        part = b.slice(image, starts, (batch, *places, features), strides)
        parts.append(b.reshape(part, (1, *part.shape)))
    return b.concatenate(parts, 0)


CONVOLUTIONS: dict[str, Rule] = {"convolution": _convolution}
