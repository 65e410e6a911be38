"""Views of a tensor by the keys of one subscript: numbers, slices, and index expressions."""

from __future__ import annotations

import operator
from typing import Any

from formats.named_tuple import NamedTuple
from neurontools.neuronxcc.nki.affine import Index
from neurontools.nki.tensor import DynamicSlice, NkiTensor
from neurontools.nki.views import bounds_of, complain, leaves

__all__ = ["Reach", "sliced", "walked"]


class Reach(NamedTuple):
    """What a walk of some shape names in each dimension of a tensor, which only a mask may let it leave."""

    shape: tuple[int, ...]
    indices: tuple[Index, ...]
    extents: tuple[int, ...]

    def within(self, box: tuple[tuple[int, int], ...]) -> Reach:
        """Return the reach of the part of the walk in a box."""
        cut = []
        for one in self.indices:
            const = one.const + sum(step * box[axis][0] for axis, (step, _) in one.axes.items() if step)
            axes = {axis: (step, box[axis][1] - box[axis][0] if step else 1) for axis, (step, _) in one.axes.items()}
            cut.append(Index(axes, const, one.ndim))
        return Reach(tuple(high - low for low, high in box), tuple(cut), self.extents)

    def widened(self, front: int, more: int) -> Reach:
        """Return the reach of the same walk with axes of one place more behind the first `front`."""
        shape = (*self.shape[:front], *[1] * more, *self.shape[front:])
        moved = tuple(Index({axis + more if axis >= front else axis: pair for axis, pair in one.axes.items()},
                            one.const, len(shape)) for one in self.indices)  # fmt: skip
        return Reach(shape, moved, self.extents)

    def problem(self) -> str | None:
        """Return how the walk leaves the tensor, None where it does not."""
        for dimension, (index, extent) in enumerate(zip(self.indices, self.extents, strict=True)):
            low, high = index.bounds()
            if low < 0 or high >= extent:
                return f"indices {low} to {high} leave dimension {dimension} of size {extent}"
        return None


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
            numbers = range(*bounds_of(tensor, dim - 1, one))
            shape.append(len(numbers))
            strides.append(stride * numbers.step)
            offset += stride * numbers.start
            partition_left = partition_left or stride == row
        else:
            place = operator.index(one)
            if not -extent <= place < extent:
                raise leaves(f"{tensor.name}: index {place} is outside dimension {dim - 1} of {extent}")
            offset += stride * (place % extent)
    # a number has chosen one partition, which stays a dimension of a tile
    if not partition_left and (not shape or strides[0] != row):
        shape.insert(0, 1)
        strides.insert(0, row)
    if tensor.on_chip and len(shape) == 1:  # a tile keeps a free dimension
        shape.append(1)
        strides.append(1)
    return tensor._make(tuple(shape), tuple(strides), offset)


def walked(tensor: NkiTensor, keys: list[Any]) -> NkiTensor:
    """Return the view that index expressions walk; a mask may still cut it down, so nothing is checked here."""
    if len(keys) != len(tensor.shape):
        raise complain(f"{tensor.name}: {len(keys)} indices for {len(tensor.shape)} dimensions")
    ndim = max(one.ndim for one in keys if isinstance(one, Index))
    extents, strides, offset = [1] * ndim, [0] * ndim, tensor.offset
    numbers = [_number(tensor, place, one) for place, one in enumerate(keys)]
    free = [place for place, one in enumerate(keys) if isinstance(one, (slice, DynamicSlice))]
    if free:
        return _mixed(tensor, keys, free)
    wides = [one.over(ndim) if isinstance(one, Index) else Index({}, one, ndim) for one in numbers]
    for wide, stride in zip(wides, tensor.strides, strict=True):
        offset += stride * wide.const
        for axis, (coefficient, extent) in wide.axes.items():
            if extent != 1 and extents[axis] not in (1, extent):
                raise complain(f"{tensor.name}: index expressions of {extents[axis]} and {extent} places meet")
            extents[axis] = max(extents[axis], extent)
            strides[axis] += stride * coefficient
    # one partition is never stepped over, but views of tiles are told by the step of a row
    if tensor.on_chip and extents[0] == 1:
        strides[0] = tensor._row
    made = tensor._make(tuple(extents), tuple(strides), offset)
    reach = Reach(tuple(extents), tuple(wides), tensor.shape)
    made._unchecked = tensor._unchecked or (reach if reach.problem() else False)
    return made


def _number(tensor: NkiTensor, place: int, key: Any) -> Any:
    """Return a number of one element from the front; slices and index expressions as they are."""
    if isinstance(key, (Index, slice, DynamicSlice)):
        return key
    number = operator.index(key)
    return number + tensor.shape[place] if -tensor.shape[place] <= number < 0 else number


def _mixed(tensor: NkiTensor, keys: list[Any], free: list[int]) -> NkiTensor:
    """Return the view of slices beside expressions: each slice is one more axis behind those of the expressions."""
    first = [one for one in keys if isinstance(one, Index)]
    depth = max(1 + max(one.axes, default=0) for one in first)
    total = depth + len(free)
    new: list[Any] = []
    for place, one in enumerate(keys):
        if place in free:
            span = slice(one.start, one.start + one.size) if isinstance(one, DynamicSlice) else one
            numbers = range(*bounds_of(tensor, place, span))
            new.append(Index({depth + free.index(place): (numbers.step, len(numbers))}, numbers.start, total))
        else:
            new.append(Index(one.axes, one.const, total) if isinstance(one, Index) else one)
    return walked(tensor, new)
