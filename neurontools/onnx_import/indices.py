"""ONNX operators that take and put elements by index."""

from __future__ import annotations

import numpy as np

from formats.hlo import Computation, Instruction, PrimitiveType, Shape, tuple_of
from formats.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from neurontools.onnx_import.builder import Tensor, axis_of
from neurontools.onnx_import.registry import Node, operator

__all__ = ["first_extreme", "take_along"]

_S64 = PrimitiveType.S64


def first_extreme(x: Tensor, axis: int, *, largest: bool) -> Tensor:
    """Return where the extreme of one dimension is, the first of equal ones; a NaN is one, as in NumPy."""
    top = x.reduce("maximum" if largest else "minimum", [axis], keep=True)
    hit = x.equals(top)
    if x.kind.is_float:  # a NaN equals nothing, and its place would be one behind the last
        hit = hit | x.compare("NE", x)
    return hit.where(x.to.iota(_S64, x.shape, axis), x.shape[axis]).reduce("minimum", [axis])


def _wrapped(indices: Tensor, size: int) -> Tensor:
    """Return indices counted from the front."""
    whole = indices.cast(_S64)
    return (whole < 0).where(whole + size, whole)


def take_along(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return the elements of one dimension that indices of the same rank name."""
    rows = [
        _wrapped(indices, x.shape[axis]) if dim == axis else x.to.iota(_S64, indices.shape, dim)
        for dim in range(x.rank)
    ]
    return _gathered(x, [each.unsqueeze(-1) for each in rows])


def _gathered(x: Tensor, rows: list[Tensor]) -> Tensor:
    vectors = rows[0].concatenate(rows[1:], -1)
    dims = tuple(range(x.rank))
    numbers = GatherDimensionNumbers((), dims, dims, vectors.rank - 1)
    return x.to.emit("gather", [x, vectors], gather=numbers, gather_slice_sizes=(1,) * x.rank)


@operator("Gather")
def gather(n: Node) -> Tensor:
    """Take slices of one dimension."""
    return _slices(n.input(0), n.input(1), n.input(0).axis(n.get("axis", 0)))


def _slices(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    at = _wrapped(indices, x.shape[axis])
    offsets = (*range(axis), *range(axis + at.rank, x.rank - 1 + at.rank))
    sizes = tuple(1 if dim == axis else size for dim, size in enumerate(x.shape))
    numbers = GatherDimensionNumbers(offsets, (axis,), (axis,), at.rank)
    return x.to.emit("gather", [x, at], gather=numbers, gather_slice_sizes=sizes)


@operator("GatherElements")
def gather_elements(n: Node) -> Tensor:
    """Take elements of one dimension."""
    return take_along(n.input(0), n.input(1), n.input(0).axis(n.get("axis", 0)))


def _vectors(x: Tensor, indices: Tensor, first: int) -> Tensor:
    """Return index vectors counted from the front; they index dimensions from `first` on."""
    sizes = x.to.constant(np.array(x.shape[first : first + indices.shape[-1]], np.int64))
    whole = indices.cast(_S64)
    return (whole < 0).where(whole + sizes, whole)


@operator("GatherND")
def gather_nd(n: Node) -> Tensor:
    """Take slices that index vectors name, batch by batch."""
    x, indices, batch = n.input(0), n.input(1), n.get("batch_dims", 0)
    depth = indices.shape[-1]
    at = _vectors(x, indices, batch)
    dims = tuple(range(batch))
    away = tuple(range(batch, batch + depth))
    result = indices.rank - 1 + x.rank - batch - depth
    numbers = GatherDimensionNumbers(tuple(range(indices.rank - 1, result)), away, away, indices.rank - 1, dims, dims)
    sizes = (1,) * (batch + depth) + x.shape[batch + depth :]
    return n.to.emit("gather", [x, at], gather=numbers, gather_slice_sizes=sizes)


_REDUCTIONS = {"none": "second", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _combiner(n: Node, kind: PrimitiveType) -> Computation:
    return n.to.body(_REDUCTIONS[n.choice("reduction", "none", *_REDUCTIONS)], kind)


@operator("ScatterND")
def scatter_nd(n: Node) -> Tensor:
    """Put slices where index vectors say."""
    x, indices, updates = n.input(0), n.input(1), n.input(2)
    depth = indices.shape[-1]
    at = _vectors(x, indices, 0)
    numbers = ScatterDimensionNumbers(
        tuple(range(indices.rank - 1, updates.rank)), tuple(range(depth)), tuple(range(depth)), indices.rank - 1
    )
    return n.to.emit("scatter", [x, at, updates], scatter=numbers, called=[_combiner(n, x.kind)])


@operator("ScatterElements", "Scatter")
def scatter_elements(n: Node) -> Tensor:
    """Put elements along one dimension."""
    x, indices, updates = n.input(0), n.input(1), n.input(2)
    axis = x.axis(n.get("axis", 0))
    rows = [
        (_wrapped(indices, x.shape[axis]) if dim == axis else n.to.iota(_S64, indices.shape, dim)).unsqueeze(-1)
        for dim in range(x.rank)
    ]
    dims = tuple(range(x.rank))
    numbers = ScatterDimensionNumbers((), dims, dims, x.rank)
    vectors = rows[0].concatenate(rows[1:], -1)
    return n.to.emit("scatter", [x, vectors, updates], scatter=numbers, called=[_combiner(n, x.kind)])


@operator("OneHot")
def one_hot(n: Node) -> Tensor:
    """Put one value where an index points, another elsewhere."""
    depth = int(np.asarray(n.static(1)).reshape(-1)[0])
    indices, values = n.input(0), n.input(2)
    at = _wrapped(indices, depth)
    axis = axis_of(n.get("axis", -1), indices.rank + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    kept = [dim for dim in range(len(shape)) if dim != axis]
    hot = n.to.iota(_S64, shape, axis).equals(at.put(shape, kept))
    return hot.where(values.slice(0, 1, 2).reshape(()), values.slice(0, 0, 1).reshape(()))


@operator("TopK")
def top_k(n: Node) -> tuple[Tensor, ...]:
    """Return the extreme elements in order, and where they are."""
    x = n.input(0)
    k = n.get("k") or int(np.asarray(n.static(1)).reshape(-1)[0])
    axis = x.axis(n.get("axis", -1))
    places = n.to.iota(_S64, x.shape, axis)
    comparator = _comparator(n, x.kind, largest=bool(n.get("largest", 1)))
    shape = tuple_of(x.at.shape, places.at.shape)
    both = n.to.emit("sort", [x, places], shape, dimensions=(axis,), is_stable=True, called=[comparator])
    return both.element(0).slice(axis, 0, k), both.element(1).slice(axis, 0, k)


def _comparator(n: Node, kind: PrimitiveType, *, largest: bool) -> Computation:
    """Return a comparator of the first of two keys."""
    name = f"{'greater' if largest else 'less'}_{kind.text}"
    if name not in n.to.bodies:
        shapes = [Shape(kind), Shape(kind), Shape(_S64), Shape(_S64)]
        given = [Instruction(f"{name}.{k}", "parameter", shape, parameter_number=k) for k, shape in enumerate(shapes)]
        root = Instruction(f"{name}.r", "compare", Shape(PrimitiveType.PRED), given[:2])
        root.comparison_direction = "GT" if largest else "LT"
        n.to.bodies[name] = Computation(name, [*given, root], root)
    return n.to.bodies[name]


@operator("Compress")
def compress(n: Node) -> Tensor:
    """Keep the slices that a condition names; it decides the shape."""
    x, kept = n.input(0), np.flatnonzero(np.asarray(n.static(1)))
    if "axis" not in n.attributes:
        x = x.reshape((int(np.prod(x.shape)),))
    axis = x.axis(n.get("axis", 0))
    return _slices(x, n.to.constant(kept.astype(np.int64)), axis)


@operator("NonZero")
def non_zero(n: Node) -> Tensor:
    """Return where elements are not zero; they decide the shape."""
    values = np.asarray(n.static(0))
    places = np.array(np.nonzero(np.atleast_1d(values)), np.int64)
    return n.to.constant(places[: values.ndim])  # a row for each dimension: a scalar has none


@operator("TensorScatter")
def tensor_scatter(n: Node) -> Tensor:
    """Overwrite part of a cache for each batch."""
    cache, update, start = n.input(0), n.input(1), n.optional(2)
    axis = cache.axis(n.get("axis", -2))
    mode = n.choice("mode", "linear", "circular")
    rows = [n.to.iota(_S64, update.shape, dim) for dim in range(cache.rank)]
    if start is not None:
        rows[axis] = rows[axis] + start.cast(_S64).put(update.shape, (0,))
    if mode == "circular":
        rows[axis] = rows[axis].binary("remainder", cache.shape[axis])
    dims = tuple(range(cache.rank))
    vectors = rows[0].unsqueeze(-1).concatenate([each.unsqueeze(-1) for each in rows[1:]], -1)
    numbers = ScatterDimensionNumbers((), dims, dims, cache.rank)
    called = [n.to.body("second", cache.kind)]
    return n.to.emit("scatter", [cache, vectors, update], scatter=numbers, called=called)
