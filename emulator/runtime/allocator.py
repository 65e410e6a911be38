"""Ranges of one HBM stack: what is free, and where the next allocation goes.

Nothing that was given out ever moves, so free bytes that are not in one piece may serve nobody (runtime.md 3.1). Where
an allocation goes is not documented; ours: scratchpad from the low end, everything else from the high end, each in the
first gap that holds it. So a scratchpad region can grow for as long as the two have not met.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["StackAllocator"]

_BLOCK = 256  # gaps that are passed over at once where none of them is large enough


class StackAllocator:
    """The gaps of a range of device addresses, kept in order and never touching one another."""

    def __init__(self, base: int, size: int) -> None:
        self.base, self.size = base, size
        self._starts = [base]
        self._ends = [base + size]
        self._sizes = [size]  # of the same gaps, for a quick look at many of them
        self.free = size

    @property
    def used(self) -> int:
        """Return the bytes that are given out."""
        return self.size - self.free

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Return every gap as (address, bytes), in order."""
        return tuple((start, end - start) for start, end in zip(self._starts, self._ends, strict=True))

    @property
    def largest(self) -> int:
        """Return the bytes of the largest gap."""
        return max(self._sizes, default=0)

    def highest(self, size: int, align: int = 1) -> int | None:
        """Return the highest aligned address with `size` free bytes, None where there is none."""
        for last in range(len(self._sizes), 0, -_BLOCK):
            first = max(0, last - _BLOCK)
            # C's `max` over a slice passes over a block many times faster than this loop does.
            if max(self._sizes[first:last]) < size:
                continue
            for index in range(last - 1, first - 1, -1):
                address = (self._ends[index] - size) // align * align
                if address >= self._starts[index]:
                    return address
        return None

    def lowest(self, size: int, align: int = 1, above: int = 0) -> int | None:
        """Return the lowest aligned address from `above` on with `size` free bytes, None where there is none."""
        for first in range(0, len(self._sizes), _BLOCK):
            if max(self._sizes[first : first + _BLOCK]) < size:
                continue
            for index in range(first, min(first + _BLOCK, len(self._sizes))):
                # Up to the next multiple of `align`.
                address = -(-max(self._starts[index], above) // align) * align
                if address + size <= self._ends[index]:
                    return address
        return None

    def has(self, address: int, size: int) -> bool:
        """Return whether a range is free."""
        index = bisect_right(self._starts, address) - 1
        return index >= 0 and address + size <= self._ends[index]

    def take(self, address: int, size: int) -> None:
        """Give out a free range; ValueError where a byte of it is not free."""
        if size <= 0 or not self.has(address, size):
            raise ValueError(f"0x{address:x} to 0x{address + size:x} is not free")
        index = bisect_right(self._starts, address) - 1
        start, end = self._starts[index], self._ends[index]
        self._drop(index)
        for first, last in ((address + size, end), (start, address)):  # the second goes in front of the first
            if last > first:
                self._insert(index, first, last)
        self.free -= size

    def _drop(self, index: int) -> None:
        del self._starts[index], self._ends[index], self._sizes[index]

    def _insert(self, index: int, start: int, end: int) -> None:
        self._starts.insert(index, start)
        self._ends.insert(index, end)
        self._sizes.insert(index, end - start)

    def give(self, address: int, size: int) -> None:
        """Take a range back; ValueError where a byte of it was free already, or lies outside."""
        end = address + size
        index = bisect_left(self._starts, address)
        clash = (index < len(self._starts) and self._starts[index] < end) or (
            index > 0 and self._ends[index - 1] > address
        )
        if size <= 0 or clash or address < self.base or end > self.base + self.size:
            raise ValueError(f"0x{address:x} to 0x{end:x} was not given out")
        if index < len(self._starts) and self._starts[index] == end:
            end = self._ends[index]
            self._drop(index)
        if index > 0 and self._ends[index - 1] == address:
            address = self._starts[index - 1]
            index -= 1
            self._drop(index)
        self._insert(index, address, end)
        self.free += size
