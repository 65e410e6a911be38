"""Planes with a value for each byte of a tile, and the part of one that a view covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neurontools.builder.trace import View

__all__ = ["part_of"]


def part_of(plane: npt.NDArray[Any], view: View, partition: int = 0, byte: int = 0) -> npt.NDArray[Any]:
    """Return the bytes of a view in a plane of (partitions, bytes), as (partitions, *counts, bytes of an element).

    The view's allocation begins at `partition` and `byte` of the plane.
    """
    size, cell = view.dtype.size, plane.itemsize
    width = plane.shape[1]
    offset = ((partition + view.partition) * width + byte + view.offset) * cell
    shape = (view.partitions, *[count for _, count in view.dims], size)
    strides = (width * cell, *[step * size * cell for step, _ in view.dims], cell)
    return np.ndarray(shape, plane.dtype, plane, offset, strides)
