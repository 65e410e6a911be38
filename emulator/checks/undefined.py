"""Undefined bytes of all memories: those of cores by bands of columns, those of tensors byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.checks.bands import Band, Bands
from emulator.checks.mark_rows import (
    MarkRows,
    common,
    distinct,
    folded,
    larger,
    used,
    with_stencil,
)
from emulator.checks.poison import (
    NUMBERS,
    REPEATED,
    Marks,
    Planes,
    lanes_of,
    of_elements,
    unwritten_in,
    walk_of,
)
from emulator.checks.unwritten import direction_of, offset_of
from emulator.checks.written import Written
from emulator.core import Core
from emulator.device import Device
from emulator.dma.transfer import Side
from emulator.extents import Plane
from emulator.renewal import columns_of_runs
from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts

__all__ = ["BandedPlanes"]


class _Box(NamedTuple):
    """Partitions and columns of a memory, from the first to behind the last."""

    first: int
    behind: int
    low: int
    high: int


class BandedPlanes(Planes):
    """The marks of every memory of a device: those of cores by bands, those of tensors by bytes."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._bands: dict[tuple[int, str], Bands] = {}
        self.written: Written | None = None  # what a run wrote up to a note of it, where that is what counts

    @property
    def are_blank(self) -> bool:
        """Return whether nothing in any memory was computed from undefined bytes."""
        return super().are_blank and not any(self._bands.values())

    def may_have_any(self, core: int, places: Iterable[RegionParts]) -> bool:
        """Return whether `may_have` is true of any of some regions."""
        known = self._bands
        if not known:
            return False
        for space, _, first, partitions, low, nbytes, _ in places:
            bands = known.get((core, space))
            if bands is not None and bands.meet(low, low + nbytes, first, partitions):
                return True
        return False

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
        which, rows, number = marks[:3]
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
            bands = self.made(core, space)
        view, pattern = operand.view, operand.regions[0].pattern
        partitions, lanes = view.shape[0], lanes_of(core, operand)
        whole = pattern is None and lanes is None and partitions == bands.partitions
        before = None if whole else bands.between(low, high)
        if before is None:
            if marks is None:
                bands.replace(low, high, None)
                return
            if whole and view[0].flags.c_contiguous:
                rows = marks.rows if marks.stencil is not None else np.ascontiguousarray(marks.rows)
                bands.replace(low, high, Band(marks.which, rows, 0, view.itemsize, *marks[2:]))
                return
            none: Marks = np.zeros((1, high - low), np.int16)
            before = Band(np.zeros(bands.partitions, np.intp), none, number=marks.number)
        first, offset = divmod(offset_of(core, operand), core.memory.bound(space).shape[1])
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

    def bands_of(self, core: int, space: str) -> Bands | None:
        """Return the bands of a core's memory, None where nothing in it ever was computed from undefined bytes."""
        return self._bands.get((core, space))

    def made(self, core: Core, space: str) -> Bands:
        """Return bands for a core's memory that has none."""
        bands = self._bands[core.index, space] = Bands(core.memory.bound(space).shape[0])
        return bands

    # --- sides of transfers: one mark per byte, flat -----------------------------------------------------------------

    def is_defined(self, side: Side) -> bool:
        """Return whether every byte of a side is known to be defined, which takes no look at the bytes."""
        return super().is_defined(side) and self._near(side) is None

    def _is_known(self, core: Core, region: Region) -> bool:
        return super()._is_known(core, region) if self.written is None else self.written.covers(region)

    def _written(self, side: Side) -> Plane:
        if self.written is None or side.space != "SBUF":
            return super()._written(side)
        box = self._box(side)
        which, rows = self.written.rows(side.core, "SBUF", box.first, box.behind - box.first, box.low, box.high)
        return walk_of(rows.take(which, 0), side, self._inside(side, box))

    def missing_in(self, region: Region) -> tuple[Region, int] | None:
        """Return the box around bytes of a region that nothing wrote, and how many they are; None where all were."""
        if self.written is None or region.space == "HBM":
            return unwritten_in(self._device, region)
        return self.written.box(region)

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
        bands = self._bands.get(key) or self.made(self._device.cores[side.core], "SBUF")
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


def _derived(core: Core, operand: Operand, band: Band) -> MarkRows | None:
    """Return the marks of an operand by the band that its columns are of, None where it has none."""
    view, region = operand.view, operand.regions[0]
    which, rows, _, unit, number, stencil, numbers = band
    partitions = view.shape[0]
    if (
        stencil is not None
        and unit == view.itemsize
        and unit * rows.shape[1] == region.nbytes
        and partitions == which.size
        and (direction := direction_of(view, region))
    ):
        if not stencil.is_any:
            return None
        forwards = MarkRows(which, rows, number, stencil, numbers)
        return forwards if direction > 0 else stencil.backwards.marks(*numbers)
    first, offset = divmod(offset_of(core, operand), core.memory.bound(region.space).shape[1])
    found = _largest(band, view, offset - region.byte)
    if found is None:
        return None
    if partitions == which.size:
        return with_stencil(which, found, number)
    derived = used(which[first : first + partitions], found, number)
    return derived if found is derived.rows or derived.rows.any() else None  # in these partitions, too


def _columns(operand: Operand) -> tuple[str, int, int]:
    """Return the memory of an operand, and which of its columns it touches: the same in each of its regions."""
    region = operand.regions[0]
    return region.space, region.byte, region.byte + region.nbytes


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
