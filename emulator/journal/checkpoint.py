"""The whole state of a device between two completions, without memory that nothing wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emulator.journal.control import Control, Copy
from emulator.memory import Allocation

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.journal.saved import DeviceBytes

__all__ = ["Checkpoint", "Originals", "restore", "size_of", "take"]

_BLOCK = 512  # bytes of a partition that are kept or left out together

# Allocations that the program wrote into, and what they held at the beginning.
Originals = dict[int, tuple[Allocation, "DeviceBytes"]]


class _Blocks(NamedTuple):
    """The columns of one memory that hold something."""

    core: int
    space: str
    numbers: npt.NDArray[np.intp]
    data: npt.NDArray[np.uint8]
    plane: npt.NDArray[np.uint8]


class Checkpoint(NamedTuple):
    """A state to run on from: `events` lie before it; `touched` are allocations that exist in HBM."""

    events: int
    control: Copy
    blocks: tuple[_Blocks, ...]
    device: tuple[tuple[Allocation, npt.NDArray[np.uint8], Any], ...]
    untouched: tuple[Allocation, ...]
    nbytes: int


def size_of(originals: Originals) -> int:
    """Return how many bytes of HBM a checkpoint keeps, at most."""
    return sum(2 * allocation.nbytes for allocation, _ in originals.values() if allocation.touched)


def take(device: Device, control: Control, count: int, originals: Originals,
         untouched: tuple[Allocation, ...]) -> Checkpoint:  # fmt: skip
    """Return a checkpoint of a device that stands right behind a completion."""
    blocks = tuple(_blocks(device, core.index, space) for core in device.cores for space in ("SBUF", "PSUM"))
    kept = tuple(
        (allocation, allocation.data.copy(), None if allocation.whole else allocation.written.copy())
        for allocation, _ in originals.values()
        if allocation.touched
    )
    copy = control.copy()
    nbytes = sum(part.data.nbytes + part.plane.nbytes for part in blocks)
    nbytes += sum(data.nbytes + (0 if plane is None else plane.nbytes) for _, data, plane in kept)
    nbytes += 4 * 128 * 128 * 4 * len(device.cores)
    return Checkpoint(count, copy, blocks, kept, untouched, nbytes)


def _blocks(device: Device, core: int, space: str) -> _Blocks:
    memory = device.cores[core].memory
    data, plane = _cut(memory.array(space)), _cut(memory.written(space))
    columns = np.bitwise_or.reduce(memory.written(space).view(np.uint8), axis=0)
    numbers = np.flatnonzero(columns.reshape(-1, _BLOCK).any(axis=1))
    return _Blocks(core, space, numbers, data[:, numbers], np.packbits(plane[:, numbers], axis=2))


def _cut(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of a memory by partition and block."""
    return array.reshape(array.shape[0], -1, _BLOCK)


def restore(device: Device, control: Control, point: Checkpoint, originals: Originals) -> None:
    """Put a checkpoint back; transfers under way have to be bound again."""
    for core in device.cores:
        core.memory.make_fresh()
        for plane in (core.sbuf_written, core.psum_written):
            plane.fill(False)
    for part in point.blocks:
        memory = device.cores[part.core].memory
        data, plane = _cut(memory.array(part.space)), _cut(memory.written(part.space))
        data[:, part.numbers] = part.data
        plane[:, part.numbers] = np.unpackbits(part.plane, axis=2).view(np.bool_)
    for core in device.cores:
        core.memory.forget()
    kept = {allocation.address: (data, written) for allocation, data, written in point.device}
    for allocation, original in originals.values():
        found = kept.get(allocation.address)
        if found is None:
            original.restore()
            continue
        data_then, written = found
        np.copyto(allocation.data, data_then)
        allocation.whole, allocation._written = written is None, None
        if written is not None:
            np.copyto(allocation.written, written)
    for allocation in point.untouched:
        allocation._data = allocation._written = None
    control.restore(point.control)
