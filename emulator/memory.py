"""Physical memories: SBUF and PSUM of a core, HBM of a device, each with a plane of written bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from emulator.buffers import blank, give, take
from emulator.errors import LoadError
from emulator.faults import fault_error

__all__ = ["FRESH", "Allocation", "ChipMemory", "DeviceMemory", "Extent", "new_hash"]

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]
# What fresh memory holds: NaN in every floating-point type, so that results of bytes never written stand out.
FRESH = 0xFF
# Extents kept; more distinct ones than this and the cache starts anew, which only costs scanning again.
_EXTENT_LIMIT = 1 << 16

def _fresh(nbytes: int) -> Bytes:
    data = take(nbytes)
    data.fill(FRESH)
    return data


def _repeat(into: Bytes, pattern: bytes) -> None:
    """Fill bytes, whose last dimension lies together, with elements of a pattern."""
    into.view(f"V{len(pattern)}")[...] = np.void(pattern)


def _blank(nbytes: int) -> Plane:
    return blank(nbytes).view(np.bool_)


ExtentKey = tuple[str, int, int, int, int, Any]


class Extent:
    """The written plane under one region of a core's memory; `full` once every byte of it is known to be written."""

    __slots__ = ("__weakref__", "full", "plane")

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.full = not plane.size

    def mark(self) -> None:
        """Note that every byte is written."""
        if not self.full:
            self.plane[...] = True
            self.full = True

    def missing(self) -> int:
        """Return how many bytes were never written."""
        if self.full:
            return 0
        if self.plane.all():
            self.full = True
            return 0
        return int(self.plane.size - np.count_nonzero(self.plane))


class ChipMemory:
    """SBUF and PSUM of one core: (128, bytes) arrays, partition-major, beside boolean planes of the same shape."""

    def __init__(self, core: int, partitions: int, sbuf_bytes: int, psum_bytes: int, psum_bank: int) -> None:
        self.core, self.partitions, self.psum_bank = core, partitions, psum_bank
        self.sbuf: Bytes = _fresh(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self.psum: Bytes = _fresh(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self.sbuf_written: Plane = _blank(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self.psum_written: Plane = _blank(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self._extents: dict[ExtentKey, Extent] = {}
        self._dropped: WeakSet[Extent] = WeakSet()      # words may still hold them
        self.set_apart: list[tuple[str, int, int, int, int, bytes]] = []    # fresh bytes that are not FRESH

    def array(self, space: str) -> Bytes:
        """Return the bytes of "SBUF" or "PSUM"."""
        return self.sbuf if space == "SBUF" else self.psum

    def set_fresh(self, space: str, first: int, partitions: int, byte: int, nbytes: int, pattern: bytes) -> None:
        """Fill a region that nothing has written with elements of a pattern."""
        self.set_apart.append((space, first, partitions, byte, nbytes, pattern))
        _repeat(self.array(space)[first:first + partitions, byte:byte + nbytes], pattern)

    def make_fresh(self) -> None:
        """Bring all bytes back to what they were before anything was written; the planes stay."""
        self.sbuf.fill(FRESH)
        self.psum.fill(FRESH)
        for space, first, partitions, byte, nbytes, pattern in self.set_apart:
            _repeat(self.array(space)[first:first + partitions, byte:byte + nbytes], pattern)

    def written(self, space: str) -> Plane:
        """Return the written plane of "SBUF" or "PSUM"."""
        return self.sbuf_written if space == "SBUF" else self.psum_written

    def extent(self, space: str, first: int, partitions: int, byte: int, nbytes: int, pattern: Any = None) -> Extent:
        """Return the written plane under a region; `pattern` as in `Region`. The region must be in bounds."""
        key = (space, first, partitions, byte, nbytes, pattern)
        found = self._extents.get(key)
        if found is None:
            plane = self.written(space)
            if pattern is None:
                view = plane[first:first + partitions, byte:byte + nbytes]
            else:
                dims, run = pattern
                width = plane.shape[1]
                view = np.ndarray((partitions, *(count for _, count in dims), run), np.bool_, plane,
                                  first * width + byte, (width, *(step for step, _ in dims), 1))
            if len(self._extents) >= _EXTENT_LIMIT:
                self._dropped.update(self._extents.values())
                self._extents.clear()
            found = self._extents[key] = Extent(view)
        return found

    def mark_written(self, space: str, p0: int, p1: int, byte0: int, byte1: int) -> None:
        """Note that bytes byte0 to byte1 - 1 of partitions p0 to p1 - 1 are written."""
        self.extent(space, p0, p1 - p0, byte0, byte1 - byte0).mark()

    def check_written(self, space: str, p0: int, p1: int, byte0: int, byte1: int) -> int:
        """Return how many of these bytes were never written."""
        return self.extent(space, p0, p1 - p0, byte0, byte1 - byte0).missing()

    def forget(self) -> None:
        """Drop what is known about written regions; call it after planes were changed back (time travel)."""
        for extent in (*self._extents.values(), *self._dropped):
            extent.full = not extent.plane.size

    def known_written(self, space: str, first: int, partitions: int, byte: int, nbytes: int, pattern: Any) -> bool:
        """Tell whether a region is known to be written whole, without looking at the plane."""
        found = self._extents.get((space, first, partitions, byte, nbytes, pattern))
        return found is not None and found.full

    def release(self) -> None:
        """Give the memories back; nothing may look at them, or at views of them, after that."""
        self._extents.clear()
        for part in (self.sbuf, self.psum, self.sbuf_written, self.psum_written):
            give(part)

    def digest(self, into: Any) -> None:
        """Feed contents and written planes to a hash."""
        for part in (self.sbuf, self.psum, self.sbuf_written, self.psum_written):
            into.update(part)


class Allocation:
    """A named range of HBM; its bytes exist from the first access on.

    `whole` says that every byte is known to be written; then there is no plane to keep or to scan.
    """

    __slots__ = ("_data", "_written", "address", "name", "nbytes", "set_apart", "whole")

    def __init__(self, address: int, nbytes: int, name: str) -> None:
        self.address, self.nbytes, self.name = address, nbytes, name
        self.set_apart: list[tuple[int, int, bytes]] = []   # fresh bytes that are not FRESH
        self._data: Bytes | None = None
        self._written: Plane | None = None
        self.whole = False

    @property
    def touched(self) -> bool:
        """Tell whether anything ever looked at the bytes."""
        return self._data is not None

    @property
    def data(self) -> Bytes:
        """Return the bytes."""
        if self._data is None:
            self._data = self.fresh()
        return self._data

    def fresh(self) -> Bytes:
        """Return bytes as they are before anything is written, for this allocation or for whoever looks."""
        data = _fresh(self.nbytes)
        for offset, nbytes, pattern in self.set_apart:
            _repeat(data[offset:offset + nbytes], pattern)
        return data

    @property
    def written(self) -> Plane:
        """Return which bytes were written."""
        if self._written is None:
            self._written = _blank(self.nbytes)
            if self.whole:
                self._written.fill(True)
        return self._written

    def release(self) -> None:
        """Give the bytes back."""
        give(self._data)
        give(self._written)
        self._data = self._written = None

    def write(self, offset: int, data: Bytes) -> None:
        """Store bytes and note them written."""
        if offset == 0 and data.size == self.nbytes and self._data is None:
            self._data = take(self.nbytes)
            np.copyto(self._data, data)
        else:
            self.data[offset:offset + data.size] = data
        if data.size == self.nbytes:
            self.whole, self._written = True, None
        elif not self.whole:
            self.written[offset:offset + data.size] = True


class DeviceMemory:
    """HBM: named allocations by device address; what lies outside every allocation cannot be touched.

    `ranges` are the (base, size) pairs of the stacks; allocations go to `stack`, then to the others in order.
    """

    def __init__(self, ranges: tuple[tuple[int, int], ...], stack: int = 0, reserve: int = 1 << 20) -> None:
        self.ranges = (*ranges[stack:], *ranges[:stack])
        # Address 0 of a stack is never handed out: a null pointer must not name a tensor.
        self._next = [base + reserve for base, _ in self.ranges]
        self._starts: list[int] = []
        self.allocations: dict[int, Allocation] = {}

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

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that holds an address, None where there is none."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        found = self.allocations[self._starts[index]]
        return found if address < found.address + found.nbytes else None

    def _need(self, address: int, nbytes: int) -> Allocation:
        found = self.find(address)
        if found is None or address + nbytes > found.address + found.nbytes:
            near = (f"{found.name} ends at {found.address + found.nbytes:#x}" if found
                    else "no allocation holds the address")
            raise fault_error("oob", f"HBM access out of bounds: {address:#x}, {nbytes} bytes", space="HBM",
                              address=(address, address + nbytes), expected=near)
        return found

    def view(self, address: int, nbytes: int) -> Bytes:
        """Return the bytes at a device address; FaultError of kind "oob" outside of any one allocation."""
        found = self._need(address, nbytes)
        start = address - found.address
        return found.data[start:start + nbytes]

    def views(self, address: int, nbytes: int) -> tuple[Bytes, Plane | None]:
        """Return the bytes at a device address and which of them were written; None for all of them, for good."""
        found = self._need(address, nbytes)
        start = address - found.address
        return found.data[start:start + nbytes], None if found.whole else found.written[start:start + nbytes]

    def write(self, address: int, data: bytes | Bytes) -> None:
        """Store bytes and note them written."""
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray | memoryview) else data
        found = self._need(address, array.size)
        found.write(address - found.address, array.reshape(-1))

    def set_fresh(self, address: int, nbytes: int, pattern: bytes) -> None:
        """Have bytes hold elements of a pattern until they are written; nothing may have looked at them yet."""
        if nbytes and pattern != bytes([FRESH]):
            found = self._need(address, nbytes)
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

    def release(self) -> None:
        """Give the memories back; nothing may look at them, or at views of them, after that."""
        for allocation in self.allocations.values():
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


def new_hash() -> Any:
    """Return the hash that states are compared by."""
    return hashlib.blake2b(digest_size=16)
