"""`nl` of the first generation: the same operations over tiles, with `mask=`, `dtype=` and index expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from neurontools.builder.trace import Space
from neurontools.neuronxcc.nki import spmd
from neurontools.neuronxcc.nki.affine import Mask, arange, mgrid
from neurontools.neuronxcc.nki.blocks import Blocks
from neurontools.neuronxcc.nki.isa import copies as isa_copies
from neurontools.neuronxcc.nki.isa.operands import on_chip
from neurontools.neuronxcc.nki.isa.products import nc_matmul
from neurontools.neuronxcc.nki.loops import folded, turns
from neurontools.neuronxcc.nki.masks import Box, held, is_empty, masked_box, masked_boxes, multiplies
from neurontools.neuronxcc.nki.partitions import operand, put
from neurontools.neuronxcc.nki.reductions import last_axes, reduced
from neurontools.neuronxcc.nki.refusals import HARMLESS, refuse_unknown, unknown, unsupported
from neurontools.neuronxcc.nki.tile import (
    Cut,
    Gathered,
    Product,
    Tile,
    apply,
    boxed,
    copy_into,
    extents_of,
    materialize,
    unwrap,
)
from neurontools.neuronxcc.nki.walks import Reach
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.dtype import DType, dtype_of, promote
from neurontools.nki.language.creation import fill
from neurontools.nki.operators import BinaryOperator, Operator, UnaryOperator
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.unknown import meant
from neurontools.nki.views import complain

affine_range, sequential_range = turns(nl.affine_range, once=True), turns(nl.sequential_range, once=True)
static_range = turns(nl.static_range, once=False)
ds, nc, tile_size, no_reorder = nl.ds, nl.nc, nl.tile_size, nl.no_reorder
sbuf, psum, hbm, shared_hbm, private_hbm = nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm, nl.private_hbm
program_id, num_programs, program_ndim = spmd.program_id, spmd.num_programs, spmd.program_ndim
float32, bfloat16, float16, tfloat32 = nl.float32, nl.bfloat16, nl.float16, nl.tfloat32
int8, int16, int32, uint8, uint16, uint32 = nl.int8, nl.int16, nl.int32, nl.uint8, nl.uint16, nl.uint32
float8_e4m3, float8_e5m2, bool_ = nl.float8_e4m3, nl.float8_e5m2, nl.bool_
fp32 = np.finfo(np.float32)
spmd_dim = nl.spmd_dim


class par_dim(int):
    """Mark the partition dimension of a shape."""


def ndarray(shape: Any, dtype: Any, buffer: Any = None, name: str = "", **unused: Any) -> Tile:
    """Allocate a tensor; `par_dim` marks the partition dimension, and those before it count blocks of tiles."""
    region = nl.sbuf if buffer is None else buffer
    if callable(region):  # allocators place tiles by hand; here the builder does
        region = getattr(region, "region", nl.sbuf)
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    plain = extents_of(extents)
    if region is MemoryRegion.shared_hbm:
        again = spmd.shared(plain, dtype_of(dtype), name)
        if again is not None:
            return Tile(again)
    marked = next((place for place, one in enumerate(extents) if isinstance(one, par_dim)), 0)
    if region.space is Space.HBM or not marked:
        return Tile(nl.ndarray(plain, dtype, region, name))
    return Blocks(plain[:marked], plain[marked:], dtype, region, name)


def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = None, name: str = "", **unused: Any) -> Tile:
    """Allocate a tensor and fill it with a number."""
    tile = ndarray(shape, dtype, buffer, name)
    if isinstance(tile, Blocks):
        tile.fill_with(lambda block: copy_into(block, fill_value))
    else:
        fill(tile.tensor, fill_value)
    return tile


def zeros(shape: Any, dtype: Any, buffer: Any = None, name: str = "", **unused: Any) -> Tile:
    """Allocate a tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(shape: Any, dtype: Any, buffer: Any = None, name: str = "", **unused: Any) -> Tile:
    """Allocate a tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def zeros_like(x: Tile, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    """Allocate a tensor of zeros shaped like another."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x: Tile, dtype: Any = None, buffer: Any = None, name: str = "") -> Tile:
    """Allocate a tensor shaped like another."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def rand(shape: Any, dtype: Any = nl.float32, **unused: Any) -> Tile:
    """Return a tile of random numbers."""
    return Tile(nl.rand(tuple(map(int, shape)), dtype))


def load(src: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Copy a part of an HBM tensor into a new SBUF tile."""
    if isinstance(src, Gathered):
        src = src.standing()
    tensor = src.tensor
    if not tensor.shape:
        tensor = tensor._make((1, 1), (1, 1), tensor.offset)
    if len(tensor.shape) == 1 and not tensor.on_chip:
        # One element for each partition, as far as there are so many.
        # more elements than partitions lie in one of them
        few = tensor.shape[0] <= nl.tile_size.pmax
        if not few and isinstance(mask, Mask):
            mask = Mask([[one[None, :] for one in term] for term in mask.terms])
        shape, strides = ((tensor.shape[0], 1), (tensor.strides[0], 1)) if few else (
            (1, tensor.shape[0]), (1, tensor.strides[0]))  # fmt: skip
        made = tensor._make(shape, strides, tensor.offset)
        if isinstance(made._unchecked, Reach):
            made._unchecked = made._unchecked.widened(1 if few else 0, 1)
        tensor = made
    if isinstance(src, Gathered):
        part = src.cut(masked_box(mask, tensor.shape))
        return materialize(tensor.shape, dtype or tensor.dtype, mask, lambda dst: isa.dma_copy(dst, part))
    return materialize(tensor.shape, dtype or tensor.dtype, mask, isa.dma_copy, Tile(tensor), apart=True)


def store(dst: Tile, value: Any, *, mask: Any = None, **unused: Any) -> None:
    """Copy a tile, or a number, into a part of an HBM tensor."""
    if isinstance(dst, Gathered):
        dst = dst.standing()
        if not isinstance(value, Tile):
            value = Tile(nl.full(dst.shape, value, dst.dtype))
        boxes = masked_boxes(mask, dst.shape)
        for box in (None,) if boxes is None else boxes:
            isa.dma_copy(dst.cut(box), boxed(value, box, dst.shape))
        return
    if not dst.shape:
        dst = Tile(dst.tensor._make((1, 1), (1, 1), dst.tensor.offset))
    if len(dst.shape) == 1 and isinstance(value, Tile) and value.tensor.on_chip and value.tensor.size == 1:
        dst = dst[None]  # one number everywhere
    if isinstance(value, Tile) and value.tensor.on_chip and len(value.shape) > len(dst.shape):
        value = Tile(value.tensor.reshape(dst.shape)) if value.shape[0] != 1 else value[0]
    copy_into(dst, value, mask)


def load_transpose2d(src: Tile, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Load a 2-D tensor transposed."""
    source = src.tensor
    return _turned(source, masked_box(mask, source.shape), lambda part: nl.load_transpose2d(part, dtype=dtype))


def _turned(tensor: NkiTensor, box: Box | None, turn: Callable[[NkiTensor], NkiTensor]) -> Tile:
    """Return a 2-D tensor transposed, what lies outside of a box of it undefined."""
    if box is None:
        return Tile(turn(tensor))
    empty = is_empty(box)
    part = None if empty else turn(boxed(tensor, box, tensor.shape))
    made = Tile(nl.ndarray(tensor.shape[::-1], tensor.dtype if part is None else part.dtype, nl.sbuf))
    made.valid = () if part is None else (box[::-1],)
    if part is not None:
        put(boxed(made, box[::-1], made.shape), part)
    return made


def copy(src: Tile, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return a copy of a tile."""
    return materialize(src.shape, dtype or src.dtype, mask, isa.tensor_copy, on_chip(src), apart=True)


def static_cast(value: Any, dtype: Any) -> Any:
    """Return a tile, or outside of kernels an array, in another element type."""
    return copy(value, dtype=dtype) if isinstance(value, Tile) else np.asarray(value).astype(dtype_of(dtype).numpy)


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating-point type, as NumPy does."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype_of(dtype).numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has no types here


def matmul(x: Tile, y: Tile, *, transpose_x: bool = False, mask: Any = None) -> Product:
    """Return x @ y, or x.T @ y for an x that is transposed already."""
    if not multiplies(mask, "matmul"):
        nothing = Product((x.shape[1 if transpose_x else 0], y.shape[1]), lambda dst, accumulate: None)
        nothing.valid = ()
        return nothing
    if isinstance(x, Cut) and not transpose_x:
        turned = _turned(_in_sbuf(x.whole), x.box, lambda part: nl.transpose(operand(part)))
        left: Tile = Cut(turned, x.box[::-1])
    else:
        left = x if transpose_x else transpose(x)
    if isinstance(left, Cut) or isinstance(y, Cut):
        return nc_matmul(left, y)
    stationary, moving = _in_sbuf(left), _in_sbuf(y)

    def emit(dst: NkiTensor, accumulate: bool | None) -> None:
        isa.nc_matmul(dst, stationary, moving, accumulate=accumulate)

    return Product((stationary.shape[1], moving.shape[1]), emit, operands=(stationary, moving))


def _in_sbuf(x: Tile) -> NkiTensor:
    tensor = x.tensor
    if tensor.space is Space.SBUF:
        moved: NkiTensor = operand(tensor)
        return moved
    return nl.load(tensor) if tensor.space is Space.HBM else nl.copy(tensor)


def transpose(x: Tile, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return a 2-D tile transposed."""
    source = _in_sbuf(x)
    return _turned(source, masked_box(mask, source.shape), lambda part: nl.transpose(operand(part), dtype=dtype))


def broadcast_to(src: Tile, shape: Any, **unused: Any) -> Tile:
    """Return a tile with dimensions of one element repeated."""
    return src.broadcast_to(shape)


def expand_dims(data: Tile, axis: int) -> Tile:
    """Return a tile with one more dimension of one element."""
    return data.expand_dims(axis)


def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return x where the condition holds, else y; a comparison of index expressions is as good as a tile."""
    if isinstance(condition, Mask):
        shape = next((one.shape for one in (x, y) if isinstance(one, Tile)), None)
        if shape is None:
            raise complain("nl.where: a comparison of index expressions needs a tile as x or y, whose shape it takes")
        condition = load(shared_constant(held(condition, shape)))
    return apply(nl.where, mask, condition, x, y, dtype=dtype)


def _reduction(name: str) -> Callable[..., Tile]:
    function = getattr(nl, name)

    def reduce(
        x: Tile, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, **unused: Any
    ) -> Tile:
        # The variance keeps its axes whatever it is asked for (nki.language).
        return reduced(
            x, axis, keepdims or name == "var", mask, dtype, lambda data, axes: function(data, axis=axes, dtype=dtype)
        )

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Return the {name} over free axes."
    return reduce


sum, prod_, max, min, mean, var, all = (
    _reduction(name) for name in ("sum", "prod", "max", "min", "mean", "var", "all")
)


def softmax(x: Tile, axis: Any = -1, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return the softmax over the free axes."""

    def emit(one: NkiTensor) -> NkiTensor:
        axes, order = last_axes(one.shape, axis)
        result = nl.softmax(one.permute(order), axes, dtype=dtype)
        return result.permute([order.index(place) for place in range(len(order))])

    masked_box(mask, x.shape)  # what several boxes fold over is not what the box around them does
    return apply(emit, mask, x)


def rms_norm(x: Tile, w: Tile, axis: Any, n: int, epsilon: float = 1e-6, *, dtype: Any = None, mask: Any = None,
             **unused: Any) -> Tile:  # fmt: skip
    """Return x over its root mean square, times w."""
    masked_box(mask, x.shape)
    return apply(lambda one, weight: nl.rms_norm(one, weight, axis, n, epsilon, dtype=dtype), mask, x, w)


def dropout(x: Tile, rate: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return x with elements zeroed at random."""
    return apply(lambda one, part: nl.dropout(one, part, dtype=dtype), mask, x, rate)


def gather_flattened(data: Tile, indices: Tile, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Return the elements of each partition whose flat places `indices` gives."""
    made = Tile(nl.gather_flattened(data.tensor, indices.tensor, dtype=dtype))
    made.valid = masked_boxes(mask, made.shape)
    return made


def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """Return an HBM tensor of known values."""
    values = np.asarray(constant)
    return Tile(nl.shared_constant(values if dtype is None else values.astype(dtype_of(dtype).numpy)))


def shared_identity_matrix(n: int, dtype: Any = nl.uint8, **unused: Any) -> Tile:
    """Return an identity matrix."""
    return Tile(nl.shared_identity_matrix(n, dtype))


def loop_reduce(x: Tile, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return x folded over the turns of loops so far; behind the loops that is all of them."""
    return folded(x, op, loop_indices, dtype, mask)


def random_seed(seed: Any, *, mask: Any = None) -> None:
    """Seed the random numbers of this core: a whole number, or a tile of one."""
    if multiplies(mask, "random_seed"):
        nl.random_seed(unwrap(seed) if isinstance(seed, Tile) else nl.full((1, 1), int(seed), nl.int32))


def atomic_rmw(dst: Tile, value: Tile, op: Any, *, mask: Any = None) -> None:
    """Fold a tile into a part of an HBM tensor."""
    isa_copies.dma_copy(dst=dst, src=value, mask=mask, dst_rmw_op=op)


def all_reduce(x: Tile, op: Any, program_axes: Any, **unused: Any) -> Tile:
    """Refuse a reduction over programs."""
    raise unsupported("all_reduce over programs")


def device_print(prefix: str, x: Tile, **unused: Any) -> None:
    """Print a tile after the run."""
    nl.device_print(prefix, x.tensor)


class Function(Operator):
    """An operator that is a token of ISA calls and, called with tiles, gives a new one."""

    __slots__ = ("plain",)

    def __init__(self, plain: Operator) -> None:
        self.plain = plain
        self.name, self.alu, self.function = plain.name, plain.alu, plain.function
        self.kind, self.since = plain.kind, plain.since

    def __call__(self, *operands: Any, dtype: Any = None, mask: Any = None, **named: Any) -> Tile:
        """Return a new SBUF tile of the results; operands may go by their names, x and y."""
        names = ("x", "y") if isinstance(self.plain, BinaryOperator) else ("x",)
        operands += tuple(named.pop(one) for one in names[len(operands) :] if one in named)
        wrong = sorted(named.keys() - HARMLESS)
        if wrong or len(operands) != len(names) or not isinstance(self.plain, (BinaryOperator, UnaryOperator)):
            known = (*names, "dtype", "mask")
            said = f"has no {wrong[0]}={meant(wrong[0], known)}" if wrong else f"got {len(operands)} operands"
            raise complain(f"nl.{self.name} {said}; it is nl.{self.name}({', '.join(names)}, dtype=, mask=)")
        kinds = [one for one in operands if isinstance(one, Tile)]
        if not kinds:
            raise complain(f"nl.{self.name} takes tiles; none of its operands is one: {', '.join(map(repr, operands))}")
        if dtype is None and self.kind in ("comparison", "logical"):
            dtype = kinds[0].dtype if len(kinds) == 1 else promote(*[one.dtype for one in kinds])
        return apply(self.plain, mask, *operands, dtype=dtype)


_FUNCTIONS = {name: Function(one) for name in dir(nl) if isinstance(one := getattr(nl, name), Operator)}
globals().update({name: one for name, one in _FUNCTIONS.items() if name != "copy"})
prod = prod_  # type: ignore[assignment]  # noqa: F811  the name that kernels use


def __getattr__(name: str) -> Any:
    if name in ("gelu_apprx_tanh", "float8_e4m3fn"):
        return getattr(nl, name)
    raise unknown("neuronxcc.nki.language", name, globals(), nl)


refuse_unknown(globals())
__all__ = [  # noqa: PLE0604
    *_FUNCTIONS, "DType", "Tile", "arange", "mgrid", "par_dim",
]  # fmt: skip
