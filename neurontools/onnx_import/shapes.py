"""ONNX operators on shapes, and those that only move elements."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import PrimitiveType, dtype_of
from neurontools.onnx_import.builder import Tensor, axis_of, common
from neurontools.onnx_import.indices import take_along
from neurontools.onnx_import.registry import Node, element_type, operator

__all__: list[str] = []

_S64 = PrimitiveType.S64


@operator("Constant")
def constant(n: Node) -> Tensor:
    """Return a constant."""
    for name, kind in (("value_int", np.int64), ("value_ints", np.int64), ("value_float", np.float32),
                       ("value_floats", np.float32)):  # fmt: skip
        if name in n.attributes:
            return n.to.constant(np.array(n.get(name), kind))
    if "value" not in n.attributes:
        raise UnsupportedError("a constant of texts, or a sparse one, has no HLO")
    return n.to.constant(n.get("value"))


@operator("ConstantOfShape")
def constant_of_shape(n: Node) -> Tensor:
    """Repeat one value."""
    value = np.asarray(n.get("value", np.zeros(1, np.float32))).reshape(())
    shape = n.static(0)
    return n.to.constant(value).expand([] if shape is None else shape.tolist())


@operator("Shape")
def shape_of(n: Node) -> Tensor:
    """Return the dimensions."""
    x = n.input(0)
    return n.to.constant(np.array(x.shape[slice(n.get("start", 0), n.get("end"))], np.int64))


@operator("Size")
def size(n: Node) -> Tensor:
    """Return the number of elements."""
    return n.to.constant(np.array(math.prod(n.input(0).shape), np.int64))


@operator("Reshape")
def reshape(n: Node) -> Tensor:
    """Take the elements as another shape: 0 keeps a dimension, -1 is what is left."""
    x, stated = n.input(0), n.numbers("shape", 1) or []
    if any(each == 0 and not n.get("allowzero", 0) for each in stated[x.rank :]):
        raise FormatError("a dimension that is kept is not there", expected=f"within {x.rank}", got=stated)
    sizes = [x.shape[dim] if each == 0 and not n.get("allowzero", 0) else each for dim, each in enumerate(stated)]
    if -1 in sizes:
        rest = math.prod(each for each in sizes if each != -1)
        sizes[sizes.index(-1)] = math.prod(x.shape) // rest if rest else 0
    return x.reshape(sizes)


@operator("Flatten")
def flatten(n: Node) -> Tensor:
    """Make a matrix."""
    x, axis = n.input(0), n.get("axis", 1)
    axis = axis if axis >= 0 else axis + x.rank
    return x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze")
def squeeze(n: Node) -> Tensor:
    """Take dimensions of one element away."""
    x = n.input(0)
    axes = n.numbers("axes", 1)
    gone = {x.axis(axis) for axis in axes} if axes is not None else {d for d, s in enumerate(x.shape) if s == 1}
    return x.reshape([each for dim, each in enumerate(x.shape) if dim not in gone])


@operator("Unsqueeze")
def unsqueeze(n: Node) -> Tensor:
    """Put in dimensions of one element."""
    x, axes = n.input(0), n.numbers("axes", 1) or []
    rank = x.rank + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise FormatError("an axis that is named twice", got=axes)
    rest = iter(x.shape)
    return x.reshape([1 if dim in new else next(rest) for dim in range(rank)])


@operator("Transpose")
def transpose(n: Node) -> Tensor:
    """Reorder dimensions."""
    x = n.input(0)
    return x.transpose(n.get("perm") or list(range(x.rank))[::-1])


@operator("Expand")
def expand(n: Node) -> Tensor:
    """Broadcast against a shape."""
    x = n.input(0)
    return x.expand(common(x.shape, tuple(n.numbers("shape", 1) or [])))


@operator("Tile")
def tile(n: Node) -> Tensor:
    """Repeat whole copies along each dimension."""
    x, repeats = n.input(0), n.numbers("repeats", 1) or []
    mixed = [each for pair in zip(repeats, x.shape, strict=True) for each in pair]
    whole = x.put(mixed, range(1, 2 * x.rank, 2))
    return whole.reshape([count * each for count, each in zip(repeats, x.shape, strict=True)])


@operator("Concat")
def concat(n: Node) -> Tensor:
    """Put tensors behind one another."""
    parts = [n.input(each) for each in range(len(n.inputs))]
    return parts[0].concatenate(parts[1:], n.required("axis"))


@operator("Split")
def split(n: Node) -> tuple[Tensor, ...]:
    """Take a tensor apart along one dimension."""
    x = n.input(0)
    axis = x.axis(n.get("axis", 0))
    sizes = n.numbers("split", 1)
    if sizes is None:
        count = n.get("num_outputs") or n.outputs
        each = -(-x.shape[axis] // count)
        sizes = [min(each, max(0, x.shape[axis] - each * k)) for k in range(count)]
    ends = np.cumsum([0, *sizes]).tolist()
    return tuple(x.slice(axis, a, b) for a, b in pairwise(ends))


@operator("Slice")
def slice_parts(n: Node) -> Tensor:
    """Take parts as Python's slices do, also backwards."""
    x = n.input(0)
    starts, ends = n.numbers("starts", 1) or [], n.numbers("ends", 2) or []
    axes, steps = n.numbers("axes", 3), n.numbers("steps", 4)
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = x.axis(axes[at] if axes else at), steps[at] if steps else 1
        if step == 0:
            raise FormatError("a slice with step 0")
        chosen = range(x.shape[axis])[slice(start, end, step)]
        if not len(chosen):
            x = x.slice(axis, 0, 0)
        elif step > 0:
            x = x.slice(axis, chosen[0], chosen[-1] + 1, step)
        else:
            x = x.slice(axis, chosen[-1], chosen[0] + 1, -step).reverse(axis)
    return x


@operator("Pad")
def pad(n: Node) -> Tensor:
    """Put elements around: a value, the edge, a mirror image, or the other end."""
    x, amounts = n.input(0), n.numbers("pads", 1) or []
    axes = n.numbers("axes", 3)
    dims = [x.axis(axis) for axis in axes] if axes is not None else list(range(x.rank))
    low = dict(zip(dims, amounts[: len(dims)], strict=True))
    high = dict(zip(dims, amounts[len(dims) :], strict=True))
    mode = n.choice("mode", "constant", "reflect", "edge", "wrap")
    if mode == "constant":
        value = n.optional(2)
        fill: Tensor | float = value.reshape(()) if value is not None else n.get("value", 0.0)
        return x.pad([(low.get(dim, 0), high.get(dim, 0)) for dim in range(x.rank)], fill)
    for dim in dims:
        x = _taken(x, dim, _mirrored(x.shape[dim], low[dim], high[dim], mode))
    return x


def _mirrored(length: int, low: int, high: int, mode: str) -> list[int]:
    """Return which elements a padded dimension has."""
    places = range(-low, length + high)
    if mode == "edge":
        return [min(max(at, 0), length - 1) for at in places]
    if mode == "wrap":
        return [at % length for at in places]
    period = max(1, 2 * (length - 1))
    return [at % period if at % period < length else period - at % period for at in places]


def _taken(x: Tensor, dim: int, places: list[int]) -> Tensor:
    """Take elements of one dimension that are known now."""
    runs: list[Tensor] = []
    at = 0
    while at < len(places):
        step = places[at + 1] - places[at] if at + 1 < len(places) else 1
        step = step if step in (1, -1) else 1
        end = at + 1
        while end < len(places) and places[end] == places[end - 1] + step:
            end += 1
        first, last = min(places[at], places[end - 1]), max(places[at], places[end - 1])
        part = x.slice(dim, first, last + 1)
        runs.append(part.reverse(dim) if step < 0 and end - at > 1 else part)
        at = end
    return runs[0].concatenate(runs[1:], dim)


@operator("Range")
def arange(n: Node) -> Tensor:
    """Count from a start to a limit."""
    # As Python's numbers: NumPy's integers would pass through float64, which holds 53 bits.
    start, limit, step = (np.asarray(n.static(each)).reshape(()).tolist() for each in range(3))
    if not step:
        raise FormatError("a range with step 0")
    whole = isinstance(step, int)
    count = max(0, -((start - limit) // step) if whole else math.ceil((limit - start) / step))
    kind = n.input(0).kind
    return n.to.constant((start + np.arange(count) * step).astype(dtype_of(kind)))


@operator("EyeLike")
def eye_like(n: Node) -> Tensor:
    """Return ones on a diagonal."""
    x = n.input(0)
    kind = element_type(n.get("dtype")) if "dtype" in n.attributes else x.kind
    return n.to.constant(np.eye(x.shape[0], x.shape[1], k=int(n.get("k", 0))), kind)


@operator("Trilu")
def triangle(n: Node) -> Tensor:
    """Keep the upper or the lower triangle."""
    x = n.input(0)
    shift = n.static(1)
    k = 0 if shift is None else int(shift.reshape(()))
    rows, columns = n.to.iota(_S64, x.shape, x.rank - 2), n.to.iota(_S64, x.shape, x.rank - 1)
    keep = (columns >= rows + k) if n.get("upper", 1) else (columns <= rows + k)
    return keep.where(x, n.to.constant(0, x.kind))


@operator("DepthToSpace")
def depth_to_space(n: Node) -> Tensor:
    """Move channels into blocks of the plane."""
    x, block = n.input(0), n.required("blocksize")
    b, c, h, w = x.shape
    rest = c // (block * block)
    if n.choice("mode", "DCR", "CRD") == "DCR":
        parts = x.reshape((b, block, block, rest, h, w)).transpose((0, 3, 4, 1, 5, 2))
    else:
        parts = x.reshape((b, rest, block, block, h, w)).transpose((0, 1, 4, 2, 5, 3))
    return parts.reshape((b, rest, h * block, w * block))


@operator("SpaceToDepth")
def space_to_depth(n: Node) -> Tensor:
    """Move blocks of the plane into channels."""
    x, block = n.input(0), n.required("blocksize")
    b, c, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if n.choice("mode", "DCR", "CRD") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = x.reshape((b, c, h // block, block, w // block, block)).transpose(order)
    return parts.reshape((b, c * block * block, h // block, w // block))


@operator("ReverseSequence")
def reverse_sequence(n: Node) -> Tensor:
    """Turn the first elements of each batch round."""
    x, lengths = n.input(0), n.input(1).cast(_S64)
    batch, time = n.get("batch_axis", 1), n.get("time_axis", 0)
    place = n.to.iota(_S64, x.shape, time)
    length = lengths.put(x.shape, (batch,))
    source = (place < length).where(length - 1 - place, place)
    return take_along(x, source, time)


@operator("If")
def branch(n: Node) -> tuple[Tensor, ...]:
    """Lower the branch that a known condition takes."""
    taken = bool(np.asarray(n.static(0)).reshape(()))
    return tuple(n.run(n.required("then_branch" if taken else "else_branch"), ()))
