"""Windows over an array as one more dimension: what reductions over windows and convolutions share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formats.hlo.attributes import WindowDimension
from neurontools.hlo_interpreter.registry import Array
from neurontools.hlo_interpreter.shaping import padded

__all__ = ["spread", "view", "walked"]


def spread(values: Array, window: Sequence[WindowDimension], fill: Array) -> Array:
    """Return the base area: dilated and padded, for a window along each dimension."""
    amounts = [(each.padding_low, each.padding_high, each.base_dilation - 1) for each in window]
    if all(amount == (0, 0, 0) for amount in amounts):
        return values
    return padded(values, amounts, fill)


def view(values: Array, dim: int, window: WindowDimension) -> Array:
    """Return a view in which dimension `dim` counts the places of the window and a new last one its elements."""
    count = max(0, (values.shape[dim] - ((window.size - 1) * window.window_dilation + 1)) // window.stride + 1)
    shape, strides = list(values.shape), list(values.strides)
    step = strides[dim]
    shape[dim], strides[dim] = count, step * window.stride
    if not count or not all(shape):
        return np.empty((*shape, window.size), values.dtype)
    return walked(values, (*shape, window.size), (*strides, step * window.window_dilation))


def walked(values: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """Return a view of an array with another shape and other steps, in bytes, that may not be written."""
    # By its protocol between arrays, NumPy does not know float8_e5m2 again, which calls itself "<f1".
    raw = values.view(f"u{values.dtype.itemsize}") if values.dtype.isbuiltin != 1 else values
    return np.lib.stride_tricks.as_strided(raw, shape, strides, writeable=False).view(values.dtype)
