"""Tensors in device memory as strided arrays: the views that data movement makes without moving anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from neurontools.builder.trace import Allocation, View

__all__ = ["Array", "merged", "row_major"]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Array(NamedTuple):
    """Select elements of a tensor in device memory; offset and strides count elements of `dtype`."""

    allocation: Allocation
    dtype: Dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def dense(self) -> bool:
        """Return whether the elements lie side by side in row-major order."""
        wanted = row_major(self.shape)  # the step of a dimension of one element is never taken
        return all(
            one == other or extent == 1 for one, other, extent in zip(self.strides, wanted, self.shape, strict=True)
        )

    def view(self) -> View:
        """Return the array as the trace names it."""
        dims = tuple(zip(self.strides, self.shape, strict=True)) or ((1, 1),)
        return View(self.allocation, self.dtype, 0, 1, self.offset * self.dtype.size, dims)

    def permuted(self, order: Sequence[int]) -> Array:
        """Return the array with its dimensions in another order."""
        return self._replace(
            shape=tuple(self.shape[axis] for axis in order), strides=tuple(self.strides[axis] for axis in order)
        )

    def sliced(self, starts: Sequence[int], shape: Sequence[int], steps: Sequence[int] | None = None) -> Array:
        """Return part of the array: `shape` elements from `starts`, every `steps`-th."""
        steps = steps or (1,) * len(self.shape)
        offset = self.offset + sum(start * stride for start, stride in zip(starts, self.strides, strict=True))
        strides = tuple(stride * step for stride, step in zip(self.strides, steps, strict=True))
        return self._replace(offset=offset, shape=tuple(shape), strides=strides)

    def reversed(self, axes: Iterable[int]) -> Array:
        """Return the array backwards along some dimensions."""
        strides, offset = list(self.strides), self.offset
        for axis in axes:
            offset += (self.shape[axis] - 1) * strides[axis]
            strides[axis] = -strides[axis]
        return self._replace(offset=offset, strides=tuple(strides))

    def broadcast(self, shape: Sequence[int], axes: Sequence[int]) -> Array:
        """Return the array repeated along new dimensions; dimension i of it becomes dimension `axes[i]`."""
        strides = [0] * len(shape)
        for axis, extent, stride in zip(axes, self.shape, self.strides, strict=True):
            strides[axis] = stride if extent != 1 else 0
        return self._replace(shape=tuple(shape), strides=tuple(strides))

    def reshaped(self, shape: Sequence[int]) -> Array | None:
        """Return the array in another shape, None where that takes a copy."""
        shape = tuple(shape)
        if prod(shape) == 0:
            return self._replace(shape=shape, strides=row_major(shape))
        # Each new dimension, from behind, takes its part of the innermost old one that runs on.
        old = merged([self.shape], [self.strides])
        counts, steps = [list(one) for one in (old[0], old[1][0])]
        strides: list[int] = []
        for extent in reversed(shape):
            if extent == 1:
                strides.append(0)
                continue
            # The new dimension ends within an old one, whose elements do not run on into the next.
            if not counts or counts[-1] % extent:
                return None
            strides.append(steps[-1])
            if counts[-1] == extent:
                counts.pop()
                steps.pop()
            else:
                counts[-1] //= extent
                steps[-1] *= extent
        return self._replace(shape=shape, strides=tuple(reversed(strides)))


def merged(
    shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return one shape, and strides for each array, with dimensions that run on in every array made one."""
    counts: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shapes[0]):
        if extent == 1:
            continue
        if counts and all(mine[-1] == one[axis] * extent for mine, one in zip(steps, strides, strict=True)):
            counts[-1] *= extent
            for mine, one in zip(steps, strides, strict=True):
                mine[-1] = one[axis]
        else:
            counts.append(extent)
            for mine, one in zip(steps, strides, strict=True):
                mine.append(one[axis])
    return tuple(counts), tuple(tuple(one) for one in steps)
