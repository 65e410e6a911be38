"""Strided views of device memory and SBUF for the sides of a transfer; what lies outside is a fault, not a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dma.transfer import Side
from formats.isa.operand import SBUF_PARTITION_STRIDE

__all__ = ["Bytes", "Geometry", "Plane", "sbuf_geometry", "split_step", "strided"]

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]
# (offset, strides of the dimensions), all in bytes of the array that holds the memory.
Geometry = tuple[int, tuple[int, ...]]


def strided(memory: npt.NDArray[Any], geometry: Geometry, side: Side, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the view of a side: its counts, then the elements of one run."""
    offset, steps = geometry
    shape = (*(count for _, count in side.dims), side.run // dtype.itemsize)
    return np.ndarray(shape, dtype, memory, offset, (*steps, dtype.itemsize))


def sbuf_geometry(side: Side, width: int, partitions: int, refuse: Callable[[int, int, str], Any]) -> Geometry:
    """Return where a side lies in a (partitions, width) array of bytes.

    A step is partitions of 0x40000 bytes and bytes in one, up or down, whichever stays inside the partition.
    `refuse(low, high, allowed)` is called for what fits nowhere.
    """
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    low_p = high_p = partition
    low_b = high_b = byte
    steps = []
    for step, count in side.dims:
        over, inside = split_step(step, count, byte, side.run, width)
        steps.append(over * width + inside)
        reach_p, reach_b = over * (count - 1), inside * (count - 1)
        low_p, high_p = low_p + min(reach_p, 0), high_p + max(reach_p, 0)
        low_b, high_b = low_b + min(reach_b, 0), high_b + max(reach_b, 0)
    if low_p < 0 or high_p >= partitions or low_b < 0 or high_b + side.run > width:
        refuse(
            *side.span,
            f"partitions 0 to {partitions - 1}, bytes 0 to {width - 1:#x}; touched are partitions {low_p} to "
            f"{high_p}, bytes {low_b:#x} to {high_b + side.run - 1:#x}",
        )
    return partition * width + byte, tuple(steps)


def split_step(step: int, count: int, byte: int, run: int, width: int) -> tuple[int, int]:
    """Return a step as (partitions, bytes)."""
    over, inside = divmod(step, SBUF_PARTITION_STRIDE)
    if not inside:
        return over, 0
    down = inside - SBUF_PARTITION_STRIDE
    for partitions, bytes_ in ((over, inside), (over + 1, down)):
        if 0 <= byte + bytes_ * (count - 1) <= width - run:
            return partitions, bytes_
    return (over, inside) if inside <= -down else (over + 1, down)
