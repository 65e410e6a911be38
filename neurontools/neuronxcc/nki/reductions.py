"""Reductions over any free axes: engines fold the last dimensions of a pattern, so the others go in front."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neurontools.builder.trace import Space
from neurontools.neuronxcc.nki.masks import is_empty, masked_box, whole_box
from neurontools.neuronxcc.nki.partitions import operand, put
from neurontools.neuronxcc.nki.tile import Tile, boxed
from neurontools.nki import language as nl
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.views import complain

__all__ = ["last_axes", "reduced"]


def last_axes(shape: tuple[int, ...], axis: Any) -> tuple[list[int], list[int]]:
    """Return the places of the reduced axes once they are moved to the end, and the order that moves them there."""
    given = list(axis) if isinstance(axis, (list, tuple, range)) else [axis]
    axes = sorted({one % len(shape) for one in given if -len(shape) <= one < len(shape)})
    if len(axes) != len(given) or not axes or axes[0] == 0:
        raise complain(f"axis {axis} of shape {shape} must name free dimensions, 1 to {len(shape) - 1}, once each")
    kept = [one for one in range(len(shape)) if one not in axes]
    return list(range(len(kept), len(shape))), kept + axes


def reduced(
    x: Tile, axis: Any, keepdims: bool, mask: Any, dtype: Any, fold: Callable[[NkiTensor, list[int]], NkiTensor]
) -> Tile:
    """Return `fold` of the part of a tile inside the mask; without keepdims one free dimension stays at least."""
    source = x.tensor if x.tensor.space is not Space.HBM else nl.load(x.tensor)
    last, order = last_axes(source.shape, axis)
    kept = order[: last[0]]

    def shape_of(extents: tuple[int, ...]) -> tuple[int, ...]:
        if keepdims:
            return tuple(one if place in kept else 1 for place, one in enumerate(extents))
        return tuple(extents[place] for place in kept) if len(kept) > 1 else (extents[0], 1)

    box = masked_box(mask, source.shape)
    whole = whole_box(source.shape)
    inside = whole if box is None else box
    if is_empty(inside):
        nothing = Tile(nl.ndarray(shape_of(source.shape), dtype or source.dtype, nl.sbuf))
        nothing.valid = ()
        return nothing
    # what a mask leaves out of a folded axis is no part of the fold: the box alone is read
    data = boxed(source, box, source.shape)
    result = fold(operand(data.permute(order)), last).reshape(shape_of(data.shape))
    if all(inside[place] == whole[place] for place in kept):
        return Tile(result)
    full = Tile(nl.ndarray(shape_of(source.shape), result.dtype, nl.sbuf))
    pairs = [pair if place in kept else (0, 1) for place, pair in enumerate(inside)]
    valid = tuple(pairs) if keepdims else tuple(pairs[place] for place in kept)
    valid = valid if len(valid) == len(full.shape) else (*valid, (0, 1))
    full.valid = (valid,)
    put(boxed(full, valid, full.shape), result)
    return full
