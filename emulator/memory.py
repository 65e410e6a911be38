"""Physical memories: SBUF and PSUM of a core, HBM of a device, each with a plane of written bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort
from collections.abc import Iterable
from math import prod
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from emulator.buffers import blank, drop, filled, give, renew, take
from emulator.errors import LoadError
from emulator.extents import Extent, Notes, Plane, bounds_of_runs, merged, region_of_runs
from emulator.faults import fault_error
from emulator.large_arrays import Pages, own_copy, pages_of
from emulator.memory_state import AllocationState, Blocks, ChipState, DeviceMemoryState
from emulator.renewal import Columns, columns_of_runs, fill_columns
from formats.regions import Region, RegionParts

__all__ = [
    "FRESH",
    "Allocation",
    "ChipMemory",
    "DeviceMemory",
    "new_hash",
]

Bytes = npt.NDArray[np.uint8]
# What fresh memory holds: NaN in every floating-point type, so that results of bytes never written stand out.
FRESH = 0xFF
# Extents kept; more distinct ones than this and the cache starts anew, which only costs scanning again.
_EXTENT_LIMIT = 1 << 16
_BLOCK = 512  # bytes of a partition that a snapshot keeps or leaves out together


def _fresh(nbytes: int) -> Bytes:
    return filled(nbytes, FRESH)


def _repeat(into: Bytes, pattern: bytes) -> None:
    """Fill bytes, whose last dimension lies together, with elements of a pattern."""
    into.view(f"V{len(pattern)}")[...] = np.void(pattern)


def _blank(nbytes: int) -> Plane:
    return blank(nbytes).view(np.bool_)


class _ChipExtent(Extent):
    """The written plane under one region of a core's memory."""

    __slots__ = ("_memory", "_region")

    def __init__(self, memory: ChipMemory, region: Region) -> None:
        steps, run = region.pattern or ((), region.nbytes)
        super().__init__(memory.notes, region.partitions * prod([count for _, count in steps]) * run)
        self._memory, self._region = memory, region

    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""
        region = self._region
        plane = self._memory.plane(region.space)
        offset, shape, strides = region.walk(plane.shape[1])
        return np.ndarray(shape, np.bool_, plane, offset, strides)

    def columns(self, space: str) -> Columns | None:
        """Return the columns of "SBUF" or "PSUM" that are touched."""
        region = self._region
        return (region.byte, region.byte + region.nbytes) if region.space == space else (0, 0)

    def hull(self) -> RegionParts:
        """Return the region and what its pattern leaves out."""
        return self._region

    def is_gapless(self) -> bool:
        """Return whether no pattern leaves bytes out."""
        return self._region.pattern is None


class _StridedExtent(Extent):
    """The written plane under runs of bytes of SBUF or of an allocation."""

    __slots__ = ("_dims", "_memory", "_offset", "_run")

    def __init__(
        self, memory: ChipMemory | Allocation, offset: int, dims: tuple[tuple[int, int], ...], run: int
    ) -> None:
        super().__init__(memory.notes, prod([count for _, count in dims]) * run)
        self._memory, self._offset, self._dims, self._run = memory, offset, dims, run

    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""
        memory = self._memory
        plane = memory.plane("SBUF") if isinstance(memory, ChipMemory) else memory.plane
        shape = (*[count for _, count in self._dims], self._run)
        return np.ndarray(shape, np.bool_, plane, self._offset, (*[step for step, _ in self._dims], 1))

    def columns(self, space: str) -> Columns | None:
        """Return the columns of "SBUF" or "PSUM" that are touched, None where they are not clear."""
        memory = self._memory
        if space != "SBUF" or isinstance(memory, Allocation):
            return 0, 0
        return columns_of_runs(self._offset, self._dims, self._run, memory.bound("SBUF").shape[1])

    def hull(self) -> RegionParts | None:
        """Return the range of bytes in an allocation, as a region of one partition; None in SBUF."""
        if isinstance(self._memory, ChipMemory):
            return None  # what could be one is none of these
        return "HBM", 0, 0, 1, *bounds_of_runs(self._offset, self._dims, self._run), None

    def is_gapless(self) -> bool:
        """Return whether the runs lie side by side."""
        return not merged(self._dims, self._run)[0]

    def is_blank(self) -> bool:
        """Return whether nothing was ever written to an allocation."""
        return isinstance(self._memory, Allocation) and self._memory.is_blank


class ChipMemory:
    """SBUF and PSUM of one core: (128, bytes) arrays, partition-major, beside boolean planes of the same shape."""

    NOT_STATE: ClassVar = {
        **dict.fromkeys(("core", "partitions", "psum_bank"), "a figure of the chip"),
        **dict.fromkeys(("extents", "_dropped"), "a cache, which `restore` makes forget"),
        "notes": "in the planes for whoever asks for them",
        **dict.fromkeys(("sides", "tiles"), "a cache of extents, which `restore` makes forget"),
        "set_apart": "the program",
        "unaccounted": "what `renew` has to fill again",
    }

    def __init__(self, core: int, partitions: int, sbuf_bytes: int, psum_bytes: int, psum_bank: int) -> None:
        self.core, self.partitions, self.psum_bank = core, partitions, psum_bank
        self._sbuf: Bytes = _fresh(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self._psum: Bytes = _fresh(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self._sbuf_written: Plane = _blank(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self._psum_written: Plane = _blank(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self.notes = Notes(keeps=True)
        self.unaccounted = False  # whether bytes may be written that no extent tells of
        self.extents: dict[RegionParts, Extent] = {}  # by region; ask `extent_of` for others
        self._dropped: WeakSet[Extent] = WeakSet()  # words may still hold them
        self.set_apart: list[tuple[str, int, int, int, int, bytes]] = []  # fresh bytes that are not FRESH
        # Of transfers, by address, dimensions and run: offset and strides in SBUF, and the plane if it is one region.
        self.sides: dict[tuple[Any, ...], tuple[tuple[int, tuple[int, ...]], Extent | None]] = {}
        # And by element type as well: the elements there.
        self.tiles: dict[tuple[Any, ...], tuple[npt.NDArray[Any], Extent | None]] = {}

    @property
    def sbuf(self) -> Bytes:
        """Return the bytes of SBUF."""
        return self.array("SBUF")

    @property
    def psum(self) -> Bytes:
        """Return the bytes of PSUM."""
        return self.array("PSUM")

    @property
    def sbuf_written(self) -> Plane:
        """Return which bytes of SBUF were written."""
        return self.written("SBUF")

    @property
    def psum_written(self) -> Plane:
        """Return which bytes of PSUM were written."""
        return self.written("PSUM")

    def array(self, space: str) -> Bytes:
        """Return the bytes of "SBUF" or "PSUM", to do anything with."""
        self.unaccounted = True
        return self.bound(space)

    def bound(self, space: str) -> Bytes:
        """Return the bytes of "SBUF" or "PSUM" for whoever marks the extents of all that it writes, or writes nothing.

        Who fails on the way from bytes to extent says so in `unaccounted`.
        """
        return self._sbuf if space == "SBUF" else self._psum

    def set_fresh(self, space: str, first: int, partitions: int, byte: int, nbytes: int, pattern: bytes) -> None:
        """Fill a region that nothing has written with elements of a pattern."""
        self.set_apart.append((space, first, partitions, byte, nbytes, pattern))
        _repeat(self.bound(space)[first : first + partitions, byte : byte + nbytes], pattern)

    def make_fresh(self) -> None:
        """Bring all bytes back to what they were before anything was written; the planes stay."""
        self.sbuf.fill(FRESH)
        self.psum.fill(FRESH)
        for space, first, partitions, byte, nbytes, pattern in self.set_apart:
            _repeat(self.array(space)[first : first + partitions, byte : byte + nbytes], pattern)

    def renew(self) -> None:
        """Be as a new memory; what is known of regions stays, that they are written does not.

        The pages that were written stay, too, where extents tell which bytes of them were.
        """
        notes = self.notes
        for space in ("SBUF", "PSUM"):
            data, plane = self.bound(space), self.plane(space)
            noted = [extent.columns(space) for extent in notes.extents]
            settled = [extent.columns(space) for extent in notes.settled]
            if self.unaccounted or None in noted or None in settled:
                renew(data, FRESH)
                renew(plane, 0)
                continue
            apart = [(byte, byte + nbytes) for where, _, _, byte, nbytes, _ in self.set_apart if where == space]
            fill_columns(data, [each for each in (*noted, *settled, *apart) if each], FRESH)
            fill_columns(plane, [each for each in settled if each], 0)
        self.set_apart.clear()
        notes.clear()
        self.unaccounted = False
        self.forget()

    def written(self, space: str) -> Plane:
        """Return the written plane of "SBUF" or "PSUM", to do anything with."""
        self.notes.settle()
        self.unaccounted = True
        return self.plane(space)

    def plane(self, space: str) -> Plane:
        """Return the written plane of "SBUF" or "PSUM" without what is noted and not in it yet."""
        return self._sbuf_written if space == "SBUF" else self._psum_written

    def written_bytes(self, space: str) -> int:
        """Return how many bytes of "SBUF" or "PSUM" were written."""
        return int(np.count_nonzero(self.written(space)))

    def extent(self, region: Region) -> Extent:
        """Return the written plane under a region, which must be in bounds."""
        return self.extents.get(region) or self.extent_of(region)

    def extent_of(self, parts: RegionParts) -> Extent:
        """Return the written plane under a region that may not have been asked for before."""
        found = self.extents.get(parts)
        if found is None:
            region = Region(*parts)
            if len(self.extents) >= _EXTENT_LIMIT:
                self._dropped.update(self.extents.values())
                self.extents.clear()
            if region.pattern is not None:
                # The same bytes, walked in another order or cut differently, are written with these.
                steps, run = merged(*region.pattern)
                alike = region._replace(pattern=(steps, run) if steps else None)
                found = None if alike == region else self.extent_of(alike)
            found = self.extents[region] = found or _ChipExtent(self, region)
        return found

    def strided_extent(self, offset: int, dims: tuple[tuple[int, int], ...], run: int) -> Extent:
        """Return the written plane under runs of bytes of SBUF from byte `offset` of its array on; (step, count)."""
        found = region_of_runs(offset, dims, run, self._sbuf.shape[1])
        return _StridedExtent(self, offset, dims, run) if found is None else self.extent_of(("SBUF", self.core, *found))

    def mark_written(self, space: str, p0: int, p1: int, byte0: int, byte1: int) -> None:
        """Note that bytes byte0 to byte1 - 1 of partitions p0 to p1 - 1 are written."""
        self.extent(Region(space, self.core, p0, p1 - p0, byte0, byte1 - byte0)).mark()

    def check_written(self, space: str, p0: int, p1: int, byte0: int, byte1: int) -> int:
        """Return how many of these bytes were never written."""
        return self.extent(Region(space, self.core, p0, p1 - p0, byte0, byte1 - byte0)).missing()

    @property
    def known_regions(self) -> int:
        """Return how many regions were asked for, as far as somebody may still hold their extents."""
        return len(self.extents) + len(self._dropped)

    def forget(self) -> None:
        """Drop what is known about written regions; call it after planes were changed back (time travel)."""
        self.notes.settle()
        self.notes.ranges.clear()
        for extent in (*self.extents.values(), *self._dropped):
            extent.full = not extent.size

    def snapshot(self) -> ChipState:
        """Return a copy of what was written, for `restore`."""
        return ChipState(*self._blocks("SBUF"), *self._blocks("PSUM"))

    def fresh_state(self) -> ChipState:
        """Return the state before anything was written, without a look at the memory."""
        nothing = Blocks(np.zeros(0, np.intp), np.zeros((self.partitions, 0, _BLOCK), np.uint8))
        planes = Blocks(nothing.numbers, np.zeros((self.partitions, 0, _BLOCK // 8), np.uint8))
        return ChipState(nothing, planes, nothing, planes)

    def _blocks(self, space: str) -> tuple[Blocks, Blocks]:
        data, plane = _cut(self.array(space)), _cut(self.written(space))
        columns = np.bitwise_or.reduce(self.written(space).view(np.uint8), axis=0)
        numbers = np.flatnonzero(columns.reshape(-1, _BLOCK).any(axis=1))
        return Blocks(numbers, data[:, numbers]), Blocks(numbers, np.packbits(plane[:, numbers], axis=2))

    def restore(self, state: ChipState) -> None:
        """Return to a state that `snapshot` gave."""
        self.make_fresh()
        for space, held, planes in (("SBUF", state.sbuf, state.sbuf_written), ("PSUM", state.psum, state.psum_written)):
            self.written(space).fill(False)
            data, plane = _cut(self.array(space)), _cut(self.written(space))
            data[:, held.numbers] = held.data
            plane[:, planes.numbers] = np.unpackbits(planes.data, axis=2).view(np.bool_)
        self.forget()

    def known_written(self, region: Region) -> bool:
        """Return whether a region is known to be written whole, without looking at the plane."""
        found = self.extents.get(region)
        return (found is not None and found.full) or self.notes.cover(region)

    def release(self) -> None:
        """Give the memories back; nothing may look at them, or at views of them, after that."""
        self.extents.clear()
        self.sides.clear()
        self.tiles.clear()
        self.notes.clear()
        for part in (self._sbuf, self._psum, self._sbuf_written, self._psum_written):
            drop(part)

    def digest(self, into: Any) -> None:
        """Feed contents and written planes to a hash."""
        for part in (self.sbuf, self.psum, self.sbuf_written, self.psum_written):
            into.update(part)


def _cut(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of a memory by partition and block."""
    return array.reshape(array.shape[0], -1, _BLOCK)


class Allocation:
    """A named range of HBM; its bytes exist from the first access on.

    `whole` says that every byte is known to be written; then there is no plane to keep or to scan.
    """

    __slots__ = ("_data", "_written", "address", "lent", "name", "nbytes", "notes", "pages", "set_apart", "whole")
    NOT_STATE: ClassVar = {
        **dict.fromkeys(("address", "name", "nbytes", "set_apart"), "the program"),
        "lent": "whose the bytes are",
        "pages": "where they are",
        "notes": "in the plane for whoever asks for it",
        "whole": "in the state as `written` None",
    }

    def __init__(self, address: int, nbytes: int, name: str) -> None:
        self.address, self.nbytes, self.name = address, nbytes, name
        self.set_apart: list[tuple[int, int, bytes]] = []  # fresh bytes that are not FRESH
        self._data: Bytes | None = None
        self._written: Plane | None = None
        self.notes = Notes()
        self.whole = False
        self.lent = False
        self.pages: Pages | None = None  # of bytes in a file that nothing has changed: `data` cannot be written then

    def lend(self, data: Bytes) -> None:
        """Let the bytes be those of the caller from here on, all of them written; they are never given back."""
        if data.size != self.nbytes:
            raise ValueError(f"{self.name} has {self.nbytes} bytes, not {data.size}")
        self._data, self._written, self.whole, self.lent = data, None, True, True
        self.pages = pages_of(data)
        if self.pages is not None:
            self._data = self.pages.read_only()
        self.notes.clear()

    @property
    def touched(self) -> bool:
        """Return whether anything ever looked at the bytes."""
        return self._data is not None

    @property
    def writable(self) -> Bytes:
        """Return the bytes for whoever changes them."""
        if self.pages is not None:
            self._data, self.pages = self.pages.writable(), None
        return self.data

    @property
    def data(self) -> Bytes:
        """Return the bytes for whoever looks at them."""
        if self._data is None:
            self._data = self.fresh()
        return self._data

    def fresh(self) -> Bytes:
        """Return bytes as they are before anything is written, for this allocation or for whoever looks."""
        data = _fresh(self.nbytes)
        for offset, nbytes, pattern in self.set_apart:
            _repeat(data[offset : offset + nbytes], pattern)
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
            self._written = _blank(self.nbytes)
            if self.whole:
                self._written.fill(True)
        return self._written

    @property
    def is_blank(self) -> bool:
        """Return whether nothing was ever written."""
        return self._written is None and not self.whole and not self.notes.extents

    def extent(self, offset: int, dims: tuple[tuple[int, int], ...], run: int) -> Extent:
        """Return the written plane under runs of bytes, outermost dimension first; (step, count) of each."""
        return _StridedExtent(self, offset, dims, run)

    @property
    def written_bytes(self) -> int:
        """Return how many bytes were written."""
        if not self.touched:
            return 0
        return self.nbytes if self.whole else int(np.count_nonzero(self.written))

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

    def untouch(self) -> None:
        """Be as before anything looked at the bytes."""
        self._data, self._written, self.whole, self.pages = None, None, False, None
        self.notes.clear()

    def doubt(self) -> None:
        """Keep a plane again, of bytes that nothing wrote: not all of them are known to be written any more."""
        self.whole, self._written = False, None
        self.notes.clear()

    def release(self) -> None:
        """Give the bytes back."""
        if not self.lent:
            give(self._data)
        give(self._written)
        self._data = self._written = self.pages = None
        self.notes.clear()

    def write(self, offset: int, data: Bytes) -> None:
        """Store bytes and note them written."""
        if offset == 0 and data.size == self.nbytes and self._data is None:
            shared = own_copy(data)
            if shared is not None:
                self.lend(shared)
                return
            self._data = take(self.nbytes)
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
        "paged": "where bytes are",
    }

    def __init__(self, ranges: tuple[tuple[int, int], ...], stack: int = 0, reserve: int = 1 << 20) -> None:
        self.ranges = (*ranges[stack:], *ranges[:stack])
        # Address 0 of a stack is never handed out: a null pointer must not name a tensor.
        self._next = [base + reserve for base, _ in self.ranges]
        self._starts: list[int] = []
        self.allocations: dict[int, Allocation] = {}
        self.paged = False  # whether bytes of an allocation lie in a file

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
