"""HBM of a device: named allocations, whose bytes exist from the first access on, and which of them are written."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from math import prod
from typing import Any, ClassVar

import numpy as np

from emulator.buffers import blank, give, hand_over, take
from emulator.errors import LoadError
from emulator.extents import Extent, Notes, Plane, bounds_of_runs, merged, plane_of_runs
from emulator.faults import fault_error
from emulator.large_arrays import Borrowed, Pages, is_in_memory, own_copy, pages_of
from emulator.memory import FRESH, Bytes, fresh_bytes, repeat
from emulator.memory_state import AllocationState, DeviceMemoryState
from formats.regions import RegionParts, Steps

__all__ = ["Allocation", "Coverage", "DeviceMemory", "Fresh"]

Coverage = Bytes | bool  # a bit for each byte that is written or not; True for all of them
Fresh = Iterable[tuple[int, int, bytes]]  # offset, bytes and elements of what is fresh and not FRESH
_numbers = count(1)


class _RunsExtent(Extent):
    """The written plane under runs of bytes of an allocation."""

    __slots__ = ("_allocation", "_dims", "_offset", "_run")

    def __init__(self, allocation: Allocation, offset: int, dims: Steps, run: int, nbytes: int) -> None:
        self.notes, self.size, self.full = allocation.notes, nbytes, not nbytes  # as `Extent` does: each store has one
        self._allocation, self._offset, self._dims, self._run = allocation, offset, dims, run

    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""
        return plane_of_runs(self._allocation.plane, self._offset, self._dims, self._run)

    def freshen(self) -> None:
        """Have all bytes of the allocation fresh that are not written."""
        self._allocation.freshen()

    def columns(self, space: str) -> tuple[int, int]:
        """Return no columns: those are of a core's memory."""
        return 0, 0

    def hull(self) -> RegionParts:
        """Return the range of bytes, as a region of one partition."""
        return "HBM", 0, 0, 1, *bounds_of_runs(self._offset, self._dims, self._run), None

    def is_gapless(self) -> bool:
        """Return whether the runs lie side by side."""
        return not merged(self._dims, self._run)[0]

    def rows(self) -> tuple[int, int, int, int, int] | None:
        """Return the runs as the same bytes of each of some rows, None where they are not."""
        steps, run = merged(self._dims, self._run)
        if len(steps) != 1 or steps[0][0] < run:
            return None
        ((width, count),) = steps
        byte = self._offset % width
        return (self._offset - byte, width, count, byte, run) if byte + run <= width else None

    def is_blank(self) -> bool:
        """Return whether nothing was ever written to the allocation."""
        return self._allocation.is_blank


class Allocation:
    """A named range of HBM; its bytes exist from the first access on.

    `whole` says that every byte is known to be written; then there is no plane to keep or to scan.
    """

    __slots__ = (
        "_data",
        "_is_stale",
        "_number",
        "_written",
        "address",
        "fills",
        "lent",
        "name",
        "nbytes",
        "notes",
        "pages",
        "set_apart",
        "whole",
    )
    NOT_STATE: ClassVar = {
        **dict.fromkeys(("address", "name", "nbytes", "set_apart"), "the program"),
        "fills": "how they come to be",
        "lent": "whose the bytes are",
        "_number": "when they were asked for",
        "_is_stale": "gone as soon as anybody looks",
        "pages": "where they are",
        "notes": "in the plane for whoever asks for it",
        "whole": "in the state as `written` None",
    }

    def __init__(self, address: int, nbytes: int, name: str) -> None:
        self.address, self.nbytes, self.name = address, nbytes, name
        self.set_apart: list[tuple[int, int, bytes]] = []  # fresh bytes that are not FRESH
        self._data: Bytes | None = None
        self._is_stale = False  # whether bytes that are not written may be any
        self._number = 0
        self._written: Plane | None = None
        self.notes = Notes()
        self.whole = False
        self.fills = False  # whether bytes are fresh as soon as there are any, since nobody asks what is missing
        self.lent = False
        # Of bytes in a file, or a caller's, that nothing has changed: `data` cannot be written then.
        self.pages: Pages | Borrowed | None = None

    def number_of(self) -> int:
        """Return a number that is larger for an allocation whose bytes were asked for later; 0 without any."""
        return self._number

    def lend(self, data: Bytes) -> None:
        """Let the bytes be those of the caller from here on, all of them written; they are never given back."""
        if data.size != self.nbytes:
            raise ValueError(f"{self.name} has {self.nbytes} bytes, not {data.size}")
        self._data, self._written, self.whole, self.lent, self._is_stale = data, None, True, True, False
        self.pages = pages_of(data)
        if self.pages is not None:
            self._data = self.pages.read_only()
        self.notes.clear()

    def borrow(self, data: Bytes, moved: Callable[[], object] | None) -> None:
        """Have the bytes that the caller has, all of them written, until somebody writes here: that is to a copy.

        `moved` is called then, for those who have views to be bound again.
        """
        own = data[:]
        own.flags.writeable = False
        self.lend(own)
        self.pages = Borrowed(own, moved)

    @property
    def is_borrowed(self) -> bool:
        """Return whether the bytes are a caller's, who wants them back as they are."""
        return type(self.pages) is Borrowed

    @property
    def touched(self) -> bool:
        """Return whether anything ever looked at the bytes."""
        return self._data is not None

    @property
    def writable(self) -> Bytes:
        """Return the bytes for whoever changes them."""
        pages = self.pages
        if pages is not None:
            self._data, self.pages = pages.writable(), None
            pages.left()
        return self.data

    @property
    def data(self) -> Bytes:
        """Return the bytes for whoever looks at them."""
        if self._data is None:
            self._data, self._number = self.fresh(), next(_numbers)
        elif self._is_stale:
            self.freshen()
        return self._data

    @property
    def laid(self) -> Bytes:
        """Return the bytes for whoever makes views that are not looked at before they are written.

        Who asks an extent how many bytes are `missing` finds those fresh.
        """
        if self._data is None:
            if self.fills:
                return self.data
            self._data, self._number, self._is_stale = take(self.nbytes), next(_numbers), True
        return self._data

    def freshen(self) -> None:
        """Have all bytes fresh that are not written, where they are not."""
        if self._is_stale:
            self._is_stale = False
            if self.is_blank:
                np.copyto(self.laid, self.fresh())
            elif not self.whole and not self._is_one_range and not self.written.all():
                self.fill_unwritten()

    def take_unfilled(self) -> None:
        """Have bytes of any contents, for a caller that writes all of them, or calls `fill_unwritten`."""
        self._data, self._number = take(self.nbytes), next(_numbers)

    def fill_unwritten(self) -> None:
        """Have all bytes fresh that are not written."""
        if self._data is not None:
            np.copyto(self.writable, self.fresh(), where=~self.written)

    def fresh(self) -> Bytes:
        """Return bytes as they are before anything is written, for this allocation or for whoever looks."""
        data = fresh_bytes(self.nbytes)
        for offset, nbytes, pattern in self.set_apart:
            repeat(data[offset : offset + nbytes], pattern)
        return data

    @property
    def written(self) -> Plane:
        """Return which bytes were written."""
        self.notes.settle()
        self.notes.ranges.clear()  # whoever takes the plane may change it back
        return self.plane

    @property
    def plane(self) -> Plane:
        """Return which bytes were written, without what is noted and not in the plane yet."""
        if self._written is None:
            self._written = blank(self.nbytes).view(np.bool_)
            if self.whole:
                self._written.fill(True)
        return self._written

    @property
    def is_blank(self) -> bool:
        """Return whether nothing was ever written."""
        return self._written is None and not self.whole and not self.notes.extents

    def extent(self, offset: int, dims: Steps, run: int, nbytes: int | None = None) -> Extent:
        """Return the written plane under runs of bytes; (step, count), outermost first, `nbytes` in all where known."""
        if nbytes is None:
            nbytes = prod([count for _, count in dims]) * run
        return _RunsExtent(self, offset, dims, run, nbytes)

    @property
    def _is_one_range(self) -> bool:
        """Return whether all bytes are known to be written, without a look at the plane, which is as large."""
        return self.notes.cover(("HBM", 0, 0, 1, 0, self.nbytes, None))

    def coverage(self) -> Coverage | None:
        """Return which bytes are written, for `cover`; None where none are, or all of them for good."""
        if self.whole or self.is_blank:
            return None
        if self._is_one_range:
            return True
        plane = self.written
        return True if plane.all() else np.packbits(plane)

    def cover(self, coverage: Coverage) -> None:
        """Note the same bytes written that another was asked for; nothing may be yet."""
        if isinstance(coverage, bool):
            self.extent(0, (), self.nbytes).mark()
        else:
            self.plane[...] = np.unpackbits(coverage, count=self.nbytes).view(np.bool_)

    @property
    def written_bytes(self) -> int:
        """Return how many bytes were written."""
        if not self.touched:
            return 0
        if self.whole or self._is_one_range:
            return self.nbytes
        return int(np.count_nonzero(self.written))

    def snapshot(self) -> AllocationState:
        """Return a copy of the contents, for `restore`."""
        if not self.touched:
            return AllocationState(None, None)
        return AllocationState(self.data.copy(), None if self.whole else self.written.copy())

    def restore(self, state: AllocationState) -> None:
        """Return to contents that `snapshot` gave; who holds a view of the plane has to ask for it again."""
        if state.data is None:
            self.untouch()
            return
        np.copyto(self.writable, state.data)
        self.whole, self._written = state.written is None, None
        self.notes.clear()
        if state.written is not None:
            np.copyto(self.written, state.written)

    def anew(self) -> Allocation:
        """Return an allocation at the same place that nothing has looked at yet."""
        made = Allocation(self.address, self.nbytes, self.name)
        made.set_apart = self.set_apart
        return made

    def untouch(self) -> None:
        """Be as before anything looked at the bytes."""
        self._data, self._written, self.whole, self.pages, self._is_stale = None, None, False, None, False
        self.notes.clear()

    def doubt(self) -> None:
        """Keep a plane again, of bytes that nothing wrote: not all of them are known to be written any more."""
        self.whole, self._written = False, None
        self.notes.clear()

    def release(self) -> None:
        """Give the bytes back, those of the tensor last, for whoever asks for as many next."""
        give(self._written)
        if not self.lent:
            give(self._data)
        self._data = self._written = self.pages = None
        self.notes.clear()

    def write(self, offset: int, data: Bytes) -> None:
        """Store bytes and note them written."""
        if offset == 0 and data.size == self.nbytes and self._data is None:
            shared = own_copy(data)
            if shared is not None:
                self.lend(shared)
                return
            self._data, self._number = take(self.nbytes), next(_numbers)
            np.copyto(self._data, data)
        else:
            self.writable[offset : offset + data.size] = data
        if data.size == self.nbytes:
            self.whole, self._written = True, None
            self.notes.clear()
        elif not self.whole:
            self.written[offset : offset + data.size] = True


class DeviceMemory:
    """HBM: named allocations by device address; what lies outside every allocation cannot be touched.

    `ranges` are the (base, size) pairs of the stacks; allocations go to `stack`, then to the others in order.
    """

    NOT_STATE: ClassVar = {
        **dict.fromkeys(("_next", "_starts", "ranges"), "set before the run: programs do not allocate"),
        **dict.fromkeys(("moved", "paged"), "where bytes are"),
    }

    def __init__(self, ranges: tuple[tuple[int, int], ...], stack: int = 0, reserve: int = 1 << 20) -> None:
        self.ranges = (*ranges[stack:], *ranges[:stack])
        # Address 0 of a stack is never handed out: a null pointer must not name a tensor.
        self._next = [base + reserve for base, _ in self.ranges]
        self._starts: list[int] = []
        self.allocations: dict[int, Allocation] = {}
        self.paged = False  # whether bytes of an allocation lie in a file
        self.moved: Callable[[], object] | None = None  # called when bytes come to lie elsewhere

    @classmethod
    def holding_these(cls, allocations: Iterable[Allocation]) -> DeviceMemory:
        """Return a memory of some allocations, which has room for no other."""
        made = cls(())
        made.allocations = {each.address: each for each in allocations}
        made._starts = sorted(made.allocations)
        return made

    def allocate(self, nbytes: int, name: str, align: int = 4096) -> int:
        """Reserve `nbytes` and return the device address; LoadError where no stack has room."""
        for index, (base, size) in enumerate(self.ranges):
            address = -(-self._next[index] // align) * align
            if address + nbytes <= base + size:
                self._next[index] = address + max(nbytes, 1)
                self.allocations[address] = Allocation(address, nbytes, name)
                insort(self._starts, address)
                return address
        raise LoadError(f"{name}: no HBM left for {nbytes} bytes")

    @property
    def room(self) -> tuple[int, ...]:
        """Return from which address on there is room in each of the stacks."""
        return tuple(self._next)

    def hold(self, parts: Iterable[tuple[int, int, str, Fresh]], room: Sequence[int]) -> None:
        """Hold allocations, by address, size, name and fresh bytes, where there was nothing; there is `room` then."""
        for address, nbytes, name, apart in parts:
            self.allocations[address] = made = Allocation(address, nbytes, name)
            made.set_apart += apart
        self._next[:] = room
        self._starts = sorted(self.allocations)

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that holds an address, None where there is none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        found = self.allocations[self._starts[index]]
        return found if address < found.address + found.nbytes else None

    def holding(self, address: int, nbytes: int) -> Allocation:
        """Return the allocation that holds a range of bytes; FaultError of kind "oob" where none holds all of it."""
        found = self.find(address)
        if found is None or address + nbytes > found.address + found.nbytes:
            near = (
                f"{found.name} ends at {found.address + found.nbytes:#x}"
                if found
                else "no allocation holds the address"
            )
            raise fault_error(
                "oob",
                f"HBM access out of bounds: {address:#x}, {nbytes} bytes",
                space="HBM",
                address=(address, address + nbytes),
                expected=near,
            )
        return found

    def part_with(self, address: int, nbytes: int) -> Bytes | None:
        """Return the bytes of an allocation for good, None where that cannot be; nobody may look at them here then."""
        found = self.allocations.get(address)
        if found is None or found.nbytes != nbytes or found.lent or not nbytes:
            return None
        data = hand_over(found.data)
        found.lent = True
        return data

    def fill(self) -> None:
        """Have all bytes fresh that are not written, now and whenever they are made."""
        for each in self.allocations.values():
            each.fills = True
            each.freshen()

    def view(self, address: int, nbytes: int) -> Bytes:
        """Return the bytes at a device address; FaultError of kind "oob" outside of any one allocation."""
        found = self.holding(address, nbytes)
        start = address - found.address
        return found.data[start : start + nbytes]

    def views(self, address: int, nbytes: int) -> tuple[Bytes, Plane | None]:
        """Return the bytes at a device address and which of them were written; None for all of them, for good."""
        found = self.holding(address, nbytes)
        start = address - found.address
        return found.data[start : start + nbytes], None if found.whole else found.written[start : start + nbytes]

    def write(self, address: int, data: bytes | Bytes) -> None:
        """Store bytes and note them written."""
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray | memoryview) else data
        found = self.holding(address, array.size)
        found.write(address - found.address, array.reshape(-1))
        self.paged = self.paged or found.pages is not None

    def borrow(self, address: int, data: Bytes) -> None:
        """Have bytes of the caller for an allocation, as long as nobody writes them: nobody changes them until then."""
        found = self.holding(address, data.size)
        if found.nbytes == data.size and not found.touched and is_in_memory(data):
            found.borrow(data, self.moved)
        else:
            self.write(address, data)

    def set_fresh(self, address: int, nbytes: int, pattern: bytes) -> None:
        """Have bytes hold elements of a pattern until they are written; nothing may have looked at them yet."""
        if nbytes and pattern != bytes([FRESH]):
            found = self.holding(address, nbytes)
            part = address - found.address, nbytes, pattern
            if part not in found.set_apart:
                found.set_apart.append(part)

    def mark_written(self, address: int, nbytes: int) -> None:
        """Note that bytes are written."""
        plane = self.views(address, nbytes)[1]
        if plane is not None:
            plane[...] = True

    def check_written(self, address: int, nbytes: int) -> int:
        """Return how many bytes were never written."""
        plane = self.views(address, nbytes)[1]
        return 0 if plane is None else int(nbytes - np.count_nonzero(plane))

    def snapshot(self, chosen: Iterable[Allocation] | None = None) -> DeviceMemoryState:
        """Return copies of some allocations, or of all, for `restore`."""
        allocations = self.allocations.values() if chosen is None else chosen
        return DeviceMemoryState(tuple((allocation.address, allocation.snapshot()) for allocation in allocations))

    def restore(self, state: DeviceMemoryState) -> None:
        """Return to the contents that `snapshot` gave; allocations that it was not asked for stay as they are."""
        for address, held in state.allocations:
            self.allocations[address].restore(held)

    def release(self) -> None:
        """Give the memories back; nothing may look at them, or at views of them, after that."""
        # The last first, so that a program that comes again is given the same bytes for the same tensors.
        for allocation in sorted(self.allocations.values(), key=Allocation.number_of, reverse=True):
            allocation.release()
        self.allocations.clear()
        self._starts.clear()

    def digest(self, into: Any) -> None:
        """Feed every allocation that was touched to a hash."""
        for start in self._starts:
            allocation = self.allocations[start]
            if allocation.touched:
                into.update(start.to_bytes(8, "little"))
                into.update(allocation.data)
                into.update(b"whole" if allocation.whole else allocation.written)
