"""The boxes that masks leave of the places of a tile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from neurontools.neuronxcc.nki.affine import Mask, unsupported

__all__ = ["Box", "both", "is_empty", "masked_box", "multiplies", "product_boxes", "squares", "whole_box"]

# First and last + 1 place of each dimension.
Box = tuple[tuple[int, int], ...]


def masked_box(mask: Any, shape: tuple[int, ...]) -> Box | None:
    """Return the box of a mask over a shape, None where it leaves nothing out."""
    if mask is None:
        return None
    if isinstance(mask, (bool, np.bool_)):  # of numbers, not of index expressions
        return None if mask else tuple((0, 0) for _ in shape)
    if not isinstance(mask, Mask):
        raise unsupported(f"mask={mask!r}")
    box = mask.box(shape)
    return None if all(pair == (0, extent) for pair, extent in zip(box, shape, strict=True)) else box


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
    if isinstance(mask, Mask) and not any(one.varies for one in mask.conditions):
        return masked_box(mask, (1,)) is None
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
    if isinstance(mask, Mask) and any(one.varies for one in mask.conditions):
        axes = [one.axes[1] for one in mask.conditions if one.axes.get(1, (0, 1))[0]]
        known = len(left) == len(right) == 2 and all(extent == right[1] != left[1] for _, extent in axes)
        box = mask.box(right) if known else None
        if box is None or box[0] != (0, right[0]):
            raise unsupported("nc_matmul with a mask over its elements that may be those of either operand")
        theirs = both(theirs, box)
    elif not multiplies(mask, "nc_matmul"):
        theirs = tuple((0, 0) for _ in theirs)
    rows = max(mine[0][0], theirs[0][0]), min(mine[0][1], theirs[0][1])
    return (rows, *mine[1:]), (rows, *theirs[1:])
