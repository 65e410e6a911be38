"""Views of a tensor by the keys of one subscript: numbers, slices, and index expressions."""

from __future__ import annotations

import operator
from typing import Any

from neurontools.neuronxcc.nki.affine import Index
from neurontools.nki.tensor import DynamicSlice, NkiTensor
from neurontools.nki.views import complain

__all__ = ["sliced", "walked"]


def sliced(tensor: NkiTensor, keys: list[Any]) -> NkiTensor:
    """Return the view of integers, slices, `nl.ds` and None, over dimensions in any order."""
    shape: list[int] = []
    strides: list[int] = []
    offset, dim, partition_left = tensor.offset, 0, not tensor.on_chip
    row = tensor._row
    for one in keys:
        if one is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = tensor.shape[dim], tensor.strides[dim]
        dim += 1
        if isinstance(one, DynamicSlice):
            one = slice(one.start, one.start + one.size)
        if isinstance(one, slice):
            numbers = range(*one.indices(extent))
            shape.append(len(numbers))
            strides.append(stride * numbers.step)
            offset += stride * numbers.start
            partition_left = partition_left or stride == row
        else:
            place = operator.index(one)
            if not -extent <= place < extent:
                raise complain(f"{tensor.name}: index {place} is outside dimension {dim - 1} of {extent}")
            offset += stride * (place % extent)
    if not partition_left and (not shape or strides[0] != row):
        shape.insert(0, 1)
        strides.insert(0, row)
    if tensor.on_chip and len(shape) == 1:      # a tile keeps a free dimension
        shape.append(1)
        strides.append(1)
    return tensor._make(tuple(shape), tuple(strides), offset)


def walked(tensor: NkiTensor, keys: list[Any]) -> NkiTensor:
    """Return the view that index expressions walk; a mask may still cut it down, so nothing is checked here."""
    if len(keys) != len(tensor.shape):
        raise complain(f"{tensor.name}: {len(keys)} indices for {len(tensor.shape)} dimensions")
    ndim = max(one.ndim for one in keys if isinstance(one, Index))
    extents, strides, offset = [1] * ndim, [0] * ndim, tensor.offset
    free = [place for place, one in enumerate(keys) if isinstance(one, (slice, DynamicSlice))]
    if free:
        return _mixed(tensor, keys, free)
    for one, stride in zip(keys, tensor.strides, strict=True):
        if not isinstance(one, Index):
            offset += stride * operator.index(one)
            continue
        wide = one.over(ndim)
        offset += stride * wide.const
        for axis, (coefficient, extent) in wide.axes.items():
            if extents[axis] not in (1, extent) and extent != 1:
                raise complain(f"{tensor.name}: index expressions of {extents[axis]} and {extent} places meet")
            extents[axis] = max(extents[axis], extent)
            strides[axis] += stride * coefficient
    if tensor.on_chip and extents[0] == 1:
        strides[0] = tensor._row
    made = tensor._make(tuple(extents), tuple(strides), offset)
    made._unchecked = True
    return made


def _mixed(tensor: NkiTensor, keys: list[Any], free: list[int]) -> NkiTensor:
    """Return the view of slices beside expressions: each slice is one more axis behind those of the expressions."""
    first = [one for one in keys if isinstance(one, Index)]
    depth = max(1 + max(one.axes, default=0) for one in first)
    total = depth + len(free)
    new: list[Any] = []
    for place, one in enumerate(keys):
        if place in free:
            span = slice(one.start, one.start + one.size) if isinstance(one, DynamicSlice) else one
            numbers = range(*span.indices(tensor.shape[place]))
            new.append(Index({depth + free.index(place): (numbers.step, len(numbers))}, numbers.start, total))
        else:
            new.append(Index(one.axes, one.const, total) if isinstance(one, Index) else one)
    return walked(tensor, new)
