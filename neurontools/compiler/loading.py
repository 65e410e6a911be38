"""Parts of arrays in device memory as tiles in SBUF, and back."""

from __future__ import annotations

from collections.abc import Sequence

from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.tiling import Tile

__all__ = ["load", "part_of", "store", "without_folded"]


def part_of(array: Array, strides: Sequence[int], tile: Tile) -> View:
    """Return the elements of an array that a tile of the index space stands for, partitions first."""
    offset = array.offset + sum(start * stride for start, stride in zip(tile.starts, strides, strict=True))
    dims: list[tuple[int, int]] = []
    inner: dict[int, int] = {}
    for axis, extent in zip(reversed(tile.splits), reversed(tile.shape), strict=True):
        dims.append((strides[axis] * inner.get(axis, 1), extent))
        inner[axis] = inner.get(axis, 1) * extent
    dims.reverse()
    return View(array.allocation, array.dtype, 0, 1, offset * array.dtype.size, tuple(dims))


def load(e: Emitter, part: View, tile: Tile) -> View:
    """Return a tile with the elements of a part; dimensions that repeat are repeated by the view."""
    rows, free = part.dims[: tile.rows], part.dims[tile.rows :]
    # What repeats is loaded once: engines can read with a step of 0.
    kept = [count for step, count in free if step != 0]
    into = e.tile(part.dtype, tile.partitions, kept)
    e.copy(into, part._replace(dims=(*rows, *(one for one in free if one[0] != 0)) or ((1, 1),)))
    if len(kept) == len(free):
        return into
    steps = iter(into.dims) if kept else iter(())
    return into._replace(dims=tuple(next(steps) if step != 0 else (0, count) for step, count in free))


def store(e: Emitter, part: View, made: View) -> None:
    """Write a tile to its part of an array."""
    e.copy(part, made)


def without_folded(tile: Tile, folded: int) -> Tile:
    """Return a tile without its last dimensions."""
    if not folded:
        return tile
    kept = len(tile.starts) - folded
    axes = [(axis, extent) for axis, extent in zip(tile.splits, tile.shape, strict=True) if axis < kept]
    return Tile(tile.starts[:kept], tuple(extent for _, extent in axes), tuple(axis for axis, _ in axes), tile.rows)
