"""ONNX's Resize: along each dimension a matrix of weights that is known when the model is imported."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from formats.hlo import PrimitiveType, dtype_of
from neurontools.onnx_import.builder import Tensor
from neurontools.onnx_import.registry import Node, operator

__all__: list[str] = []

Weights = np.ndarray[Any, np.dtype[np.float64]]


@operator("Resize", "Upsample")
def resize(n: Node) -> Tensor:
    """Resample dimensions one after the other."""
    x = n.input(0)
    axes = [x.axis(axis) for axis in n.get("axes") or range(x.rank)]
    old = n.op == "Upsample" or n.version < 11
    roi = None if old else n.static(1)
    scales, sizes = n.static(1 if old else 2), None if old else n.static(3)
    stated = [float(each) for each in scales.reshape(-1)] if scales is not None and scales.size else None
    wanted = [int(each) for each in sizes.reshape(-1)] if sizes is not None and sizes.size else None
    if wanted is not None:
        stated, wanted = _by_sizes(
            [x.shape[axis] for axis in axes],
            wanted,
            n.choice("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"),
        )
    if stated is None:
        return x
    kind = x.kind
    y = x.cast(PrimitiveType.F32) if kind is not PrimitiveType.F64 else x
    outside = None
    for number, axis in enumerate(axes):
        length, scale = x.shape[axis], stated[number]
        result = wanted[number] if wanted is not None else math.floor(length * scale)
        bounds = (0.0, 1.0) if roi is None or not roi.size else (float(roi[number]), float(roi[number + len(axes)]))
        if result == length and scale == 1 and bounds == (0.0, 1.0):
            continue
        places = [_place(n, at, scale, length, result, bounds) for at in range(result)]
        weights = np.stack([_weights(n, place, scale, length) for place in places])
        y = _along(y, axis, weights)
        if n.get("coordinate_transformation_mode") == "tf_crop_and_resize":
            beyond = n.to.constant(np.array([not 0 <= place <= length - 1 for place in places])).put(y.shape, (axis,))
            kept = outside
            outside = beyond if kept is None else (beyond | _along_mask(kept, y.shape, axis))
    if outside is not None:
        y = outside.expand(y.shape).where(float(n.get("extrapolation_value", 0.0)), y)
    return y.unary("round-nearest-even").cast(kind) if kind.is_integral and n.get("mode") == "nearest" else y.cast(kind)


def _along_mask(mask: Tensor, shape: tuple[int, ...], axis: int) -> Tensor:
    """Return a mask of an earlier dimension for the shape that a later one has now."""
    return mask.slice(axis, 0, 1).expand(shape)


def _by_sizes(lengths: list[int], sizes: list[int], policy: str) -> tuple[list[float], list[int]]:
    """Return scales and sizes; one scale for all where the aspect is kept."""
    scales = [size / length for size, length in zip(sizes, lengths, strict=True)]
    if policy == "stretch":
        return scales, sizes
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [scale] * len(scales), [math.floor(scale * length + 0.5) for length in lengths]


def _along(x: Tensor, axis: int, weights: Weights) -> Tensor:
    matrix = x.to.constant(weights.astype(dtype_of(x.kind)).T)
    return x.move(axis, -1).dot(matrix).move(-1, axis)


_TRANSFORMS = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
               "tf_crop_and_resize")  # fmt: skip


def _place(n: Node, at: int, scale: float, length: int, result: int, roi: tuple[float, float]) -> float:
    """Return where an element of the result lies in the operand."""
    mode = n.choice("coordinate_transformation_mode", "half_pixel" if n.version >= 11 else "asymmetric", *_TRANSFORMS)
    middle = (at + 0.5) / scale - 0.5
    width = scale * length  # not cut to a whole number: so ONNX's reference has it
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * (length - 1) / (width - 1) if width != 1 else 0.0
    if mode == "pytorch_half_pixel":
        return middle if result > 1 else 0.0
    if mode == "half_pixel_symmetric":
        return length / 2 * (1 - result / (scale * length)) + middle
    if mode == "tf_crop_and_resize":
        start, end = roi
        if result > 1:
            return start * (length - 1) + at * (end - start) * (length - 1) / (width - 1)
        return 0.5 * (start + end) * (length - 1)
    return middle


_NEAREST: dict[str, Callable[[float], int]] = {
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def _weights(n: Node, place: float, scale: float, length: int) -> Weights:
    """Return how much each element of the operand counts in one of the result."""
    found = np.zeros(length)
    mode = n.choice("mode", "nearest", "linear", "cubic")
    if mode == "nearest":
        chosen = n.choice("nearest_mode", "round_prefer_floor" if n.version >= 11 else "floor", *_NEAREST)
        found[min(max(_NEAREST[chosen](place), 0), length - 1)] = 1
        return found
    shrink = min(scale, 1.0) if n.get("antialias", 0) else 1.0
    reach = (1 if mode == "linear" else 2) / shrink
    near = np.arange(math.floor(place - reach), math.ceil(place + reach) + 1)
    distance = np.abs(near - place) * shrink
    each = np.maximum(0, 1 - distance) if mode == "linear" else _cubic(distance, float(n.get("cubic_coeff_a", -0.75)))
    if n.get("exclude_outside", 0):
        each = np.where((near >= 0) & (near < length), each, 0)
    total = each.sum()
    np.add.at(found, np.clip(near, 0, length - 1), each / total if total else each)
    return found


def _cubic(distance: Weights, a: float) -> Weights:
    d = distance
    inner = (a + 2) * d**3 - (a + 3) * d**2 + 1
    outer = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0))
