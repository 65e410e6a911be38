"""Undefined bytes of all memories: those of cores by bands of columns, those of tensors byte by byte."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.checks.bands import Band, Bands
from emulator.checks.mark_rows import MarkRows, Stencil, Which, common, distinct, folded, larger, stencil_of, used
from emulator.checks.poison import (
    NUMBERS,
    REPEATED,
    WORDS,
    Marks,
    Planes,
    box_of_missing,
    lanes_of,
    of_elements,
    unwritten_in,
    walk_of,
)
from emulator.core import Core
from emulator.device import Device
from emulator.dma.transfer import Side
from emulator.renewal import columns_of_runs
from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts

__all__ = ["BandedPlanes", "Unwritten", "is_row"]

_KEPT = 1 << 7
_KNOWN = 1 << 13  # bytes of rows, each kind once, of which is kept what they lack


class _Box(NamedTuple):
    """Partitions and columns of a memory, from the first to behind the last."""

    first: int
    behind: int
    low: int
    high: int


class _Lack(NamedTuple):
    """Which elements of rows have bytes that nothing wrote; the box around those bytes, and how many they are."""

    stencil: Stencil
    box: tuple[Region, int] | None


@lru_cache(_KEPT)
def _lack(which: bytes, written: bytes, kinds: int, size: int) -> _Lack:
    """Return what rows of elements of so many bytes lack, by whether each of these is written."""
    partitions: Which = np.frombuffer(which, np.intp)
    bytewise = np.frombuffer(written, np.bool_).reshape(kinds, -1)
    lacking = np.logical_or.reduce(~bytewise.reshape(kinds, -1, size), 2)
    around = Region("", 0, 0, partitions.size, 0, bytewise.shape[1])
    return _Lack(stencil_of(partitions, lacking.astype(np.int16)), box_of_missing(around, ~bytewise, partitions))


class Unwritten:
    """Which elements of an operand have bytes that nothing wrote, each kind of row once."""

    __slots__ = ("_direction", "_first", "_lack", "_operand", "_plane", "_rows", "_which", "_words")

    def __init__(self, core: Core, operand: Operand) -> None:
        memory, view, region = core.memory, operand.view, operand.regions[0]
        memory.notes.settle()
        self._operand = operand
        self._plane = plane = memory.plane(region.space)
        which, lanes = np.arange(view.shape[0]), lanes_of(core, operand)
        self._lack: _Lack | None = None
        self._rows: npt.NDArray[np.bool_] | None = None
        self._direction = direction = _direction(view, region)
        begin = _offset(core, operand)
        if direction:
            self._first = begin // plane.shape[1]
            rows = plane[self._first : self._first + which.size, region.byte : region.end]
            if lanes is not None:  # the others are asked for by nobody
                which, rows = np.maximum(np.cumsum(lanes) - 1, 0), rows[lanes]
            which, rows = distinct(which, rows)
            if lanes is None and rows.size <= _KNOWN:
                # Tiles are alike, and so is what was not written of them.
                self._lack = _lack(which.tobytes(), rows.tobytes(), rows.shape[0], view.itemsize)
                return
            self._which, self._rows = which, np.ascontiguousarray(rows)
            self._words = self._rows.view(WORDS[view.itemsize])[:, ::direction]
            return
        # What is written of an element's bytes, as one number.
        words = np.ndarray(view.shape, WORDS[view.itemsize], plane, begin, view.strides)
        if lanes is not None:
            which, words = np.maximum(np.cumsum(lanes) - 1, 0), words[lanes]
        self._which, self._words = distinct(which, words.reshape(words.shape[0], -1))

    @property
    def is_any(self) -> bool:
        """Return whether there surely is such an element."""
        return self._lack is not None and self._lack.stencil.is_any

    def marks(self, number: int) -> MarkRows:
        """Return marks of the operand: a number for each element that has such a byte."""
        if self._lack is not None:
            stencil = self._lack.stencil
            return (stencil if self._direction > 0 else stencil.backwards).marks(number)
        written = self._words.dtype.type(int.from_bytes(b"\1" * self._words.itemsize, "little"))
        return MarkRows(self._which, np.multiply(self._words != written, np.int16(number), dtype=np.int16), number)

    def boxes(self, device: Device) -> list[tuple[Region, int]]:
        """Return the box around such bytes of each region that has some, and how many they are."""
        regions = self._operand.regions
        if self._lack is not None:
            if self._lack.box is None:
                return []
            (_, _, first, partitions, low, nbytes, _), count = self._lack.box
            space, core, top, _, byte, _, _ = regions[0]
            return [(Region(space, core, top + first, partitions, byte + low, nbytes), count)]
        if self._rows is not None:
            missing = ~self._rows
            found = []
            for region in regions:
                kinds = self._which[region.first - self._first :][: region.partitions]
                there, kinds = np.unique(kinds, return_inverse=True)
                found.append(box_of_missing(region, missing[there], kinds))
            return [box for box in found if box is not None]
        if len(regions) > 1:  # which leave out partitions of the view
            return [box for region in regions if (box := unwritten_in(device, region)) is not None]
        region, which = regions[0], self._which
        one = np.zeros(self._words.shape[0], np.intp)  # a partition that has it, for each row
        one[which] = np.arange(which.size)
        box = box_of_missing(region, ~self._plane[region.first + one, region.byte : region.end], which)
        return [] if box is None else [box]


class BandedPlanes(Planes):
    """The marks of every memory of a device: those of cores by bands, those of tensors by bytes."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._bands: dict[tuple[int, str], Bands] = {}

    @property
    def are_blank(self) -> bool:
        """Return whether nothing in any memory was computed from undefined bytes."""
        return super().are_blank and not any(self._bands.values())

    @property
    def has_bands(self) -> bool:
        """Return whether anything in a core's memory ever was computed from undefined bytes."""
        return bool(self._bands)

    def may_have(self, core: int, region: RegionParts) -> bool:
        """Return whether anything in the rows and columns of a region may be computed from undefined bytes."""
        space, _, first, partitions, low, nbytes, _ = region
        bands = self._bands.get((core, space))
        return bands is not None and bands.meet(low, low + nbytes, first, partitions)

    # --- operands of words: one mark per element ---------------------------------------------------------------------

    def look(self, core: Core, operand: Operand, fresh: MarkRows | None = None) -> MarkRows | None:
        """Return the marks of an operand, None where all is defined; `fresh` are those of what nothing ever wrote."""
        if not operand.regions:
            return None
        marks = fresh
        space, low, high = _columns(operand)
        bands = self._bands.get((core.index, space))
        band = None if bands is None else bands.between(low, high)
        if band is not None:
            derived = _derived(core, operand, band)
            if derived is not None:
                marks = derived if marks is None else larger(marks, derived)
        if marks is None:
            return None
        lanes = lanes_of(core, operand)
        if lanes is None:
            return marks
        none: Marks = np.zeros((1, marks.rows.shape[1]), np.int16)
        which, rows, number, _ = marks
        return used(np.where(lanes, which, rows.shape[0]), np.concatenate((rows, none)), number)

    def put(self, core: Core, operand: Operand, marks: MarkRows | None) -> None:
        """Give an operand marks, None for "all defined"."""
        if not operand.regions:
            return
        if marks is not None and not marks.is_any:
            marks = None
        space, low, high = _columns(operand)
        bands = self._bands.get((core.index, space))
        if marks is None and not any(self.may_have(core.index, region) for region in operand.regions):
            return
        if bands is None:
            bands = self._made(core, space)
        view, pattern = operand.view, operand.regions[0].pattern
        partitions, lanes = view.shape[0], lanes_of(core, operand)
        whole = pattern is None and lanes is None and partitions == bands.partitions
        before = None if whole else bands.between(low, high)
        if before is None:
            if marks is None:
                bands.replace(low, high, None)
                return
            if whole and view[0].flags.c_contiguous:
                rows = np.ascontiguousarray(marks.rows)
                bands.replace(low, high, Band(marks.which, rows, 0, view.itemsize, marks.number, marks.stencil))
                return
            none: Marks = np.zeros((1, high - low), np.int16)
            before = Band(np.zeros(bands.partitions, np.intp), none, number=marks.number)
        first, offset = divmod(_offset(core, operand), core.memory.bound(space).shape[1])
        given = np.zeros(bands.partitions, np.intp)  # for each partition its row of the marks counted from 1, or 0
        mine: Any = 1 if marks is None else marks.which + 1
        given[first : first + partitions] = mine if lanes is None else mine * lanes
        count = 1 if marks is None else marks.rows.shape[0]
        which, (old, new) = common(((before.which, before.rows.shape[0]), (given, count + 1)))
        before = before.by_bytes()
        rows = before.rows[:, before.start : before.start + high - low].take(old, 0)
        hit = np.flatnonzero(new)
        beside = _of_elements(rows, view, offset - low)
        if marks is None:
            beside[hit] = 0
        else:
            shaped = marks.rows.reshape(count, *view.shape[1:])[new[hit] - 1]
            if beside.ndim == shaped.ndim:
                # the mark in each of the bytes of an element, which `beside` has as one number
                beside[hit] = shaped.astype(beside.dtype) * REPEATED[beside.itemsize]
            else:
                beside[hit] = shaped[..., None]
        number = before.number if marks is None or before.number == marks.number else 0
        bands.replace(low, high, Band(*distinct(which, rows), number=number) if rows.any() else None)

    def _made(self, core: Core, space: str) -> Bands:
        bands = self._bands[core.index, space] = Bands(core.memory.bound(space).shape[0])
        return bands

    # --- sides of transfers: one mark per byte, flat -----------------------------------------------------------------

    def is_defined(self, side: Side) -> bool:
        """Return whether every byte of a side is known to be defined, which takes no look at the bytes."""
        return super().is_defined(side) and self._near(side) is None

    def read_side(self, side: Side, number: int) -> Marks | None:
        """Return the marks of a side in the order of its walk; with `number` 0 what nothing wrote has none."""
        marks = super().read_side(side, number)
        near = self._near(side)
        if near is not None:
            bands, box = near
            plane = bands.spread(box.low, box.high)[box.first : box.behind]
            derived = walk_of(np.ascontiguousarray(plane), side, self._inside(side, box)).reshape(-1)
            if derived.any():
                marks = derived if marks is None else np.maximum(marks, derived)
        return marks

    def write_side(self, side: Side, marks: Marks | None) -> None:
        """Give a side marks, None for "all defined"."""
        if side.space != "SBUF":
            super().write_side(side, marks)
            return
        if marks is not None and not marks.any():
            marks = None
        if marks is None and self._near(side) is None:
            return
        key, box = (side.core, "SBUF"), self._box(side)
        bands = self._bands.get(key) or self._made(self._device.cores[side.core], "SBUF")
        plane = bands.spread(box.low, box.high)
        view = walk_of(plane[box.first :], side, self._inside(side, box))
        view[...] = 0 if marks is None else marks.reshape(view.shape)
        bands.replace(box.low, box.high, Band(*folded(plane)[:2]) if plane.any() else None)

    def _box(self, side: Side) -> _Box:
        """Return the box around a side in SBUF, all of it where that is not clear."""
        partitions, width = self._device.cores[side.core].memory.bound("SBUF").shape
        offset, steps = self._offset(side)
        dims = tuple((step, count) for step, (_, count) in zip(steps, side.dims, strict=True))
        columns = columns_of_runs(offset, dims, side.run, width)
        if columns is None:
            return _Box(0, partitions, 0, width)
        first = last = offset // width
        for step, count in dims:
            if not step % width:
                reach = step // width * (count - 1)
                first, last = (first + reach, last) if reach < 0 else (first, last + reach)
        return _Box(first, last + 1, *columns)

    def _near(self, side: Side) -> tuple[Bands, _Box] | None:
        """Return the bands of a side's memory and the box around it, None where nothing in that has a mark."""
        bands = self._bands.get((side.core, "SBUF")) if side.space == "SBUF" else None
        if not bands:
            return None
        box = self._box(side)
        return (bands, box) if bands.meet(box.low, box.high, box.first, box.behind - box.first) else None

    def _inside(self, side: Side, box: _Box) -> tuple[int, tuple[int, ...]]:
        """Return offset and strides of a side in an array of the bytes of its box."""
        width, wide = self._device.cores[side.core].memory.bound("SBUF").shape[1], box.high - box.low
        offset, steps = self._offset(side)
        if wide == width:
            return offset - box.first * width, steps
        partition, byte = divmod(offset, width)
        return (partition - box.first) * wide + byte - box.low, tuple(
            [step if step % width else step // width * wide for step in steps]
        )


def is_row(operand: Operand) -> bool:
    """Return whether an operand is a short row of bytes in each of some partitions."""
    regions = operand.regions
    return len(regions) == 1 and regions[0].pattern is None and regions[0].nbytes <= _KNOWN


def _direction(view: npt.NDArray[Any], region: Region) -> int:
    """Return 1 where each partition of a view is all of its region, element by element, -1 backwards; 0 else."""
    row = view[0]
    if region.pattern is not None or row.nbytes != region.nbytes:
        return 0
    if row.flags.c_contiguous:
        return 1
    return -1 if row.shape[-1] == row.size and row.strides[-1] == -row.itemsize else 0


def _derived(core: Core, operand: Operand, band: Band) -> MarkRows | None:
    """Return the marks of an operand by the band that its columns are of, None where it has none."""
    view, region = operand.view, operand.regions[0]
    which, rows, _, unit, number, stencil = band
    partitions = view.shape[0]
    if (
        stencil is not None
        and unit == view.itemsize
        and unit * rows.shape[1] == region.nbytes
        and partitions == which.size
        and (direction := _direction(view, region))
    ):
        if not stencil.is_any:
            return None
        return MarkRows(which, rows, number, stencil) if direction > 0 else stencil.backwards.marks(number)
    first, offset = divmod(_offset(core, operand), core.memory.bound(region.space).shape[1])
    found = _largest(band, view, offset - region.byte)
    if found is None:
        return None
    if partitions == which.size:
        if number and found.size <= _KNOWN:
            return stencil_of(which, (found != 0).astype(np.int16)).marks(number)
        return MarkRows(which, found, number)
    derived = used(which[first : first + partitions], found, number)
    return derived if found is derived.rows or derived.rows.any() else None  # in these partitions, too


def _columns(operand: Operand) -> tuple[str, int, int]:
    """Return the memory of an operand, and which of its columns it touches: the same in each of its regions."""
    region = operand.regions[0]
    return region.space, region.byte, region.byte + region.nbytes


def _offset(core: Core, operand: Operand) -> int:
    """Return the byte of a memory where the view of an operand begins."""
    memory = core.memory.bound(operand.regions[0].space)
    begin: int = operand.view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return begin


def _of_elements(rows: Marks, view: npt.NDArray[Any], offset: int) -> npt.NDArray[Any]:
    """Return the elements of a view in rows of marks of its columns, those of an element's bytes as one number.

    They are the last axis where no number is so long.
    """
    kind, size = NUMBERS.get(view.itemsize), rows.itemsize
    shape = rows.shape[0], *view.shape[1:]
    strides = rows.strides[0], *[stride * size for stride in view.strides[1:]]
    if kind is not None:
        return np.ndarray(shape, kind, rows, offset * size, strides)
    return np.ndarray((*shape, view.itemsize), rows.dtype, rows, offset * size, (*strides, size))


def _largest(band: Band, view: npt.NDArray[Any], offset: int) -> Marks | None:
    """Return the largest mark of each element's bytes of a view, by row of a band; None where there is none."""
    unit, rows, at = band.unit, band.rows, band.start + offset
    if unit == view.itemsize and not at % unit:
        begin, steps = at // unit, view.strides[1:]
        if view[0].flags.c_contiguous:
            marks = rows[:, begin : begin + view.size // view.shape[0]]
            return marks if marks.any() else None
        if not any(step % unit for step in steps):
            size = rows.itemsize
            strides = rows.strides[0], *[step // unit * size for step in steps]
            marks = np.ndarray((rows.shape[0], *view.shape[1:]), np.int16, rows, begin * size, strides)
            return marks.reshape(rows.shape[0], -1) if marks.any() else None
    numbers = _of_elements(band.by_bytes().rows, view, at)
    if not numbers.any():
        return None
    return of_elements(np.ascontiguousarray(numbers).view(np.int16), view.itemsize).reshape(rows.shape[0], -1)
