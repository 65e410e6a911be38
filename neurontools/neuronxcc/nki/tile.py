"""Tiles of the first generation: logical dimensions in any order over the storage of a present-day tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from neurontools.neuronxcc.nki.affine import Grid, Index, Mask, unsupported
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import DynamicSlice, NkiTensor
from neurontools.nki.views import complain
from neurontools.trace import Space

__all__ = ["Product", "Tile", "apply", "boxed", "copy_into", "materialize", "unwrap"]


class Tile:
    """A tensor or a part of one, with the operators of the first generation."""

    def __init__(self, tensor: NkiTensor) -> None:
        self._tensor = tensor

    @property
    def tensor(self) -> NkiTensor:
        """Return the tensor of the present generation."""
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return self.tensor.shape

    @property
    def dtype(self) -> Any:
        """Return the element type."""
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def buffer(self) -> MemoryRegion:
        """Return the memory region."""
        return self.tensor.buffer

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return self.tensor.itemsize

    def __getitem__(self, key: Any) -> Tile:
        keys = list(key) if isinstance(key, (tuple, Grid)) else [key]
        places = [number for number, one in enumerate(keys) if one is Ellipsis]
        if places:
            rest = len(self.shape) - sum(one is not None for one in keys) + 1
            keys[places[0] : places[0] + 1] = [slice(None)] * rest
        else:
            keys += [slice(None)] * (len(self.shape) - sum(one is not None for one in keys))
        if any(isinstance(one, Tile) for one in keys):
            return _gathered(self.tensor, keys)
        if any(isinstance(one, Index) for one in keys):
            return Tile(_walked(self.tensor, keys))
        return Tile(_sliced(self.tensor, keys))

    def __setitem__(self, key: Any, value: Any) -> None:
        copy_into(self[key], value)

    def reshape(self, shape: Any) -> Tile:
        """Return the tile with other dimensions."""
        return Tile(self.tensor.reshape(tuple(shape)))

    def view(self, dtype: Any) -> Tile:
        """Return the same bytes as elements of another type."""
        return Tile(self.tensor.view(dtype))

    def broadcast_to(self, shape: Any) -> Tile:
        """Return the tile with dimensions of one element repeated."""
        tensor, shape = self.tensor, tuple(int(one) for one in shape)
        if len(shape) != len(tensor.shape) or any(a not in (1, b) for a, b in zip(tensor.shape, shape, strict=True)):
            raise complain(f"broadcast_to: {tensor.shape} does not become {shape}")
        if tensor.on_chip and tensor.shape[0] != shape[0]:
            return Tile(nl.broadcast_to(tensor, shape))
        strides = tuple(
            0 if a == 1 else stride for a, stride in zip(tensor.shape, tensor.strides, strict=True)
        )
        return Tile(tensor._make(shape, (tensor.strides[0], *strides[1:]), tensor.offset))

    def expand_dims(self, axis: int) -> Tile:
        """Return the tile with one more dimension of one element."""
        axis = axis % (len(self.shape) + 1)
        return self[(*[slice(None)] * axis, None)]

    def astype(self, dtype: Any) -> Tile:
        """Return a copy of another element type."""
        return apply(lambda x: nl.copy(x, dtype=dtype), None, self)

    def __iadd__(self, value: Any) -> Tile:
        return self._update("add", value)

    def __isub__(self, value: Any) -> Tile:
        return self._update("subtract", value)

    def __imul__(self, value: Any) -> Tile:
        return self._update("multiply", value)

    def __itruediv__(self, value: Any) -> Tile:
        return self._update("divide", value)

    def _update(self, name: str, value: Any) -> Tile:
        if isinstance(value, Product) and name == "add" and self.buffer is MemoryRegion.psum and not value.made:
            value.into(self.tensor)
        else:
            copy_into(self, apply(getattr(nl, name), None, self, value))
        return self


def _binary(name: str, swapped: bool) -> Callable[[Tile, Any], Tile]:
    def method(self: Tile, other: Any) -> Tile:
        return apply(getattr(nl, name), None, *((other, self) if swapped else (self, other)))

    return method


for _operation, _function in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}.items():  # fmt: skip
    setattr(Tile, f"__{_operation}__", _binary(_function, False))
    setattr(Tile, f"__r{_operation}__", _binary(_function, True))
for _operation, _function in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"
}.items():  # fmt: skip
    setattr(Tile, f"__{_operation}__", _binary(_function, False))
Tile.__neg__ = lambda self: apply(nl.negative, None, self)  # type: ignore[attr-defined]


class Product(Tile):
    """A matrix product that is not computed yet: `psum += product` adds to that tile, any other use makes one."""

    def __init__(self, shape: tuple[int, int], emit: Callable[[NkiTensor], None], dtype: Any = nl.float32) -> None:
        self._shape, self._emit, self._dtype = shape, emit, dtype
        self.made = False

    def into(self, target: NkiTensor) -> None:
        """Compute the product into a PSUM tile."""
        self._emit(target)

    @property
    def tensor(self) -> NkiTensor:
        """Return the product in a PSUM tile of its own."""
        if not self.made:
            self._tensor = nl.ndarray(self._shape, self._dtype, nl.psum)
            self.made = True
            self._emit(self._tensor)
        return self._tensor


def _sliced(tensor: NkiTensor, keys: list[Any]) -> NkiTensor:
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
    return tensor._make(tuple(shape), tuple(strides), offset)


def _walked(tensor: NkiTensor, keys: list[Any]) -> NkiTensor:
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
    return _walked(tensor, new)


def _gathered(tensor: NkiTensor, keys: list[Any]) -> Tile:
    """Return the view of rows of an HBM tensor whose numbers stand in a tile."""
    tiles = [place for place, one in enumerate(keys) if isinstance(one, Tile)]
    if tiles != [0] or tensor.on_chip:
        raise unsupported("an index tile anywhere but in the first dimension of a tensor in HBM")
    index = keys[0].tensor
    rest = Tile(tensor)[(0, *keys[1:])] if not any(isinstance(one, Index) for one in keys[1:]) else None
    if rest is None:
        view = _walked(tensor, [0, *keys[1:]])
        shape, strides, offset = view.shape[1:], view.strides[1:], view.offset
    else:
        shape, strides, offset = rest.tensor.shape, rest.tensor.strides, rest.tensor.offset
    rows = index.shape[0]
    pattern = [[tensor.strides[0], rows], *([stride, count] for stride, count in zip(strides, shape, strict=True))]
    return Tile(tensor.ap(pattern=pattern, offset=offset, vector_offset=index, indirect_dim=0))


def unwrap(value: Any) -> Any:
    """Return the present-day tensor of a tile, anything else as it is."""
    return value.tensor if isinstance(value, Tile) else value


def boxed(value: Any, box: tuple[tuple[int, int], ...] | None, shape: tuple[int, ...]) -> Any:
    """Return the part of a tensor that lies in a box of an iteration; dimensions of one element are broadcast."""
    tensor = unwrap(value)
    if box is None or not isinstance(tensor, NkiTensor):
        return tensor
    offset, extents = tensor.offset, list(tensor.shape)
    for axis, (low, high) in enumerate(box[: len(extents)]):
        if extents[axis] == shape[axis]:
            offset += low * tensor.strides[axis]
            extents[axis] = high - low
    made = tensor._make(tuple(extents), tensor.strides, offset)
    made._unchecked = True
    return made


def nominal(values: Iterable[Any]) -> tuple[int, ...]:
    """Return the shape that operands have together."""
    shapes = [unwrap(one).shape for one in values if isinstance(one, Tile)]
    ndim = max(map(len, shapes))
    wide = [(*one, *[1] * (ndim - len(one))) for one in shapes]
    return tuple(max(extents) for extents in zip(*wide, strict=True))


def masked_box(mask: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """Return the box of a mask over a shape, None where it leaves nothing out."""
    if mask is None or mask is True:
        return None
    if mask is False:
        return tuple((0, 0) for _ in shape)
    if not isinstance(mask, Mask):
        raise unsupported(f"mask={mask!r}")
    box = mask.box(shape)
    return None if all(pair == (0, extent) for pair, extent in zip(box, shape, strict=True)) else box


def apply(function: Callable[..., NkiTensor], mask: Any, *operands: Any, **keywords: Any) -> Tile:
    """Return the result of a functional operation; outside the mask it is undefined."""
    shape = nominal(operands)
    box = masked_box(mask, shape)
    if box is None:
        return Tile(function(*[_ready(unwrap(one)) for one in operands], **keywords))
    full: NkiTensor | None = None
    if prod(high - low for low, high in box):
        part = function(*[_ready(boxed(one, box, shape)) for one in operands], **keywords)
        full = nl.ndarray(shape, part.dtype, nl.sbuf)
        isa.tensor_copy(boxed(full, box, shape), part)
    return Tile(full if full is not None else nl.ndarray(shape, unwrap(operands[0]).dtype, nl.sbuf))


def _ready(value: Any) -> Any:
    """Return an operand where engines reach it."""
    return nl.load(value) if isinstance(value, NkiTensor) and value.space is Space.HBM else value


def materialize(shape: Any, dtype: Any, mask: Any, emit: Callable[..., Any], *operands: Any) -> Tile:
    """Return a new SBUF tile that `emit(dst, *operands)` fills, inside the mask only."""
    shape = tuple(int(one) for one in shape)
    full = nl.ndarray(shape, dtype, nl.sbuf)
    box = masked_box(mask, shape)
    if box is None or prod(high - low for low, high in box):
        emit(boxed(full, box, shape), *[boxed(one, box, shape) for one in operands])
    return Tile(full)


def copy_into(target: Tile, value: Any, mask: Any = None) -> None:
    """Write a tile or a number into a part of a tensor."""
    dst = target.tensor
    if isinstance(value, Product) and not value.made and dst.buffer is MemoryRegion.psum and mask is None:
        value.into(dst)
        return
    box = masked_box(mask, dst.shape)
    if box is not None and not prod(high - low for low, high in box):
        return
    part = boxed(dst, box, dst.shape)
    if not isinstance(value, Tile):
        nl.store(part, nl.full(part.shape, value, part.dtype)) if part.space is Space.HBM else isa.memset(part, value)
        return
    src = value.tensor
    same = src.allocation is dst.allocation and (src.offset, src.shape, src.strides) == (
        dst.offset, dst.shape, dst.strides)  # fmt: skip
    if same:
        return
    alike = len(src.shape) == len(dst.shape) and src.shape != dst.shape
    if alike and all(a in (1, b) for a, b in zip(src.shape, dst.shape, strict=True)):
        src = Tile(src).broadcast_to(dst.shape).tensor
    src = boxed(src, box, dst.shape)
    if part.space is Space.HBM:
        nl.store(part, src)
    elif src.space is Space.HBM:
        isa.dma_copy(part, src)
    else:
        isa.tensor_copy(part, src)
