"""Operands as the engines of the present generation take them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from neurontools.builder.trace import Space
from neurontools.neuronxcc.nki.masks import Box, is_empty, masked_box
from neurontools.neuronxcc.nki.partitions import operand, written
from neurontools.neuronxcc.nki.tile import Tile, aligned, boxed
from neurontools.nki import language as nl
from neurontools.nki.tensor import NkiTensor

__all__ = ["by_rows", "column", "in_sbuf", "on_chip", "pair", "rows_of", "token"]


def token(value: Any) -> Any:
    """Return an operator as the present generation names it; NumPy functions stand for operators too."""
    return getattr(value, "plain", value)


def on_chip(value: Tile) -> Tile:
    """Return an operand in SBUF or PSUM."""
    return Tile(nl.load(value.tensor)) if value.tensor.space is Space.HBM else value


def in_sbuf(value: Tile) -> Tile:
    """Return an operand in SBUF, for engines that do not reach PSUM."""
    return Tile(nl.copy(value.tensor)) if value.tensor.space is Space.PSUM else on_chip(value)


def pair(one: Tile, other: Tile) -> tuple[Tile, Tile]:
    """Return two operands in one shape: as many elements are taken in their order, fewer are repeated."""
    if one.shape == other.shape:
        return one, other
    if one.shape[0] == other.shape[0] and prod(one.shape) == prod(other.shape):
        if other.tensor.is_contiguous():
            return one, other.reshape(one.shape)
        if one.tensor.is_contiguous():
            return one.reshape(other.shape), other
    (first, second), shape = aligned((one, other))
    return first.broadcast_to(shape), second.broadcast_to(shape)


def rows_of(tile: Tile, box: Box | None) -> NkiTensor:
    """Return the partitions of a tile that take part, where a mask of other free dimensions leaves out some."""
    wide = None if box is None else (box[0], *((0, extent) for extent in tile.shape[1:]))
    part: NkiTensor = boxed(tile, wide, tile.shape)
    return part


def by_rows(data: Tile, width: int, dtype: Any, mask: Any, emit: Callable[..., Any], *more: Tile) -> Tile:
    """Return a new tile of so many numbers for each partition, `emit(dst, data)` of what is inside the mask."""
    box = masked_box(mask, data.shape)
    made = Tile(nl.ndarray((data.shape[0], width), dtype, nl.sbuf))
    rows = None if box is None else (box[0], (0, width))
    if box is not None and is_empty(box):
        made.valid = ()
        return made
    with written(boxed(made, rows, made.shape)) as dst:
        emit(dst, operand(boxed(on_chip(data), box, data.shape)), *(operand(rows_of(one, box)) for one in more))
    made.valid = None if rows is None else (rows,)
    return made


def column(value: Any, bits: bool = False) -> Any:
    """Return one number for each partition as engines read it: in fp32, or in 32 bits; anything else as it is."""
    if not isinstance(value, Tile) or value.dtype in ((nl.int32, nl.uint32) if bits else (nl.float32,)):
        return value
    if bits and value.dtype.is_float:
        return value  # which is refused, with the operator's name
    return on_chip(value).astype((nl.uint32 if value.dtype.startswith("u") else nl.int32) if bits else nl.float32)
