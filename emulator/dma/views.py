"""Strided views of device memory and SBUF for the sides of a transfer; what lies outside is a fault, not a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.device_memory import DeviceMemory
from emulator.dma.transfer import Side
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region, shape_of

__all__ = ["Bytes", "Geometry", "box_of", "device_bytes", "sbuf_geometry", "strided"]

Bytes = npt.NDArray[np.uint8]
_BYTE: np.dtype[Any] = np.dtype(np.uint8)
# (offset, strides of the dimensions), all in bytes of the array that holds the memory.
Geometry = tuple[int, tuple[int, ...]]


def strided(memory: npt.NDArray[Any], geometry: Geometry, side: Side, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the view of a side: its counts, then the elements of one run."""
    offset, steps = geometry
    shape = (*(count for _, count in side.dims), side.run // dtype.itemsize)
    return np.ndarray(shape, dtype, memory, offset, (*steps, dtype.itemsize))


def device_bytes(hbm: DeviceMemory, side: Side, *, writes: bool = False) -> Bytes:
    """Return the bytes of a side in device memory as they are now, for whoever `writes` them and whoever looks."""
    low, high = side.span
    found = hbm.holding(low, high - low)
    geometry = side.address - found.address, tuple([step for step, _ in side.dims])
    return strided(found.writable if writes else found.data, geometry, side, _BYTE)


def sbuf_geometry(side: Side, width: int, partitions: int, refuse: Callable[[int, int, str], object]) -> Geometry:
    """Return where a side lies in a (partitions, width) array of bytes.

    `refuse(low, high, allowed)` is called for what fits nowhere.
    """
    box, steps = box_of(side, width)
    if box.first < 0 or box.behind > partitions or box.byte < 0 or box.end > width:
        refuse(
            *side.span,
            f"partitions 0 to {partitions - 1}, bytes 0 to {width - 1:#x}; touched are partitions {box.first} to "
            f"{box.behind - 1}, bytes {box.byte:#x} to {box.end - 1:#x}",
        )
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    return partition * width + byte, tuple(over * width + inside for over, inside in steps)


def box_of(side: Side, width: int) -> tuple[Region, tuple[tuple[int, int], ...]]:
    """Return the box around a side in SBUF, in bounds or not, and its steps as (partitions, bytes).

    A step is partitions of 0x40000 bytes and bytes in one, up or down, whichever stays inside the partition.
    """
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    steps = tuple(_split(step, count, byte, side.run, width) for step, count in side.dims)
    counts = [count for _, count in side.dims]
    rows = shape_of(((over, count) for (over, _), count in zip(steps, counts, strict=True)), 1)
    across = shape_of(((inside, count) for (_, inside), count in zip(steps, counts, strict=True)), side.run, unit=1)
    return Region("SBUF", side.core, partition + rows.shift, rows.reach, byte + across.shift, across.reach), steps


def _split(step: int, count: int, byte: int, run: int, width: int) -> tuple[int, int]:
    """Return a step as (partitions, bytes)."""
    over, inside = divmod(step, SBUF_PARTITION_STRIDE)
    if not inside:
        return over, 0
    down = inside - SBUF_PARTITION_STRIDE
    for partitions, bytes_ in ((over, inside), (over + 1, down)):
        if 0 <= byte + bytes_ * (count - 1) <= width - run:
            return partitions, bytes_
    return (over, inside) if inside <= -down else (over + 1, down)
