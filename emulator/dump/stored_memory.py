"""The memories that a core dump holds: on-chip ones filled in, HBM read when somebody looks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from emulator.arch import Arch
from emulator.memory import FRESH, ChipMemory
from formats.core import Core, Segment
from formats.core.records import Allocation
from formats.errors import FormatError
from formats.limits import DEFAULT_LIMITS

__all__ = ["PLACES", "StoredAllocation", "StoredChip", "StoredHbm"]

PLACES = ("SBUF", "PSUM")
_MOST = 1 << 40  # bytes of an allocation beyond which its note is damaged

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]


def _plane_of(core: Core, segment: Segment) -> Plane:
    """Return which bytes of a segment were written."""
    plane = core.segments.plane(segment)
    found = np.ones(segment.size, np.bool_)
    if plane is not None:
        bits = np.unpackbits(np.frombuffer(plane, np.uint8), bitorder="little")[: segment.size].view(np.bool_)
        found[: bits.size] = bits
        # a plane that is cut off says nothing of the rest
        found[bits.size :] = False
    return found


class StoredChip(ChipMemory):
    """SBUF and PSUM of one core as the dump has them."""

    def __init__(self, core: Core, index: int, arch: Arch) -> None:
        super().__init__(index, arch.partitions.whole, arch.sbuf_bytes.whole, arch.psum_bytes.whole,
                         arch.psum_bank.whole)  # fmt: skip
        self._counts = {window.space: window.written for window in core.windows if window.core == index}
        for segment in core.segments:
            if segment.space not in PLACES or segment.core != index:
                continue
            array, plane = self.array(segment.space), self.written(segment.space)
            rows, width = array.shape
            size = min(segment.size, width - segment.byte)
            if segment.partition < rows and size > 0:
                part = segment.partition, slice(segment.byte, segment.byte + size)
                array[part] = np.frombuffer(core.segments.data(segment), np.uint8)[:size]
                plane[part] = _plane_of(core, segment)[:size]

    def written_bytes(self, space: str) -> int:
        """Return how many bytes were written, also of those that the dump does not hold."""
        found = self._counts.get(space)
        return super().written_bytes(space) if found is None else found


class StoredAllocation:
    """A range of HBM; its bytes are taken from the dump when somebody looks."""

    whole = False

    def __init__(self, core: Core, item: Allocation) -> None:
        self.address, self.nbytes, self.name, self.written_bytes = item.address, item.nbytes, item.name, item.written
        self._core = core
        self._data: Bytes | None = None
        self._written: Plane | None = None

    @property
    def touched(self) -> bool:
        """Return whether anything wrote into it."""
        return self.written_bytes > 0

    def fresh(self) -> Bytes:
        """Return bytes as they are before anything is written.

        Raises FormatError for more than a dump of this size tells anything about.
        """
        most = DEFAULT_LIMITS.stored_from(self._core.size)
        if self.nbytes > most:
            raise FormatError(f"allocation {self.name!r} is too large to show", path=self._core.path or None,
                              expected=f"at most {most:,} bytes", got=f"{self.nbytes:,}")  # fmt: skip
        return np.full(self.nbytes, FRESH, np.uint8)

    def _segments(self) -> list[Segment]:
        return list(self._core.segments.within(self.address, self.address + self.nbytes))

    def _common(self, segment: Segment) -> tuple[slice, slice]:
        """Return what a segment and the allocation share, as a part of either."""
        low = max(segment.address, self.address)
        high = min(segment.address + segment.size, self.address + self.nbytes)
        return slice(low - segment.address, high - segment.address), slice(low - self.address, high - self.address)

    @property
    def data(self) -> Bytes:
        """Return the bytes; what the dump does not hold is as fresh memory is."""
        if self._data is None:
            found = self._segments()
            if len(found) == 1 and self._common(found[0])[1] == slice(0, self.nbytes):
                self._data = np.frombuffer(self._core.segments.data(found[0]), np.uint8)[self._common(found[0])[0]]
            else:
                self._data = self.fresh()
                for segment in found:
                    here, there = self._common(segment)
                    self._data[there] = np.frombuffer(self._core.segments.data(segment), np.uint8)[here]
        return self._data

    @property
    def written(self) -> Plane:
        """Return which bytes were written."""
        if self._written is None:
            self._written = np.zeros(self.fresh().size, np.bool_)
            for segment in self._segments():
                here, there = self._common(segment)
                self._written[there] = _plane_of(self._core, segment)[here]
        return self._written


class StoredHbm:
    """HBM as the dump has it: allocations by address."""

    def __init__(self, core: Core, items: Sequence[Allocation]) -> None:
        self.allocations: dict[int, StoredAllocation] = {}
        behind = 0
        for item in sorted(items, key=lambda each: each.address):
            # of two that overlap, the later one is damage
            if item.address >= behind and 0 <= item.nbytes <= _MOST:
                self.allocations.setdefault(item.address, StoredAllocation(core, item))
                behind = item.address + item.nbytes
        self._starts = list(self.allocations)

    def find(self, address: int) -> StoredAllocation | None:
        """Return the allocation that holds an address, None where there is none."""
        index = bisect_right(self._starts, address) - 1
        found = self.allocations[self._starts[index]] if index >= 0 else None
        return found if found is not None and address < found.address + found.nbytes else None
