"""Tiles of the first generation: logical dimensions in any order over the storage of a present-day tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from neurontools.builder.trace import Space
from neurontools.neuronxcc.nki.affine import Grid, Index, Mask
from neurontools.neuronxcc.nki.deferred import Moment
from neurontools.neuronxcc.nki.masks import Box, Boxes, both, bounding, is_empty, masked_box, masked_boxes
from neurontools.neuronxcc.nki.partitions import operand, put, reached, ready, written
from neurontools.neuronxcc.nki.refusals import unsupported
from neurontools.neuronxcc.nki.tile_operators import INSTEAD, give_operators
from neurontools.neuronxcc.nki.walks import Reach, sliced, walked
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.language.creation import fill
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import DynamicSlice, NkiTensor
from neurontools.nki.tracer import kernel_line, tracer
from neurontools.nki.unknown import no_values, of_tensor
from neurontools.nki.views import complain

__all__ = [
    "Cut",
    "Gathered",
    "Product",
    "Tile",
    "aligned",
    "apply",
    "boxed",
    "copy_into",
    "extents_of",
    "materialize",
    "unwrap",
    "whole_under",
]


_NUMBERS = int, np.integer


def extents_of(shape: Iterable[Any]) -> tuple[int, ...]:
    """Return the extents of a shape; quotients count where they are whole, and are not cut off where they are not."""
    given = tuple(shape)
    try:
        extents = tuple(int(one) for one in given)
    except (TypeError, ValueError, OverflowError):
        extents = ()
    if extents != given:
        raise complain(f"shape {given!r} is not made of whole numbers")
    return extents


class Tile:
    """A tensor or a part of one, with the operators of the first generation.

    `valid` are the boxes that a masked operation computed, None for all: an assignment of the tile changes only those.
    `is_number` is whether whole numbers chose one element on chip: as an index it takes its dimension away.
    """

    valid: Boxes | None = None
    is_number = False

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

    def __repr__(self) -> str:
        return repr(self._tensor) if "_tensor" in vars(self) else f"<{type(self).__name__} that is not in one place>"

    def __str__(self) -> str:
        return str(self._tensor) if "_tensor" in vars(self) else repr(self)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse to be an array: while the kernel is traced there are no values."""
        raise complain(no_values(getattr(vars(self).get("_tensor"), "name", "tile")))

    def __getattr__(self, name: str) -> Any:
        """Say which attribute may be meant."""
        raise of_tensor(getattr(vars(self).get("_tensor"), "name", "tile"), name, dir(Tile), INSTEAD)

    @property
    def name(self) -> str:
        """Return the name of the tensor."""
        return str(getattr(vars(self).get("_tensor"), "name", "tile"))

    def __bool__(self) -> bool:
        """Answer `x if tensor else y` of arguments, which are there; of tiles there are no values while tracing."""
        if self.tensor.space is Space.HBM:
            return True
        raise complain(f"{no_values(self.name)}; for a choice of elements write nl.where(condition, x, y)")

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Tile]:
        return (self[place] for place in range(len(self)))

    __hash__ = object.__hash__

    def _keys(self, key: Any) -> list[Any]:
        """Return one key for each dimension, and those for new ones."""
        keys = list(key) if isinstance(key, (tuple, Grid)) else [key]
        if any(isinstance(one, np.ndarray) and one.ndim for one in keys):
            raise complain(f"{self.name}: an array of NumPy is no index; write nl.arange(n)[:, None] or slices")
        places = [number for number, one in enumerate(keys) if one is Ellipsis]
        if places:
            rest = len(self.shape) - sum(one is not None for one in keys) + 1
            keys[places[0] : places[0] + 1] = [slice(None)] * rest
        else:
            keys += [slice(None)] * (len(self.shape) - sum(one is not None for one in keys))
        return keys

    def __getitem__(self, key: Any) -> Tile:
        if isinstance(key, (Mask, bool, np.bool_)):
            box = masked_box(key, self.shape)
            return self if box is None else Cut(self, box)
        keys = self._keys(key)
        if any(isinstance(one, Tile) for one in keys):
            return _gathered(self.tensor, keys)
        if any(isinstance(one, Index) for one in keys):
            return Tile(walked(self.tensor, keys))
        made = Tile(sliced(self.tensor, keys))
        # a partition that a number has chosen is still a dimension, which kernels do not count
        if key.__class__ is tuple and len(key) > 1 and all(isinstance(one, _NUMBERS) for one in key):
            made.is_number = made._tensor.size == 1
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        copy_into(self[key], value, valid=getattr(value, "valid", None))

    def reshape(self, shape: Any) -> Tile:
        """Return the tile with other dimensions."""
        return Tile(self.tensor.reshape(extents_of(shape)))

    def view(self, dtype: Any) -> Tile:
        """Return the same bytes as elements of another type."""
        return Tile(self.tensor.view(dtype))

    def broadcast_to(self, shape: Any) -> Tile:
        """Return the tile with dimensions of one element repeated."""
        tensor, shape = self.tensor, extents_of(shape)
        if len(shape) != len(tensor.shape) or any(a not in (1, b) for a, b in zip(tensor.shape, shape, strict=True)):
            raise complain(f"broadcast_to: {tensor.shape} does not become {shape}")
        if tensor.on_chip and tensor.shape[0] != shape[0]:
            return Tile(nl.broadcast_to(tensor, shape))
        strides = tuple(0 if a == 1 else stride for a, stride in zip(tensor.shape, tensor.strides, strict=True))
        if tensor.on_chip:  # whose partitions stay
            strides = tensor.strides[0], *strides[1:]
        made = tensor._make(shape, strides, tensor.offset)
        if isinstance(made._unchecked, Reach):
            made._unchecked = made._unchecked._replace(shape=shape)
        return Tile(made)

    def as_tile(self) -> Tile:
        """Return the tile itself: a part of one is a tile here.

        No page of AWS has it; observed in a public kernel, around an index that stands in a column.
        """
        return self

    def expand_dims(self, axis: int) -> Tile:
        """Return the tile with one more dimension of one element."""
        count = len(self.shape) + 1
        if not -count <= axis < count:
            raise complain(f"expand_dims: axis {axis} of a {len(self.shape)}-dimensional tile")
        axis %= count
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
        adds = isinstance(value, Product) and name == "add" and value.waits
        # PSUM adds in fp32, which would round whole numbers
        if adds and self.buffer is MemoryRegion.psum and not self.dtype.is_int:
            value.into(self.tensor)
        else:
            valid = getattr(value, "valid", None)
            if valid is not None:
                valid = tuple(_spread(one, value, self.shape) for one in valid)
            copy_into(self, apply(getattr(nl, name), None, self, value), valid=valid)
        return self


class Product(Tile):
    """A matrix product that is not computed yet: `psum += product` adds to that tile, any other use makes one.

    Where `operands` have been written since, it is computed where the kernel called for it.
    """

    def __init__(
        self, shape: tuple[int, int], emit: Callable[[NkiTensor, bool | None], None], dtype: Any = nl.float32,
        operands: Iterable[NkiTensor] = (),
    ) -> None:  # fmt: skip
        self._shape, self._emit, self._dtype = shape, emit, dtype
        self._called_at, self._moment = kernel_line(), Moment(tracer())
        self._operands = [one.view_of_storage for one in operands]
        self.made = False

    @property
    def waits(self) -> bool:
        """Return whether it can still be computed into any tile."""
        return not self.made and not self._moment.overwritten(self._operands)

    def into(self, target: NkiTensor, accumulate: bool | None = None) -> None:
        """Compute the product into a PSUM tile, or add it there; its words are those of the line that called for it."""
        running = tracer()
        before, running.called_at = running.called_at, self._called_at
        try:
            self._emit(target, accumulate)
        finally:
            running.called_at = before

    @property
    def tensor(self) -> NkiTensor:
        """Return the product in a PSUM tile of its own."""
        if not self.made and self.waits:
            self._make_tile()
        elif not self.made:
            self._moment.carry_out(self._make_tile)
        return self._tensor

    def _make_tile(self) -> None:
        self._tensor = nl.ndarray(self._shape, self._dtype, nl.psum)
        self.made = True
        self.into(self._tensor)


class Cut(Tile):
    """A tile of which only a box takes part, `tile[mask]`; matrix products take it."""

    def __init__(self, whole: Tile, box: Box) -> None:
        super().__init__(whole.tensor)
        self.whole, self.box = whole, box

    @property
    def tensor(self) -> NkiTensor:
        """Refuse to be used as if nothing were left out."""
        raise unsupported("a masked tile anywhere but in a matrix product")

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents of the whole tile."""
        return self.whole.shape

    def __getitem__(self, key: Any) -> Tile:
        if not isinstance(key, (Mask, bool, np.bool_)):
            raise unsupported("a part of a masked tile")
        box = masked_box(key, self.shape)
        return self if box is None else Cut(self.whole, both(self.box, box))


class Gathered(Tile):
    """A part of an HBM tensor at a place that stands in a tile: one number for all of it, or one for each row."""

    def __init__(
        self, base: NkiTensor, pattern: list[list[int]], offset: int, index: NkiTensor, place: int, by_rows: bool
    ) -> None:
        self._parts = base, pattern, offset, index, place, by_rows
        numbers = "vector_offset" if by_rows else "scalar_offset"
        super().__init__(base.ap(pattern=pattern, offset=offset, indirect_dim=place, **{numbers: index}))

    def standing(self) -> Gathered:
        """Return it as a tile has it: elements in a row without more dimensions lie in a partition each, or in one."""
        base, pattern, offset, index, place, by_rows = self._parts
        if len(pattern) != 1:
            return self
        pattern = [*pattern, [1, 1]] if pattern[0][1] <= nl.tile_size.pmax else [[1, 1], *pattern]
        return Gathered(base, pattern, offset, index, place, by_rows)

    def cut(self, box: Box | None) -> NkiTensor:
        """Return the part in a box; the numbers outside of it are not looked at."""
        if box is None:
            return self._tensor
        base, pattern, offset, index, place, by_rows = self._parts
        first = 1 if by_rows else 0
        for (low, _), (step, _) in zip(box[first:], pattern[first:], strict=True):
            offset += low * step
        cut = [[step, high - low] for (low, high), (step, _) in zip(box, pattern, strict=True)]
        if by_rows:
            index = index[box[0][0] : box[0][1]]
        return Gathered(base, cut, offset, index, place, by_rows)._tensor


def _gathered(tensor: NkiTensor, keys: list[Any]) -> Tile:
    """Return the view of a part of an HBM tensor whose place, or the places of whose rows, stand in a tile."""
    tiles = [place for place, one in enumerate(keys) if isinstance(one, Tile)]
    place = tiles[0]
    if len(tiles) > 1 or tensor.on_chip:
        raise unsupported("more than one index tile, or one into a tile")
    base, walks = tensor, any(isinstance(one, Index) for one in keys)
    index = _whole_numbers(keys[place].tensor)
    if index.size == 1 and (walks or keys[place].is_number):  # goes with index expressions as any number does
        view = Tile(tensor)[(*keys[:place], 0, *keys[place + 1 :])].tensor
        pattern = [[stride, count] for stride, count in zip(view.strides, view.shape, strict=True)] or [[1, 1]]
        dimension = sum(one is not None for one in keys[:place])
        return Gathered(base, pattern, view.offset - base.offset, index, dimension, False)
    keys = keys.copy()
    if place:  # numbers in front of the tile choose a part of the tensor
        if any(isinstance(one, (Index, slice, DynamicSlice)) for one in keys[:place]):
            raise unsupported("a tile of several indices behind an index expression or a slice")
        tensor = sliced(tensor, [*keys[:place], *[slice(None)] * (len(tensor.shape) - place)])
        keys = keys[place:]
    rest = Tile(tensor)[(0, *keys[1:])].tensor
    shape, strides = rest.shape, rest.strides
    if walks:  # whose first axis is that of the rows
        if shape[0] != 1 and strides[0]:
            raise unsupported("a tile of several indices beside an index expression that steps from row to row")
        shape, strides = shape[1:], strides[1:]
    rows = index.shape[0]
    pattern = [[tensor.strides[0], rows], *([stride, count] for stride, count in zip(strides, shape, strict=True))]
    return Gathered(base, pattern, rest.offset - base.offset, index, place, True)


def _whole_numbers(index: NkiTensor) -> NkiTensor:
    """Return indices as DMA reads them; kernels also keep those that `nc_find_index8` finds in fp32."""
    if index.on_chip and (not index.dtype.is_int or index.space is Space.PSUM):
        index = nl.copy(operand(index), dtype=index.dtype if index.dtype.is_int else nl.int32)
    return index


def unwrap(value: Any) -> Any:
    """Return the present-day tensor of a tile, anything else as it is."""
    return value.tensor if isinstance(value, Tile) else value


def boxed(value: Any, box: Box | None, shape: tuple[int, ...]) -> Any:
    """Return the part of a tensor that lies in a box of an iteration; dimensions of one element are broadcast."""
    tensor = unwrap(value)
    if box is None or not isinstance(tensor, NkiTensor):
        return tensor
    cut = [pair if extent == whole else (0, extent)
           for extent, whole, pair in zip(tensor.shape, shape, box, strict=False)]  # fmt: skip
    offset = tensor.offset + sum(low * stride for (low, _), stride in zip(cut, tensor.strides, strict=False))
    extents = (*(high - low for low, high in cut), *tensor.shape[len(cut) :])
    made = tensor._make(extents, tensor.strides, offset)
    reach = tensor._unchecked
    if isinstance(reach, Reach):
        made._unchecked = reach.within(tuple(cut))
    return made


def aligned(operands: Iterable[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Return operands with as many dimensions each, and the shape that they broadcast to.

    The partitions stay in front: where a tile has fewer dimensions, ones come behind its first.
    """
    given = list(operands)
    extents = [one.shape for one in given if isinstance(one, Tile)]
    if extents.count(extents[0]) == len(extents):  # the usual case: one tile, or several of a shape
        return given, extents[0]
    ndim = max(map(len, extents))
    wide = [_widened(one, ndim) if isinstance(one, Tile) and len(one.shape) < ndim else one for one in given]
    shapes = [one.shape for one in wide if isinstance(one, Tile)]
    common = tuple(max(each) for each in zip(*shapes, strict=True))
    if any(one not in (1, extent) for shape in shapes for one, extent in zip(shape, common, strict=True)):
        was = " and ".join(str(one.shape) for one in given if isinstance(one, Tile))
        raise complain(f"tiles of {was} do not broadcast (equal sizes or 1, behind the partitions)")
    return wide, common


def _widened(tile: Tile, ndim: int) -> Tile:
    tensor = tile.tensor
    more = ndim - len(tensor.shape)
    front = 1 if tensor.on_chip else 0
    shape = (*tensor.shape[:front], *[1] * more, *tensor.shape[front:])
    made = tensor._make(shape, (*tensor.strides[:front], *[0] * more, *tensor.strides[front:]), tensor.offset)
    if isinstance(made._unchecked, Reach):
        made._unchecked = made._unchecked.widened(front, more)
    return Tile(made)


def apply(function: Callable[..., NkiTensor], mask: Any, *operands: Any, **keywords: Any) -> Tile:
    """Return the result of a functional operation; outside the mask it is undefined."""
    wide, shape = aligned(operands)
    boxes = masked_boxes(mask, shape)
    if boxes is None:
        return Tile(function(*[ready(unwrap(one)) for one in wide], **keywords))
    full: NkiTensor | None = None
    for box in _computed(boxes, wide):
        part = function(*[ready(boxed(one, box, shape)) for one in wide], **keywords)
        full = nl.ndarray(shape, part.dtype, nl.sbuf) if full is None else full
        put(boxed(full, box, shape), part)
    return _partly(full if full is not None else nl.ndarray(shape, unwrap(wide[0]).dtype, nl.sbuf), boxes)


def _computed(boxes: Boxes, operands: Iterable[Any]) -> Boxes:
    """Return the boxes to compute: one around all where no operand needs the mask to stay inside its tensor."""
    if len(boxes) < 2 or any(isinstance(one, Tile) and one.tensor._unchecked for one in operands):
        return boxes
    return (bounding(boxes),)


def _partly(tensor: NkiTensor, boxes: Boxes | None) -> Tile:
    tile = Tile(tensor)
    tile.valid = boxes
    return tile


def materialize(
    shape: Any, dtype: Any, mask: Any, emit: Callable[..., Any], *operands: Any, apart: bool = False,
    folded: Tile | None = None,
) -> Tile:  # fmt: skip
    """Return a new SBUF tile that `emit(dst, *operands)` fills, inside the mask only.

    A mask of several boxes is for what is computed element by element, or transferred, `apart` from all others.
    Into `folded`, a column that `emit` takes as the last of its operands, goes a number of each partition besides.
    """
    shape = extents_of(shape)
    full = nl.ndarray(shape, dtype, nl.sbuf)
    boxes = masked_boxes(mask, shape)
    if boxes is not None and len(boxes) > 1 and not apart:
        masked_box(mask, shape)  # refuses
    for box in (None,) if boxes is None else _computed(boxes, operands):
        with ExitStack() as results:
            dst = results.enter_context(written(boxed(full, box, shape)))
            more = [results.enter_context(written(boxed(folded, box, shape)))] if folded is not None else []
            emit(dst, *[operand(boxed(one, box, shape)) for one in operands], *more)
    return _partly(full, boxes)


def whole_under(shape: Any, dtype: Any, mask: Any, emit: Callable[..., Any], *operands: Any) -> Tile:
    """Return a new SBUF tile that `emit(dst, *operands)` fills, all of it; what lies inside the mask is what counts."""
    made = materialize(shape, dtype, None, emit, *operands)
    made.valid = masked_boxes(mask, made.shape)
    return made


def _flat(box: Box, value: Any, shape: tuple[int, ...]) -> Box:
    """Return a box of a tile as one of another shape: only rows can be left out."""
    if any(pair != (0, extent) for pair, extent in zip(box[1:], value.shape[1:], strict=True)):
        raise unsupported(f"a masked tile of {value.shape} assigned to {shape}")
    return (box[0], *((0, extent) for extent in shape[1:]))


def _spread(box: Box, value: Any, shape: tuple[int, ...]) -> Box:
    """Return a box of a tile as one of the tile that it is assigned to, where it is repeated along its short axes."""
    if len(box) != len(shape):
        return _flat(box, value, shape)
    return tuple((0, extent) if had == 1 else pair for pair, had, extent in zip(box, value.shape, shape, strict=True))


def copy_into(target: Tile, value: Any, mask: Any = None, valid: Boxes | None = None) -> None:
    """Write a tile or a number into a part of a tensor, inside the mask, or of boxes, only."""
    dst = target.tensor
    if isinstance(value, Product) and value.waits and dst.buffer is MemoryRegion.psum and mask is None:
        value.into(dst, accumulate=False)
        return
    boxes = masked_boxes(mask, dst.shape, narrow=True)
    if boxes is None and valid is not None:
        boxes = tuple(_spread(one, value, dst.shape) for one in valid if not is_empty(one))
    if boxes == ():
        return
    src = value
    if isinstance(value, Tile):
        src = value.tensor
        # `tile[part] += x` comes back here with what it has written already
        same = src.allocation is dst.allocation and (src.offset, src.shape, src.strides) == (
            dst.offset, dst.shape, dst.strides)  # fmt: skip
        if same:
            return
        if len(src.shape) < len(dst.shape) and src.size != dst.size and src.on_chip:
            src = _widened(Tile(src), len(dst.shape)).tensor
        alike = len(src.shape) == len(dst.shape) and src.shape != dst.shape
        if alike and all(a in (1, b) for a, b in zip(src.shape, dst.shape, strict=True)):
            src = Tile(src).broadcast_to(dst.shape).tensor
    for box in (None,) if boxes is None else boxes:
        _write(boxed(dst, box, dst.shape), boxed(src, box, dst.shape))


def _write(part: NkiTensor, src: Any) -> None:
    """Write a tensor or a number into a part of a tensor."""
    if not isinstance(src, NkiTensor):
        if part.is_indirect():
            isa.dma_copy(part, nl.full(part.shape, src, part.dtype))
        elif part.space is Space.HBM or reached(part):
            fill(part, src)
        else:
            isa.dma_copy(part, nl.full(part.shape, src, part.dtype))
    elif part.space is Space.HBM and src.space is not Space.HBM:
        nl.store(part, src)
    elif src.space is Space.HBM or (src.space is part.space is Space.SBUF and not (reached(part) and reached(src))):
        isa.dma_copy(part, src)
    elif reached(part):
        isa.tensor_copy(part, operand(src))
        t = tracer()
        t.assigned.append(t.ops[-1])
    else:
        isa.dma_copy(part, nl.copy(src))


give_operators(Tile, apply)
