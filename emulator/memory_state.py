"""What memories hold, as values that a device can return to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from emulator.extents import Plane
from formats.named_tuple import NamedTuple

__all__ = ["AllocationState", "Blocks", "ChipState", "DeviceMemoryState"]

Bytes = npt.NDArray[np.uint8]


class Blocks(NamedTuple):
    """The columns of a memory, by block, that hold something: their numbers, and what they hold."""

    numbers: npt.NDArray[np.intp]
    data: npt.NDArray[np.uint8]


class ChipState(NamedTuple):
    """SBUF and PSUM of a core as far as something was written; planes are packed, eight bytes to a bit pattern."""

    sbuf: Blocks
    sbuf_written: Blocks
    psum: Blocks
    psum_written: Blocks

    @property
    def size(self) -> int:
        """Return the bytes that the state takes."""
        return sum(part.data.nbytes for part in self)


class AllocationState(NamedTuple):
    """The bytes of an allocation, None where nothing looked at them, and which were written, None for all."""

    data: Bytes | None
    written: Plane | None

    @property
    def size(self) -> int:
        """Return the bytes that the state takes."""
        return sum(part.nbytes for part in self if part is not None)


class DeviceMemoryState(NamedTuple):
    """Allocations of HBM by address."""

    allocations: tuple[tuple[int, AllocationState], ...] = ()

    @property
    def size(self) -> int:
        """Return the bytes that the state takes."""
        return sum(held.size for _, held in self.allocations)
