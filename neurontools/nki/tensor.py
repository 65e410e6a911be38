"""`NkiTensor`: a view of an allocation, and every way to make another view of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from math import prod
from typing import Any, Self

from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from neurontools.builder.trace import Allocation, Space, View
from neurontools.nki.dtype import DType, dtype_of
from neurontools.nki.kinds import FAR, INDIRECT, Bounds, Kind, kind_of
from neurontools.nki.objects import NKIObject
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.regions import MemoryRegion, region_of
from neurontools.nki.strides import contiguous, contiguous_strides
from neurontools.nki.unanswered import elements, of_numpy, refuse
from neurontools.nki.unknown import no_values
from neurontools.nki.views import ViewMethods, bounds_of, complain, leaves, unsupported

__all__ = ["DynamicSlice", "Indirection", "NkiTensor", "ds"]


_HBM = Space.HBM
_WHOLE = slice(None)
_FAR = repeat(FAR)
_INDICES = slice.indices
_new: Callable[[type], Any] = object.__new__
# What `View(...)` does, without the function of the named tuple around it.
_view_of: Callable[[tuple[Any, ...]], View] = partial(tuple.__new__, View)


class DynamicSlice(NKIObject):
    """A slice given by start and size, as `nl.ds(start, size)` makes it."""

    __slots__ = ("size", "start")

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.size = size


def ds(start: int, size: int) -> DynamicSlice:
    """Return the slice of `size` elements from `start`; both are integers known while tracing."""
    return DynamicSlice(start, size)


class Indirection(NamedTuple):
    """Where the addresses of an indirect view come from.

    `indices` is an integer tile in SBUF, `step` the bytes that one of its numbers counts.  A "scalar" index shifts the
    whole view; of a "vector" one the first dimension takes a number for each of its `rows` elements, and `stride` tells
    whether that dimension is still whole. With a "tensor" of indices the columns of `base`, a tile, take its numbers.
    """

    kind: str
    indices: NkiTensor
    step: int
    rows: int
    stride: int
    base: NkiTensor | None = None


class NkiTensor(ViewMethods, NKIObject):
    """A typed view of storage: shape, strides and offset in elements of `dtype`.

    On chip dimension 0 is the partition dimension; its stride counts one partition's elements, so that offset and
    strides address the storage as one row-major array.  Views share storage; nothing is copied.
    """

    # No `__getattr__`: with one, Python looks for it at each of the dozens of attributes that an operation reads. What
    # a tensor lacks is told where the launch ends (`calls.explained`).
    __slots__ = (
        "_indirection",
        "_kind",
        "_row",
        "_unchecked",
        "_view",
        "allocation",
        "buffer",
        "code",
        "dtype",
        "itemsize",
        "name",
        "offset",
        "shape",
        "strides",
    )

    allocation: Allocation
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    buffer: MemoryRegion
    name: str
    code: Dtype
    itemsize: int

    def __init__(
        self, shape: Sequence[int], dtype: Any, storage: Any, buffer: Any = MemoryRegion.sbuf, name: str = ""
    ) -> None:
        self.shape = tuple(shape)
        self.strides = contiguous_strides(self.shape)
        self.offset = 0
        self.dtype = dtype_of(dtype)
        self.allocation = storage
        self.buffer = region_of(buffer)
        self.name = name or (storage.name if storage is not None else "")
        self.code = storage.dtype if storage is not None else self.dtype.code
        self.itemsize = self.code.size
        self._row = 0
        if self.buffer.space is not Space.HBM:
            self._row = prod(self.shape[1:])
        self._kind: Kind | None = None  # None where nobody has asked yet
        self._view: View | None = None
        self._indirection: Indirection | None = None
        self._unchecked = False

    def _make(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        # without __init__, which would check again what is known: kernels make several views an operation
        new: Self = _new(NkiTensor)  # nothing inherits from it
        new._kind = None
        new.shape = shape
        new.strides = strides
        new.offset = offset
        new.dtype = self.dtype
        new.allocation = self.allocation
        new.buffer = self.buffer
        new.name = self.name
        new.code = self.code
        new.itemsize = self.itemsize
        new._row = self._row
        new._view = None
        found = new._indirection = self._indirection
        if found is not None and found.base is not None:
            raise complain(f"{self.name}: an indirect view of columns is used as it is, without further views")
        new._unchecked = self._unchecked
        return new

    def _of_kind(self, its: Kind, offset: int) -> Self:
        """Return the view of a known kind with its first element at `offset`; this one is not indirect."""
        new: Self = _new(NkiTensor)
        new._kind = its
        new.shape = its.shape
        new.strides = its.strides
        new.offset = offset
        new.dtype = self.dtype
        allocation = new.allocation = self.allocation
        new.buffer = self.buffer
        new.name = self.name
        code = new.code = self.code
        size = new.itemsize = self.itemsize
        new._row = self._row
        new._indirection = None
        unchecked = new._unchecked = self._unchecked
        dims = its.dims
        # nearly every view is an operand as it is
        new._view = None if dims is None or unchecked else _view_of(
            (allocation, code, its.partition, its.partitions, (offset - its.base) * size, dims)
        )  # fmt: skip
        return new

    # -- facts ----------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:  # type: ignore[override]  # declared as a field beside the view methods
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def on_chip(self) -> bool:
        """Return whether the storage is SBUF or PSUM."""
        return self._row != 0

    @property
    def space(self) -> Space:
        """Return the physical memory."""
        return self.allocation.space

    @property
    def free_size(self) -> int:
        """Return the elements per partition of an on-chip tensor."""
        return prod(self.shape[1:])

    @property
    def steps_partitions(self) -> bool:
        """Return whether the view repeats or skips partitions, which no single operation does."""
        return self._row != 0 and self.shape[0] != 1 and self.strides[0] != self._row

    @property
    def view_of_storage(self) -> View:
        """Return the view that the builder reads; a partition step that no engine has is an error.

        So are addresses that depend on data: `base_view` gives those, to the DMA calls that can take them.
        """
        if self._indirection is not None:
            raise unsupported(f"{self.name}: an indirect view as an operand of this instruction")
        return self.base_view

    @property
    def base_view(self) -> View:
        """Return the view as if every index were 0."""
        view = self._view
        if view is None:
            if self._unchecked:
                self._check_reach()
            kind = self._kind or self._find_kind()
            if kind is INDIRECT:
                its = self.allocation
                kind = kind_of(self.shape, self.strides, self.offset, self._row, self.dtype, self.code, its.space,
                               its.address)  # fmt: skip
            dims = kind.dims
            if dims is None:
                raise self._no_view()
            free = (self.offset - kind.base) * self.itemsize
            view = _view_of((self.allocation, self.code, kind.partition, kind.partitions, free, dims))
            if self._indirection is None:
                self._view = view
        return view

    def _find_kind(self) -> Kind:
        """Return what is known of views like this one, `INDIRECT` where nothing is, and keep it."""
        its = self.allocation
        found = INDIRECT
        if self._indirection is None:
            found = kind_of(self.shape, self.strides, self.offset, self._row, self.dtype, self.code, its.space,
                            its.address)  # fmt: skip
        self._kind = found
        return found

    def _no_view(self) -> Exception:
        """Return the error for a view that nothing could work on."""
        if 0 in self.shape:
            return complain(f"{self.name}: a view of shape {self.shape} has no elements to work on")
        return complain(
            f"{self.name}: partition stride {self.strides[0]} of shape {self.shape} is not the "
            f"{self._row} elements of a partition; engines and DMA read contiguous partitions"
        )

    def is_contiguous(self) -> bool:
        """Return whether the view is row major without holes; on chip the partition dimension does not count."""
        if self._row:
            return contiguous(self.shape[1:], self.strides[1:])
        return contiguous(self.shape, self.strides)

    def get_pattern(self) -> list[list[int]]:
        """Return [stride, count] of each dimension, in elements."""
        return [[stride, count] for stride, count in zip(self.strides, self.shape, strict=True)]

    def is_indirect(self) -> bool:
        """Return whether addresses depend on data: a dynamic `select`, a `vector_select`, or `.ap` with an offset."""
        return self._indirection is not None

    @property
    def indirection(self) -> Indirection | None:
        """Return where the addresses come from, None for a view that is known while tracing."""
        return self._indirection

    def __repr__(self) -> str:
        return f"<NkiTensor {self.name!r} {self.buffer.value} {self.dtype} {self.shape}>"

    def __str__(self) -> str:
        return f"{self!r}, whose values exist once the device runs: nl.device_print(prefix, tensor) prints them then"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Take `number * tile` of NumPy's numbers as that of Python's."""
        return of_numpy(NkiTensor, ufunc, method, inputs, keywords)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse to be an array: while the kernel is traced there are no values."""
        raise complain(no_values(self.name))

    def _across_partitions(self, shape: tuple[int, ...]) -> Self:
        copied: Self = OPERATIONS["reshape"](self, shape)
        return copied

    def _indirect(self, new: Self, kind: str, index: NkiTensor, step: int, base: Self | None = None) -> Self:
        new._indirection = Indirection(kind, index, step, new.shape[0], new.strides[0], base)
        return new

    # -- indexing ---------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Self:
        """Return the view that integers, slices, Ellipsis and `nl.ds` select; on chip dimension 0 is always kept."""
        # The innermost loop of tracing: what the same slices make of such a view is known from the second time on.
        if key.__class__ is not tuple:
            key = (key,)
        bounds: Bounds | None = None
        try:
            for item in key:
                if item.__class__ is not slice:
                    bounds = _bounds(key)
                    break
            else:
                bounds = (*map(_INDICES, key, _FAR),)
        except TypeError:  # of an end that is no integer, which is told below
            pass
        kind = self._kind or self._find_kind()
        found = None if bounds is None else kind.parts.get(bounds)
        if found is not None:
            its, front = found
            if its is kind and not front:  # all of it, as a third of all indices name
                return self
            offset = self.offset + front
            if its.low <= offset < its.end:
                part: Self = _new(NkiTensor)  # as `_of_kind` does
                part._kind = its
                part.shape = its.shape
                part.strides = its.strides
                part.offset = offset
                part.dtype = self.dtype
                allocation = part.allocation = self.allocation
                part.buffer = self.buffer
                part.name = self.name
                code = part.code = self.code
                size = part.itemsize = self.itemsize
                part._row = self._row
                part._indirection = None
                unchecked = part._unchecked = self._unchecked
                dims = its.dims
                part._view = None if dims is None or unchecked else _view_of(
                    (allocation, code, its.partition, its.partitions, (offset - its.base) * size, dims)
                )  # fmt: skip
                return part
        new = self._part(key)
        if bounds is not None and found is None and kind is not INDIRECT:
            kind.remember(bounds, new._find_kind(), new.offset - self.offset)
        return new

    def _part(self, key: tuple[Any, ...]) -> Self:
        """Return the view that an index selects, item by item."""
        shape, old_strides, offset = self.shape, self.strides, self.offset
        if len(key) != len(shape):
            key = self._expand(key)
        new_shape: list[int] = []
        strides: list[int] = []
        for axis, item in enumerate(key):
            extent, stride = shape[axis], old_strides[axis]
            if item.__class__ is slice:
                start, stop, step = item.start, item.stop, item.step
                if step is None:
                    if start is None:
                        if stop is None:
                            new_shape.append(extent)
                            strides.append(stride)
                            continue
                        start = 0
                    elif stop is None:
                        stop = extent
                if (
                    start.__class__ is not int
                    or stop.__class__ is not int
                    or step is not None
                    or not 0 <= start < stop <= extent
                ):
                    start, stop, step = self._slice(axis, item, extent)
                if step is None:
                    new_shape.append(stop - start)
                    strides.append(stride)
                else:
                    new_shape.append((stop - start + step - 1) // step)
                    strides.append(stride * step)
                offset += start * stride
            elif item.__class__ is DynamicSlice:
                start, count = self._integer(item.start, axis), self._integer(item.size, axis)
                if count < 0 or start < 0 or start + count > extent:
                    raise leaves(f"{self.name}: nl.ds({start}, {count}) leaves dimension {axis} of size {extent}")
                new_shape.append(count)
                strides.append(stride)
                offset += start * stride
            elif item.__class__ is range:
                start, count, step = self._range(axis, item, extent)
                new_shape.append(count)
                strides.append(stride * step)
                offset += start * stride
            elif item is Ellipsis:  # and as many others as dimensions
                return self._part(self._expand(key))
            else:
                index = self._integer(item, axis)
                if not -extent <= index < extent:
                    raise leaves(f"{self.name}: index {index} leaves dimension {axis} of size {extent}")
                offset += (index + extent if index < 0 else index) * stride
                if axis == 0 and self._row:
                    new_shape.append(1)
                    strides.append(stride)
        # a tensor keeps at least one dimension, and on chip a free one beside the partitions
        missing = (2 if self._row else 1) - len(new_shape)
        if missing > 0:
            new_shape += (1,) * missing
            strides += (1,) * missing
        return self._make(tuple(new_shape), tuple(strides), offset)

    def _expand(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        for item in key:
            if item is Ellipsis:
                break
        else:
            if len(key) <= len(self.shape):  # the usual case: the last dimensions are left out
                return key + (_WHOLE,) * (len(self.shape) - len(key))
        dots = [i for i, item in enumerate(key) if item is Ellipsis]
        missing = len(self.shape) - (len(key) - len(dots))
        if len(dots) > 1 or missing < 0:
            raise complain(f"{self.name}: {len(key)} indices for shape {self.shape}")
        if dots:
            return key[: dots[0]] + (slice(None),) * missing + key[dots[0] + 1 :]
        return key + (slice(None),) * missing

    def _range(self, axis: int, item: range, extent: int) -> tuple[int, int, int]:
        """Return start, count and step of the elements that a range, such as `nl.affine_range(8)`, names."""
        if not item or item.step < 1 or item[0] < 0 or item[-1] >= extent:
            raise leaves(f"{self.name}: {item} leaves dimension {axis} of size {extent}, or does not count up")
        return item.start, len(item), item.step

    def _slice(self, axis: int, item: Any, extent: int) -> tuple[int, int, int | None]:
        if item.step is not None and self._integer(item.step, axis) < 1:
            raise complain(f"{self.name}: slice step {item.step} of dimension {axis} is not positive")
        start, stop, step = bounds_of(self, axis, item)
        if start >= stop:
            text = f"{self.name}: slice {item.start}:{item.stop} of dimension {axis} of size {extent} is empty"
            if item.start is not None and self._integer(item.start, axis) < 0:  # a halo in front of the first element
                raise leaves(f"{text}: a start below 0 counts from the end")
            raise complain(text)
        return start, stop, None if step == 1 else step

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write through: copy `value` (tile, HBM tensor or number) into the selected elements."""
        target = self[key]
        if (
            isinstance(value, NkiTensor)
            and value.allocation is target.allocation
            and value.code is target.code
            and (value.shape, value.strides, value.offset) == (target.shape, target.strides, target.offset)
            and value._indirection is target._indirection
        ):
            return  # `t[...] += x` comes back here with the view it has already updated
        OPERATIONS["assign"](target, value)

    # -- operators ----------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        return elements(self, other, "==", "nl.equal(a, b)")

    def __ne__(self, other: object) -> Any:
        return elements(self, other, "!=", "nl.not_equal(a, b)")

    __hash__ = object.__hash__

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        """Record an `assert` on this tensor for after the run; anywhere else the truth is not known while tracing."""
        return bool(OPERATIONS["truth"](self))


def _bounds(key: tuple[Any, ...]) -> Bounds | None:
    """Return an index as kinds keep it, None for one that needs a closer look; TypeError for a slice that is none."""
    found: list[Any] = []
    for item in key:
        kind = item.__class__
        if kind is int:
            found.append(item)
        elif kind is slice:
            found.append(item.indices(FAR))
        elif kind is DynamicSlice and item.start.__class__ is int and item.size.__class__ is int:
            found.append((item.start, item.size))
        else:
            return None
    return tuple(found)


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    if swapped:
        return lambda self, other: OPERATIONS[name](other, self)
    return lambda self, other: OPERATIONS[name](self, other)


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
for _name, _operation in _BINARY.items():
    setattr(NkiTensor, f"__{_name}__", _operator(_operation))
    setattr(NkiTensor, f"__r{_name}__", _operator(_operation, swapped=True))
    setattr(NkiTensor, f"__i{_name}__", _operator("in_place_" + _operation))
setattr(NkiTensor, "__neg__", lambda self: OPERATIONS["negative"](self))  # noqa: B010  beside its siblings above
refuse(NkiTensor)
