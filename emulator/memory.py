"""SBUF and PSUM of a core, each with a plane of written bytes."""

from __future__ import annotations

import hashlib
from math import gcd, prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from emulator.buffers import blank, drop, filled, renew
from emulator.extents import Extent, Notes, Plane, merged, plane_of_runs, region_of_runs
from emulator.memory_state import Blocks, ChipState
from emulator.renewal import Columns, columns_of_runs, fill_columns
from formats.regions import Region, RegionParts, Steps

__all__ = ["FRESH", "Bytes", "ChipMemory", "fresh_bytes", "new_hash", "repeat"]

Bytes = npt.NDArray[np.uint8]
# What fresh memory holds: NaN in every floating-point type, so that results of bytes never written stand out.
FRESH = 0xFF
# Extents kept; more distinct ones than this and the cache starts anew, which only costs scanning again.
_EXTENT_LIMIT = 1 << 16
_LONGEST = 8  # bytes of a number
_MOST_LEFT = 4096  # extents that programs before have left; more of them are filled at once
_BLOCK = 512  # bytes of a partition that a snapshot keeps or leaves out together


def fresh_bytes(nbytes: int) -> Bytes:
    """Return bytes as they are before anything is written."""
    return filled(nbytes, FRESH)


def repeat(into: Bytes, pattern: bytes) -> None:
    """Fill bytes, whose last dimension lies together, with elements of a pattern."""
    into.view(f"V{len(pattern)}")[...] = np.void(pattern)


def _blank(nbytes: int) -> Plane:
    return blank(nbytes).view(np.bool_)


class _ChipExtent(Extent):
    """The written plane under one region of a core's memory."""

    __slots__ = ("_memory", "_region", "_unit")

    def __init__(self, memory: ChipMemory, region: Region) -> None:
        steps, run = region.pattern or ((), region.nbytes)
        super().__init__(memory.notes, region.partitions * prod([count for _, count in steps]) * run)
        self._memory, self._region = memory, region
        # NumPy goes through runs of a few bytes one by one: as long a number as all runs are whole ones of.
        self._unit = 1 if region.pattern is None else gcd(_LONGEST, region.byte, run, *[step for step, _ in steps])

    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""
        region = self._region
        plane = self._memory.plane(region.space)
        offset, shape, strides = region.walk(plane.shape[1])
        return np.ndarray(shape, np.bool_, plane, offset, strides)

    def _numbers(self) -> npt.NDArray[Any]:
        """Return the part of the plane as numbers of several bytes, each of which is 1 or 0."""
        unit, plane = self._unit, self._memory.plane(self._region.space)
        offset, (*counts, run), (*strides, _) = self._region.walk(plane.shape[1])
        return np.ndarray((*counts, run // unit), f"u{unit}", plane, offset, (*strides, unit))

    def fill(self) -> None:
        """Write the part of the plane."""
        if self._unit == 1:
            super().fill()
        else:
            self._numbers()[...] = int.from_bytes(b"\1" * self._unit, "little")

    def count(self) -> int:
        """Return how many bytes of the part of the plane are written, without what is noted."""
        return super().count() if self._unit == 1 else int(np.bitwise_count(self._numbers()).sum())

    def freshen(self) -> None:
        """Have all bytes of the memory fresh that are not written."""
        self._memory.freshen()

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
    """The written plane under runs of bytes of SBUF that are no region."""

    __slots__ = ("_dims", "_memory", "_offset", "_run")

    def __init__(self, memory: ChipMemory, offset: int, dims: Steps, run: int) -> None:
        super().__init__(memory.notes, prod([count for _, count in dims]) * run)
        self._memory, self._offset, self._dims, self._run = memory, offset, dims, run

    def view(self) -> Plane:
        """Return the part of the plane, without what is noted."""
        return plane_of_runs(self._memory.plane("SBUF"), self._offset, self._dims, self._run)

    def freshen(self) -> None:
        """Have all bytes of the memory fresh that are not written."""
        self._memory.freshen()

    def columns(self, space: str) -> Columns | None:
        """Return the columns of "SBUF" or "PSUM" that are touched, None where they are not clear."""
        if space != "SBUF":
            return 0, 0
        return columns_of_runs(self._offset, self._dims, self._run, self._memory.laid("SBUF").shape[1])


class _Left:
    """What programs have left in a memory: extents that are written, those that are in the plane, and bytes set apart.

    `all` says that any bytes may be left, `planes` that the planes hold anything.
    """

    __slots__ = ("all", "apart", "noted", "planes", "settled")

    def __init__(self) -> None:
        self.noted: set[Extent] = set()
        self.settled: set[Extent] = set()
        self.apart: list[tuple[str, int, int]] = []  # memory and columns
        self.all = self.planes = False

    def columns(self, space: str) -> list[Columns] | None:
        """Return which columns of "SBUF" or "PSUM" hold anything, None for all of them."""
        found = [extent.columns(space) for extent in self.noted]
        columns = [each for each in found if each is not None]
        if self.all or len(columns) < len(found):
            return None
        return columns + [(low, high) for where, low, high in self.apart if where == space]


class ChipMemory:
    """SBUF and PSUM of one core: (128, bytes) arrays, partition-major, beside boolean planes of the same shape."""

    NOT_STATE: ClassVar = {
        **dict.fromkeys(("core", "partitions", "psum_bank"), "a figure of the chip"),
        "extents": "a cache, which `restore` makes forget",
        "notes": "in the planes for whoever asks for them",
        **dict.fromkeys(("sides", "tiles"), "a cache of extents, which `restore` makes forget"),
        "set_apart": "the program",
        "unaccounted": "what `renew` has to fill again",
        "_left": "of programs before, and gone as soon as anybody looks",
    }

    def __init__(self, core: int, partitions: int, sbuf_bytes: int, psum_bytes: int, psum_bank: int) -> None:
        self.core, self.partitions, self.psum_bank = core, partitions, psum_bank
        self._sbuf: Bytes = fresh_bytes(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self._psum: Bytes = fresh_bytes(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self._sbuf_written: Plane = _blank(partitions * sbuf_bytes).reshape(partitions, sbuf_bytes)
        self._psum_written: Plane = _blank(partitions * psum_bytes).reshape(partitions, psum_bytes)
        self.notes = Notes(keeps=True)
        self.unaccounted = False  # whether bytes may be written that no extent tells of
        self._left: _Left | None = None
        self.extents: dict[RegionParts, Extent] = {}  # by region; ask `extent_of` for others
        self.set_apart: list[tuple[str, int, int, int, int, bytes]] = []  # fresh bytes that are not FRESH
        # Of transfers, by address, dimensions and run: offset and strides in SBUF, and the plane if it is one region.
        self.sides: dict[tuple[Any, ...], tuple[tuple[int, tuple[int, ...]], Extent | None]] = {}
        # And by element type as well, None for whole runs: the elements there.
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
        if self._left is not None:
            self.freshen()
        return self._sbuf if space == "SBUF" else self._psum

    def laid(self, space: str) -> Bytes:
        """Return the bytes of "SBUF" or "PSUM" for whoever makes views that are not looked at before they are written.

        Who asks an extent how many bytes are `missing` finds those fresh.
        """
        return self._sbuf if space == "SBUF" else self._psum

    def set_fresh(self, space: str, first: int, partitions: int, byte: int, nbytes: int, pattern: bytes) -> None:
        """Fill a region that nothing has written with elements of a pattern."""
        self.set_apart.append((space, first, partitions, byte, nbytes, pattern))
        repeat(self.bound(space)[first : first + partitions, byte : byte + nbytes], pattern)

    def make_fresh(self) -> None:
        """Bring all bytes back to what they were before anything was written; the planes stay."""
        self.sbuf.fill(FRESH)
        self.psum.fill(FRESH)
        for space, first, partitions, byte, nbytes, pattern in self.set_apart:
            repeat(self.array(space)[first : first + partitions, byte : byte + nbytes], pattern)

    def renew(self) -> None:
        """Be as a new memory, but for bytes that `freshen` fills: it comes before anybody can look at them.

        Until then the bytes of the program before are there for those who have views of them.
        """
        left = self._left = self._left or _Left()
        notes = self.notes
        left.noted.update(notes.extents)
        left.settled.update(notes.settled)
        left.apart += [(space, byte, byte + nbytes) for space, _, _, byte, nbytes, _ in self.set_apart]
        left.all = left.all or self.unaccounted
        left.planes = left.planes or self.unaccounted or bool(left.settled)
        self.set_apart.clear()
        notes.clear()
        self.unaccounted = False
        if left.all or len(left.noted) + len(left.settled) + len(left.apart) > _MOST_LEFT:
            self.freshen()

    def freshen(self) -> None:
        """Fill what programs before have left, where nothing has been written since.

        The pages that were written stay where extents tell which bytes of them were.
        """
        left = self._left
        if left is None:
            return
        if left.planes:
            self._clear_planes(left)
        self._left = None
        written = self.notes.all_written
        if written and not left.all and not left.apart and left.noted.issubset(written):
            return
        self.notes.settle()
        for space in ("SBUF", "PSUM"):
            data, plane, columns = self.laid(space), self.plane(space), left.columns(space)
            if not written and columns is None:
                renew(data, FRESH)
            else:
                columns = [(0, data.shape[1])] if columns is None else columns
                fill_columns(data, columns, FRESH, plane if written else None)

    def _clear_planes(self, left: _Left) -> None:
        """Clear what programs before have left in the planes; nothing of this one is there."""
        settled, left.settled, left.planes = left.settled, set(), False
        left.noted |= settled
        for space in ("SBUF", "PSUM"):
            plane = self._sbuf_written if space == "SBUF" else self._psum_written
            columns = [extent.columns(space) for extent in settled]
            if left.all or None in columns:
                renew(plane, 0)
            else:
                fill_columns(plane, [each for each in columns if each], 0)

    def written(self, space: str) -> Plane:
        """Return the written plane of "SBUF" or "PSUM", to do anything with."""
        self.notes.settle()
        self.unaccounted = True
        return self.plane(space)

    def plane(self, space: str) -> Plane:
        """Return the written plane of "SBUF" or "PSUM" without what is noted and not in it yet."""
        left = self._left
        if left is not None and left.planes:
            self._clear_planes(left)
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
                self.extents.clear()
            if region.pattern is not None:
                # The same bytes, walked in another order or cut differently, are written with these.
                steps, run = merged(*region.pattern)
                alike = region._replace(pattern=(steps, run) if steps else None)
                found = None if alike == region else self.extent_of(alike)
            found = self.extents[region] = found or _ChipExtent(self, region)
        return found

    def strided_extent(self, offset: int, dims: Steps, run: int) -> Extent:
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
        """Return how many regions were asked for."""
        return len(self.extents)

    def forget(self) -> None:
        """Drop what is known about written regions; call it after planes were changed back (time travel)."""
        self.notes.settle()
        self.notes.doubt()

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


def new_hash() -> Any:
    """Return the hash that states are compared by."""
    return hashlib.blake2b(digest_size=16)
