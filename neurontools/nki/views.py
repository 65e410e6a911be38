"""Methods that make another view of a tensor's storage; none copies, none executes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, Self

from formats.dtypes import Dtype
from neurontools.builder.trace import Allocation
from neurontools.nki.dtype import DType, dtype_of
from neurontools.nki.errors import NkiValidationError, UnsupportedError
from neurontools.nki.kinds import INDIRECT, Kind
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.strides import contiguous_strides, infer_shape, parse_rearrange, reach_of, reshape_strides
from neurontools.nki.tracer import current, kernel_line, kernel_place, tracer

__all__ = ["ViewMethods", "complain", "unsupported"]

_INTEGER = frozenset((int,))


def complain(message: str) -> NkiValidationError:
    """Return the error to raise for a bad view, with target and kernel line where there are any."""
    running = current()
    if running is not None:
        return running.error(message)
    return NkiValidationError(f"{message}, at {kernel_place()}")


def leaves(message: str) -> NkiValidationError:
    """Return the error to raise for a view that leaves its tensor: what memcheck finds, at the kernel's line."""
    return complain(message).found("memcheck:oob", kernel_line())


def _whole(method: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return a shape as integers; a quotient, which Python makes a float, would end in addresses."""
    try:
        return tuple(map(operator.index, shape))
    except TypeError:
        raise complain(f"{method}: shape {shape!r} is not made of integers") from None


def bounds_of(tensor: Any, axis: int, item: slice) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of one dimension.

    Ends that are named have to lie in the dimension: NumPy would cut them off, AWS's views refuse them.
    """
    extent = tensor.shape[axis]
    start, stop, step = (
        None if one is None else tensor._integer(one, axis) for one in (item.start, item.stop, item.step)
    )
    named = (start, stop)
    if any(one is not None and not -extent <= one <= extent for one in named):
        spelled = ", ".join([*[":"] * axis, _spelled(start, stop, step)])
        raise leaves(f"{tensor.name}[{spelled}] leaves dimension {axis} of size {extent}")
    return slice(start, stop, step).indices(extent)


def _spelled(start: int | None, stop: int | None, step: int | None) -> str:
    return ":".join("" if one is None else str(one) for one in ((start, stop) if step is None else (start, stop, step)))


def unsupported(feature: str) -> UnsupportedError:
    """Return the error for a feature that is understood but not modelled yet."""
    return UnsupportedError(f"{feature} is not supported yet, at {kernel_place()}")


class Walk(Protocol):
    """What index expressions of the first generation name, dimension by dimension."""

    def problem(self) -> str | None:
        """Return how a view leaves its tensor, None where it does not."""


class ViewMethods:
    """View algebra of `NkiTensor`: shape, strides and offset in elements, `_row` elements per partition (0 in HBM)."""

    if TYPE_CHECKING:
        shape: tuple[int, ...]
        strides: tuple[int, ...]
        offset: int
        dtype: DType
        code: Dtype
        itemsize: int
        allocation: Allocation
        name: str
        size: int
        buffer: MemoryRegion
        _row: int
        _indirection: Any
        _unchecked: bool | Walk

        _kind: Kind | None

        def _make(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self: ...
        def _of_kind(self, its: Kind, offset: int) -> Self: ...
        def _find_kind(self) -> Kind: ...
        def __getitem__(self, key: Any) -> Self: ...
        def _across_partitions(self, shape: tuple[int, ...]) -> Self: ...
        def _indirect(self, new: Self, kind: str, index: Any, step: int, base: Self | None = None) -> Self: ...
        def get_pattern(self) -> list[list[int]]: ...
    else:
        __slots__ = ()  # the tensor has those above

    def _integer(self, value: Any, axis: int) -> int:
        if isinstance(value, ViewMethods):
            raise complain(f"{self.name}: index of dimension {axis} is a tensor; select({axis}, index) takes one")
        try:
            return operator.index(value)
        except TypeError:
            raise complain(f"{self.name}: index {value!r} of dimension {axis} is no integer, slice or nl.ds") from None

    def _axis(self, dim: int, method: str, extra: int = 0, partition: bool = False) -> int:
        """Return `dim` from 0; the partition dimension only where `partition` allows it."""
        count = len(self.shape) + extra
        if not -count <= dim < count:
            raise complain(f"{self.name}: {method} dim {dim} of a {len(self.shape)}-dimensional tensor")
        axis = dim + count if dim < 0 else dim
        if axis == 0 and self._row and not partition:
            raise complain(f"{self.name}: {method} dim 0 is the partition dimension of an on-chip tensor")
        return axis

    def permute(self, dims: Sequence[int]) -> Self:
        """Return the view with dimensions in the order of `dims`; on chip dims[0] is 0."""
        order = tuple(dims)
        if sorted(order) != list(range(len(self.shape))):
            raise complain(f"{self.name}: permute {order} is no permutation of {len(self.shape)} dimensions")
        if self._row and order[0] != 0:
            raise complain(f"{self.name}: permute {order} moves the partition dimension of an on-chip tensor")
        return self._make(tuple(self.shape[d] for d in order), tuple(self.strides[d] for d in order), self.offset)

    def broadcast(self, dim: int, size: int) -> Self:
        """Return the view that repeats a dimension of size 1 `size` times (stride 0)."""
        axis = self._axis(dim, "broadcast")
        size = self._integer(size, axis)
        if size < 1:
            raise complain(f"{self.name}: broadcast size {size} of dim {axis} is not at least 1")
        if self.shape[axis] != 1:
            raise complain(f"{self.name}: broadcast dim {axis} has size {self.shape[axis]}, not 1")
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = size, 0
        return self._make(tuple(shape), tuple(strides), self.offset)

    def expand_dim(self, dim: int) -> Self:
        """Return the view with a dimension of size 1 inserted at `dim`."""
        axis = self._axis(dim, "expand_dim", extra=1)
        # as the outer part of the dimension behind it, so that a reshape may merge the two
        step = self.strides[axis] * self.shape[axis] if axis < len(self.shape) else 1
        return self._make(
            (*self.shape[:axis], 1, *self.shape[axis:]), (*self.strides[:axis], step, *self.strides[axis:]), self.offset
        )

    def squeeze_dim(self, dim: int) -> Self:
        """Return the view without dimension `dim`, which has size 1."""
        axis = self._axis(dim, "squeeze_dim")
        if self.shape[axis] != 1:
            raise complain(f"{self.name}: squeeze_dim dim {axis} has size {self.shape[axis]}, not 1")
        return self._make(
            self.shape[:axis] + self.shape[axis + 1 :], self.strides[:axis] + self.strides[axis + 1 :], self.offset
        )

    def reshape_dim(self, dim: int, shape: Iterable[int]) -> Self:
        """Return the view with dimension `dim` split into `shape`, one of which may be -1."""
        wanted = _whole("reshape_dim", tuple(shape))
        axis = self._axis(dim, "reshape_dim", partition=len(wanted) == 1)
        split = infer_shape(wanted, self.shape[axis])
        if split is None:
            raise complain(f"{self.name}: reshape_dim {wanted} does not divide size {self.shape[axis]} of dim {axis}")
        step = self.strides[axis]
        inner = tuple(step * one for one in contiguous_strides(split))
        return self._make(
            self.shape[:axis] + split + self.shape[axis + 1 :],
            self.strides[:axis] + inner + self.strides[axis + 1 :],
            self.offset,
        )

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Return the view with dimensions start_dim to end_dim (inclusive) merged; they must run on from each other."""
        first = self._axis(start_dim, "flatten_dims", partition=start_dim == end_dim)
        last = self._axis(end_dim, "flatten_dims", partition=True)
        if last < first:
            raise complain(f"{self.name}: flatten_dims from {first} to {last}")
        total = prod(self.shape[first : last + 1])
        strides = reshape_strides(self.shape[first : last + 1], self.strides[first : last + 1], (total,))
        if strides is None:
            raise complain(
                f"{self.name}: flatten_dims {first} to {last} of shape {self.shape}, strides {self.strides}: "
                "not contiguous"
            )
        return self._make(
            (*self.shape[:first], total, *self.shape[last + 1 :]),
            self.strides[:first] + strides + self.strides[last + 1 :],
            self.offset,
        )

    def reshape(self, shape: Any, *more: int) -> Self:
        """Return the view with another shape of the same size; nothing is copied.

        On chip shape[0] stays; a tile in SBUF that changes it is copied, for reading only (nki/reshaping.py).
        """
        wanted = (shape, *more) if isinstance(shape, int) else tuple(shape)
        key: tuple[Any, ...] | None = None
        kind = self._kind or self._find_kind()
        if kind is not INDIRECT and _INTEGER.issuperset(map(type, wanted)):
            key = "reshape", wanted
            known = kind.parts.get(key)
            if known is not None:
                return self._of_kind(known[0], self.offset)
        new = infer_shape(wanted if key is not None else _whole("reshape", wanted), self.size)
        if new is None:
            raise complain(f"{self.name}: reshape {wanted} does not fit {self.size} elements of {self.shape}")
        if self._row:
            if new[0] != self.shape[0]:
                return self._across_partitions(new)
            inner = reshape_strides(self.shape[1:], self.strides[1:], new[1:])
            strides = None if inner is None else self.strides[:1] + inner
        else:
            strides = reshape_strides(self.shape, self.strides, new)
        if strides is None:
            raise complain(
                f"{self.name}: reshape {new} of shape {self.shape}, strides {self.strides} would need a copy"
            )
        view = self._make(new, strides, self.offset)
        if key is not None:
            kind.remember(key, view._find_kind(), 0)
        return view

    def rearrange(
        self, src_pattern: Sequence[Any], dst_pattern: Sequence[Any], fixed_sizes: dict[str, int] | None = None
    ) -> Self:
        """Return the view that splits, reorders and merges named dimensions."""
        extents, order, merged, problem = parse_rearrange(self.shape, src_pattern, dst_pattern, fixed_sizes or {})
        if problem is not None:
            raise complain(f"{self.name}: rearrange: {problem}")
        result = self
        for axis in reversed(range(len(extents))):
            if len(extents[axis]) > 1:
                result = result.reshape_dim(axis, extents[axis])
        result = result.permute(order)
        for group in reversed(merged):
            if len(group) > 1:
                result = result.flatten_dims(group[0], group[-1])
        return result

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """Return the view of elements start to end (exclusive) of one dimension; 0 <= start < end <= size."""
        axis = self._axis(dim, "slice", partition=True)
        extent = self.shape[axis]
        start, end, step = (self._integer(value, axis) for value in (start, end, step))
        if not (0 <= start < end <= extent and step >= 1):
            raise leaves(f"{self.name}: slice {start}:{end}:{step} leaves dimension {axis} of size {extent}")
        shape, strides = list(self.shape), list(self.strides)
        shape[axis] = (end - start + step - 1) // step
        strides[axis] *= step
        return self._make(tuple(shape), tuple(strides), self.offset + start * self.strides[axis])

    def select(self, dim: int, index: Any) -> Self:
        """Return the view of one index of a dimension, which is removed (kept with size 1 for partitions)."""
        axis = self._axis(dim, "select", partition=True)
        if isinstance(index, ViewMethods) or hasattr(index, "tile"):
            if axis == 0 and self._row:
                raise complain(f"{self.name}: dynamic select of dim 0, the partition dimension of an on-chip tensor")
            new = self._make(
                (self.shape[:axis] + self.shape[axis + 1 :]) or (1,),
                (self.strides[:axis] + self.strides[axis + 1 :]) or (1,),
                self.offset,
            )
            return self._by_scalar(new, index, self.strides[axis] * self.itemsize)
        position = self._integer(index, axis)
        if not 0 <= position < self.shape[axis]:
            raise leaves(f"{self.name}: select index {position} leaves dimension {axis} of size {self.shape[axis]}")
        return self[(slice(None),) * axis + (position,)]

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> Self:
        """Return the view of explicit [stride, count] pairs over the storage, `offset` elements on from this one."""
        key: tuple[Any, ...] | None = None
        if (
            scalar_offset is vector_offset is None
            and (dtype is None or dtype is self.dtype)
            and (offset is None or offset.__class__ is int)
            and not self._unchecked
            and (kind := self._kind or self._find_kind()) is not INDIRECT
        ):  # what the same pattern makes of such a view is known from the second time on
            first, row = self.offset + (offset or 0), self._row
            try:
                steps, counts = zip(*pattern, strict=True)
                key = "ap", steps, counts, first // row if row else 0
                known = kind.parts.get(key)
            except (TypeError, ValueError):  # of what are no pairs of integers, which is told below
                key = known = None
            if known is not None and _INTEGER.issuperset(map(type, steps + counts)):
                its = known[0]
                if self._is_within(its, first):
                    return self._of_kind(its, first)
        try:
            shape = tuple([operator.index(count) for _, count in pattern])
            strides = tuple([operator.index(stride) for stride, _ in pattern])
            start = operator.index(offset or 0)
        except (TypeError, ValueError):
            text = (
                f"{self.name}: ap takes [stride, count] pairs and an offset, all integers, not {pattern!r}, {offset!r}"
            )
            raise complain(text) from None
        # the step from partition to partition is all elements that one has, of a part of a tensor too
        if self._row and shape and 1 < shape[0] <= self.shape[0] and (dtype is None or dtype is self.dtype):
            strides = (self.strides[0] if strides[0] == prod(self.shape[1:]) else strides[0], *strides[1:])
        new = self._make(shape, strides, self.offset)
        if dtype is not None:
            new._reinterpret(dtype_of(dtype))
        new.offset += start
        if not new.shape or min(new.shape) < 1:
            raise complain(f"{self.name}: ap {list(map(list, pattern))} has a count below 1")
        if scalar_offset is None and vector_offset is None:
            # Kernels make patterns that they then do not use: one that leaves its storage is an error where it is used.
            new._unchecked = self._unchecked or new._reach_problem() is not None
            if key is not None and not new._unchecked:
                kind.remember(key, new._find_kind(), start)
            return new
        if scalar_offset is not None and vector_offset is not None:
            raise complain(f"{self.name}: ap takes scalar_offset or vector_offset, not both")
        axis = self._axis(indirect_dim, "ap indirect_dim", partition=True)
        step = self.strides[axis] * self.itemsize
        if scalar_offset is not None:
            if axis == 0 and self._row:
                raise complain(f"{self.name}: ap indirect_dim 0 is the partition dimension of an on-chip tensor")
            return self._by_scalar(new, scalar_offset, step)
        return self._by_vector(new, vector_offset, step)

    def _by_scalar(self, new: Self, index: Any, step: int) -> Self:
        """Return `new`, shifted by the number in a 1 x 1 tile, or in a register, times `step` bytes."""
        index = getattr(index, "tile", index)
        self._index_tile(index)
        if index.size != 1:
            raise complain(f"{self.name}: a dynamic index has {index.size} elements, must be one")
        return self._indirect(new, "scalar", index, step)

    def _by_vector(self, new: Self, index: Any, step: int) -> Self:
        """Return `new`, with its first dimension at the numbers of a tile times `step` bytes."""
        self._index_tile(index)
        if self._row:
            raise complain(f"{self.name}: vector indirection needs a tensor in HBM, this one is in {self.buffer.value}")
        # numbers lie in the columns of a tile; in more dimensions they have no documented order
        if index.size < new.shape[0] or (len(index.shape) > 1 and index.size != index.shape[0] * index.shape[1]):
            raise complain(f"{self.name}: indices of shape {index.shape} for {new.shape[0]} elements of dimension 0")
        return self._indirect(new, "vector", index, step)

    def _index_tile(self, index: Any) -> None:
        if self._indirection is not None:
            raise complain(f"{self.name}: the view is indirect already")
        if not isinstance(index, ViewMethods):
            raise complain(f"{self.name}: an index is {index!r}, must be an NKI tensor or a register")
        if index.buffer is not MemoryRegion.sbuf or not index.dtype.is_int:
            raise complain(f"{self.name}: indices are integers in SBUF, not {index.dtype} in {index.buffer.value}")

    def _check_reach(self) -> None:
        """Refuse a pattern that leaves the allocation, or a partition."""
        problem = None if isinstance(self._unchecked, bool) else self._unchecked.problem()
        if problem is not None:
            raise leaves(f"{self.name}: {problem}")
        problem = self._reach_problem()
        if problem is not None:
            raise leaves(problem)

    def _is_within(self, its: Kind, offset: int) -> bool:
        """Return whether `_reach_problem` would find nothing wrong with a view of a kind."""
        below, above, lowest, highest = its.reach
        row, one = self._row, self.allocation
        if row and not (offset - its.base + below >= 0 and offset - its.base + above < row):
            return False
        return offset + lowest >= 0 and offset + highest < one.partitions * one.partition_bytes // self.itemsize

    def _reach_problem(self) -> str | None:
        """Return what is wrong with a pattern that leaves the allocation, or a partition."""
        below, above, first = reach_of(self.strides, self.shape)
        low, high, row = self.offset + below, self.offset + above, self._row
        if first > 0:
            high += first
        else:
            low += first
        allocation = self.allocation
        total = allocation.partitions * allocation.partition_bytes // self.itemsize
        if low < 0 or high >= total:
            return (
                f"{self.name}: ap {self.get_pattern()} from offset {self.offset} reaches elements {low} to {high} "
                f"of {total}"
            )
        if row and (self.offset % row + below < 0 or self.offset % row + above >= row):
            return (
                f"{self.name}: ap {self.get_pattern()} from offset {self.offset} leaves the partition of "
                f"{self._row} elements"
            )
        return None

    def _reinterpret(self, dtype: DType) -> None:
        """Change dtype and count offsets in it; strides are left alone."""
        if self.code is not self.dtype.code and dtype != self.dtype:
            raise unsupported(
                f"{self.name}: reinterpreting {self.dtype} stored as {self.code.numpy_name} (NKI_PRECISE_FP=0)"
            )
        if dtype == self.dtype:
            return
        start = self.offset * self.itemsize
        row = self._row * self.itemsize
        if start % dtype.itemsize or row % dtype.itemsize:
            raise complain(
                f"{self.name}: byte {start} (partitions of {row} bytes) does not start an element of {dtype}"
            )
        self.dtype, self.code, self.itemsize = dtype, dtype.code, dtype.itemsize
        self.offset, self._row = start // dtype.itemsize, row // dtype.itemsize

    def view(self, dtype: Any) -> Self:
        """Return the same bytes as another dtype; the last dimension is contiguous, its size scales with the width."""
        wanted = dtype_of(dtype)
        old, new = self.itemsize, wanted.itemsize
        result = self._make(self.shape, self.strides, self.offset)
        if wanted == self.dtype:
            return result
        if old != new:
            last, step = self.shape[-1], self.strides[-1]
            if len(self.shape) < (2 if self._row else 1) or (step != 1 and last != 1) or last * old % new:
                raise complain(
                    f"{self.name}: view as {wanted} needs a contiguous last dimension that holds whole elements, "
                    f"not shape {self.shape}, strides {self.strides} of {self.dtype}"
                )
            outer = [stride * old for stride in self.strides[:-1]]
            if any(stride % new for stride in outer):
                raise complain(
                    f"{self.name}: view as {wanted}: strides {self.strides} of {self.dtype} are no whole elements"
                )
            result.shape = (*self.shape[:-1], last * old // new)
            result.strides = (*(stride // new for stride in outer), 1)
        result._reinterpret(wanted)
        return result

    reinterpret_cast = view

    def vector_select(self, dim: int, vector_offset: Any) -> Self:
        """Return the view whose first dimension is at the indices of an SBUF tile, one for each partition."""
        if dim != 0:
            raise complain(f"{self.name}: vector_select dim {dim}, must be 0")
        if not isinstance(vector_offset, ViewMethods):
            raise complain(f"{self.name}: vector_select takes a tile of indices, not {vector_offset!r}")
        new = self._make((vector_offset.shape[0], *self.shape[1:]), self.strides, self.offset)
        return self._by_vector(new, vector_offset, self.strides[0] * self.itemsize)

    def indirect(self, index: Any, num_elem: int | None = None) -> Self:
        """Return a (partitions, num_elem) view of columns at the numbers of an SBUF tile; needs gen4.

        Number i of a group of 16 partitions (32 for the Tensor engine) is index[i % 16, i // 16] in the group.
        """
        if tracer().generation < 4:
            raise complain(f"{self.name}: indirect needs gen4 (NeuronCore-v4)")
        if not self._row:
            raise complain(f"{self.name}: indirect needs a tile in SBUF or PSUM, this one is in {self.buffer.value}")
        self._index_tile(index)
        if index.dtype != "uint16":
            raise complain(f"{self.name}: indirect takes uint16 indices, not {index.dtype}")
        if index.shape[0] != self.shape[0]:
            raise complain(f"{self.name}: indirect has indices in {index.shape[0]} partitions for {self.shape[0]}")
        count = index.size if num_elem is None else self._integer(num_elem, 1)
        if count < 1:
            raise complain(f"{self.name}: indirect num_elem is {count}, at least 1")
        new = self._make((self.shape[0], count), (self._row, 1), self.offset)
        return self._indirect(new, "tensor", index, self.itemsize, self)
