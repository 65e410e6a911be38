"""The boxes that masks leave of the places of a tile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from formats.named_tuple import NamedTuple
from neurontools.neuronxcc.nki.affine import Index, Mask
from neurontools.neuronxcc.nki.refusals import unsupported
from neurontools.nki.views import complain

__all__ = [
    "Box",
    "Boxes",
    "both",
    "bounding",
    "held",
    "is_empty",
    "masked_box",
    "masked_boxes",
    "multiplies",
    "product_boxes",
    "squares",
    "whole_box",
]

# What is no box is taken apart place by place, and each of its boxes is an instruction or a transfer.
_MOST_PLACES, _MOST_BOXES = 1 << 24, 1024

# First and last + 1 place of each dimension.
Box = tuple[tuple[int, int], ...]
# Boxes that share no place.
Boxes = tuple[Box, ...]


def masked_boxes(mask: Any, shape: tuple[int, ...], narrow: bool = False) -> Boxes | None:
    """Return the boxes of a mask over a shape, which share no place; None where it leaves nothing out.

    A mask may have more places than an axis of one place only where each may be left out for itself: not of a value,
    which would have to grow. With `narrow`, of a target, such an axis is written if any of the places holds.
    """
    if mask is None:
        return None
    if isinstance(mask, (bool, np.bool_)):  # of numbers, not of index expressions
        return None if mask else ()
    if not isinstance(mask, Mask):
        raise unsupported(f"a mask that is a {type(mask).__name__}; write comparisons of index expressions, as "
                          "nl.arange(128)[:, None] < n, or nl.where for a choice by values: this mask")  # fmt: skip
    if [] in mask.terms:
        return None
    terms = [[_condition(one, shape, narrow) for one in term] for term in mask.terms]
    boxes = [_box(terms[0], shape)] if len(terms) == 1 else []
    if len(terms) != 1 or boxes[0] is None:
        boxes = list(_pieces(_places(terms, shape), shape))
    kept = tuple(one for one in boxes if one is not None and not is_empty(one))
    return None if kept == (whole_box(shape),) else kept


def masked_box(mask: Any, shape: tuple[int, ...]) -> Box | None:
    """Return the one box of a mask over a shape, None where it leaves nothing out; UnsupportedError for several."""
    boxes = masked_boxes(mask, shape)
    if boxes is None:
        return None
    if len(boxes) > 1:
        raise unsupported(f"a mask that leaves {len(boxes)} boxes of places, here,")
    return boxes[0] if boxes else tuple((0, 0) for _ in shape)


class _Condition(NamedTuple):
    """An expression of at least 0, over the axes of a shape: (coefficient, extent) of those on which it depends."""

    axes: dict[int, tuple[int, int]]
    const: int


def _condition(one: Index, shape: tuple[int, ...], narrow: bool) -> _Condition:
    """Return a condition over the axes of a shape: the last ones, as NumPy counts, or the partitions and what follows.

    The second is what kernels mean by masks of fewer axes, as of partitions only, where the extents say so.
    """
    varying = {axis: pair for axis, pair in one.axes.items() if pair[0]}
    ways = []
    for shift in sorted({0, len(shape) - one.ndim}):
        moved = {axis + shift: pair for axis, pair in varying.items()}
        if all(0 <= axis < len(shape) and shape[axis] in ((1, extent) if narrow else (extent,))
               for axis, (_, extent) in moved.items()) and moved not in ways:  # fmt: skip
            ways.append(moved)
    exact = [way for way in ways if all(shape[axis] == extent for axis, (_, extent) in way.items())]
    ways = exact or ways
    if len(ways) > 1:
        raise unsupported(f"a mask over {one.ndim} axes, which may be the first or the last of a tile of {shape},")
    if ways:
        return _Condition(ways[0], one.const)
    shift = len(shape) - one.ndim
    axis, (_, extent) = next(((axis, pair) for axis, pair in varying.items()
                              if not (0 <= axis + shift < len(shape) and shape[axis + shift] == pair[1])),
                             next(iter(varying.items())))  # fmt: skip
    raise complain(f"a mask over {extent} places of dimension {axis} of a tile of {shape}")


def _box(conditions: list[_Condition], shape: tuple[int, ...]) -> Box | None:
    """Return the box where all conditions hold, None where one of them depends on several axes."""
    if any(len(one.axes) != 1 or shape[axis] != extent for one in conditions for axis, (_, extent) in one.axes.items()):
        return None
    low, high = [0] * len(shape), list(shape)
    for one in conditions:
        ((axis, (step, _)),) = one.axes.items()
        if step > 0:
            # the first place where the condition is not below 0: const / step, rounded up
            low[axis] = max(low[axis], -(one.const // step))
        else:
            high[axis] = min(high[axis], one.const // -step + 1)
    return tuple((first, max(first, last)) for first, last in zip(low, high, strict=True))


def _places(terms: list[list[_Condition]], shape: tuple[int, ...]) -> Any:
    """Return where one of the terms holds: an array with extents of 1 on axes on which none depends."""
    extents = [1] * len(shape)
    for one in (one for term in terms for one in term):
        for axis, (_, extent) in one.axes.items():
            extents[axis] = extent
    if prod(extents) > _MOST_PLACES:
        raise unsupported(f"a mask that is no box over {prod(extents)} places")
    found: Any = np.zeros(extents, bool)
    for term in terms:
        holds: Any = True
        for one in term:
            value: Any = np.full((1,) * len(shape), one.const)
            for axis, (step, extent) in one.axes.items():
                value = value + step * np.arange(extent).reshape([-1 if at == axis else 1 for at in range(len(shape))])
            holds = holds & (value >= 0)
        found |= holds
    for axis, extent in enumerate(shape):
        if extent == 1 and extents[axis] != 1:
            found = found.any(axis=axis, keepdims=True)
    return found


def _pieces(holds: Any, shape: tuple[int, ...]) -> Iterator[Box]:
    """Yield boxes that together are the places where an array of truth values holds."""
    for count, box in enumerate(_split(holds)):
        if count == _MOST_BOXES:
            raise unsupported(f"a mask that leaves more than {_MOST_BOXES} boxes of places")
        yield tuple((0, extent) if holds.shape[axis] == 1 else pair
                    for axis, (extent, pair) in enumerate(zip(shape, box, strict=True)))  # fmt: skip


def _split(holds: Any) -> Iterator[Box]:
    if not holds.ndim:
        if holds:
            yield ()
        return
    rows = holds.reshape(len(holds), -1)
    starts = [0, *(1 + np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))).tolist(), len(holds)]
    for first, last in pairwise(starts):
        for box in _split(holds[first]):
            yield ((first, last), *box)


def held(mask: Mask, shape: tuple[int, ...]) -> Any:
    """Return 1 where a mask holds of the places of a shape, else 0."""
    result = np.zeros(shape, np.uint8)
    boxes = masked_boxes(mask, shape)
    for box in (whole_box(shape),) if boxes is None else boxes:
        result[tuple(slice(low, high) for low, high in box)] = 1
    return result


def bounding(boxes: Boxes) -> Box:
    """Return the smallest box around boxes."""
    return tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in zip(*boxes, strict=True))


def whole_box(shape: tuple[int, ...]) -> Box:
    """Return the box of all places."""
    return tuple((0, extent) for extent in shape)


def is_empty(box: Box) -> bool:
    """Return whether a box has no place."""
    return any(low >= high for low, high in box)


def both(one: Box, other: Box) -> Box:
    """Return what two boxes have in common."""
    pairs = ((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return tuple((low, max(low, high)) for low, high in pairs)


def multiplies(mask: Any, what: str) -> bool:
    """Return whether a product with a mask is computed at all; a part of one is refused."""
    if mask is None or isinstance(mask, (bool, np.bool_)):
        return mask is None or bool(mask)
    if isinstance(mask, Mask) and mask.terms in ([], [[]]):  # never, or always
        return bool(mask.terms)
    raise unsupported(f"{what} with a mask over its elements")


def squares(dst: Any, src: Any, side: int = 32) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of two 2-D tensors, one the other transposed, that the Vector engine transposes at once."""
    for row, column in product(range(0, src.shape[0], side), range(0, src.shape[1], side)):
        rows, columns = slice(row, min(row + side, src.shape[0])), slice(column, min(column + side, src.shape[1]))
        yield dst[columns, rows], src[rows, columns]


def product_boxes(mask: Any, boxes: tuple[Box, Box], left: tuple[int, ...], right: tuple[int, ...]) -> tuple[Box, Box]:
    """Return what takes part of the operands of a matrix product, of the shapes `left` and `right`, under a mask.

    The second dimension of a mask goes with that of the moving operand. UnsupportedError where it could as well be that
    of the stationary one, and where the mask leaves out rows, which may be those of an operand or of the result.
    """
    mine, theirs = boxes
    if isinstance(mask, Mask) and mask.terms not in ([], [[]]):
        axes = [one.axes[1] for one in mask.conditions if one.axes.get(1, (0, 1))[0]]
        known = len(left) == len(right) == 2 and all(extent == right[1] != left[1] for _, extent in axes)
        box = masked_box(mask, right) or whole_box(right) if known else None
        if box is None or box[0] != (0, right[0]):
            raise unsupported("nc_matmul with a mask over its elements that may be those of either operand")
        theirs = both(theirs, box)
    elif not multiplies(mask, "nc_matmul"):
        theirs = tuple((0, 0) for _ in theirs)
    rows = max(mine[0][0], theirs[0][0]), min(mine[0][1], theirs[0][1])
    return (rows, *mine[1:]), (rows, *theirs[1:])
