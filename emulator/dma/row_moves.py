"""Bind rows of an indirect transfer to memory, all at once: one gather or scatter in place of a copy for each row.

What this does is what the parts do one by one, in order.  Where that cannot be told here, the parts do it
themselves: a row leaves its variable, rows overlap what is read or each other in part, a source was never written and
somebody has to be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dma.moves import element_dtype, unit_of
from emulator.dma.rows import Numbers, Rows
from emulator.dma.sides import bytes_of_allocation, find_side
from emulator.dma.transfer import Dims, Side, Transfer
from emulator.dma.views import Bytes, box_of
from emulator.dtypes import from_float32, to_float32
from emulator.extents import Extent, Plane
from emulator.faults import FaultError
from emulator.memory import ChipMemory
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region, RegionParts

if TYPE_CHECKING:
    from emulator.context import DeviceContext
    from emulator.device_memory import Allocation
    from emulator.renewal import Columns

__all__ = ["bind_rows"]

Array = npt.NDArray[Any]
Move = Callable[[], None]
Index = Numbers | EllipsisType
_MOST = 1 << 62  # bytes of an array that NumPy can count


def bind_rows(device: DeviceContext, transfer: Transfer, rows: Rows, one_by_one: Callable[[], Move]) -> Move | None:
    """Return the function that moves the bytes of all rows, notes what was written and warns of sources never written.

    None where parts have to: `one_by_one` binds those.
    """
    if rows.count < 2:
        return None
    # In this order: tensors are made when they are first looked at.
    source = _laid(device, transfer, rows, 0)
    target = None if source is None else _laid(device, transfer, rows, 1)
    if source is None or target is None or not _are_apart(device, source, target):
        return None
    turns: list[tuple[Index, Index]] = [(source.at, target.at)]
    written = target.extent
    if isinstance(target.at, EllipsisType):
        if not _nests(target.side.dims, target.side.run):
            return None
    else:
        ordered = np.sort(target.at)
        gaps = np.diff(ordered)
        if not gaps.all():  # several rows go to one place
            turns = [_taken(source.at, target.at, each) for each in _turns(target.at, rows.adds)]
            ordered = ordered[np.append(True, gaps > 0)]
            gaps = np.diff(ordered)
        gap = int(gaps.min()) if gaps.size else 0
        assert target.rows is not None
        if not _nests(target.rows.dims, target.rows.run, gap, int(ordered[-1] - ordered[0])):
            return None
        if written is not None:
            written = target.rows.only(ordered, gap if gaps.size and (gaps == gap).all() else 0)
    reads = [each for each in (source.extent, target.extent if rows.adds else None) if each is not None]
    carry = _carry(rows, source.array, target.array, turns)

    def move() -> None:
        if device.checking:
            for extent in reads:
                if not extent.full and extent.missing():
                    one_by_one()()
                    return
        carry()
        if written is not None and not written.full:
            written.mark()

    return move


def _carry(rows: Rows, data: Array, into: Array, turns: list[tuple[Index, Index]]) -> Move:
    """Return what moves the bytes, turn by turn; elements meet in fp32, as in `emulator.dma.moves`."""
    have, want = (side.dtype for side in rows.sides)
    if rows.adds:

        def add() -> None:
            for come, go in turns:
                with np.errstate(all="ignore"):
                    total = np.array(to_float32(into[go], want))
                    np.add(total, to_float32(data[come], have), out=total)
                into[go] = from_float32(total, want).reshape(total.shape)

        return add
    if have == want:

        def copy() -> None:
            for come, go in turns:
                into[go] = data[come]

        return copy

    def cast() -> None:
        for come, go in turns:
            values = data[come]
            into[go] = from_float32(to_float32(values, have), want).reshape(values.shape)

    return cast


class _Laid(NamedTuple):
    """One side of all rows in memory: those of `array` that are `at`, all of it where rows follow each other evenly.

    `side` are then all rows, else the form of one, and `rows` where they lie. `extent` is as that of `find_side`.
    """

    array: Array
    at: Index
    side: Side
    extent: Extent | None
    rows: _RowsExtent | None


class _RowsExtent(Extent):
    """The written plane under rows of one form that begin at some bytes of a memory."""

    __slots__ = ("_memory", "_offsets", "_start", "box", "dims", "run")

    def __init__(
        self, memory: Allocation | ChipMemory, start: int, offsets: Numbers, dims: Dims, run: int, box: Region
    ) -> None:
        super().__init__(memory.notes, offsets.size * prod([count for _, count in dims]) * run)
        self._memory, self._start, self._offsets = memory, start, offsets
        self.dims, self.run, self.box = dims, run, box

    def only(self, offsets: Numbers, gap: int) -> Extent:
        """Return the extent of rows at other places in the box; `gap` lies between each two, 0 where that differs."""
        if not gap:
            return _RowsExtent(self._memory, self._start, offsets, self.dims, self.run, self.box)
        dims = ((gap, offsets.size), *self.dims)
        if isinstance(self._memory, ChipMemory):
            return self._memory.strided_extent(self._start + int(offsets[0]), dims, self.run)
        return self._memory.extent(self._start + int(offsets[0]), dims, self.run)

    def _plane(self) -> Plane:
        plane = self._memory.plane("SBUF") if isinstance(self._memory, ChipMemory) else self._memory.plane
        return _windows(plane, self._start, self._offsets, self.dims, self.run, np.dtype(np.bool_))

    def view(self) -> Plane:
        """Return a copy of the part of the plane, without what is noted."""
        found: Plane = self._plane()[self._offsets]
        return found

    def fill(self) -> None:
        """Write the plane."""
        self._plane()[self._offsets] = True

    def freshen(self) -> None:
        """Have all bytes of the memory fresh that are not written."""
        self._memory.freshen()

    def columns(self, space: str) -> Columns | None:
        """Return the columns of "SBUF" or "PSUM" that are touched."""
        return (self.box.byte, self.box.end) if self.box.space == space else (0, 0)

    def hull(self) -> RegionParts:
        """Return what rows lie in."""
        return self.box

    def is_blank(self) -> bool:
        """Return whether nothing was ever written to an allocation."""
        return not isinstance(self._memory, ChipMemory) and self._memory.is_blank


def _windows(memory: Array, start: int, offsets: Numbers, dims: Dims, run: int, dtype: np.dtype[Any]) -> Array:
    """Return a view with a row of one form at every byte from `start` on as far as rows begin."""
    size = dtype.itemsize
    shape = (int(offsets.max()) + 1, *[count for _, count in dims], run // size)
    return np.ndarray(shape, dtype, memory, start, (1, *[step for step, _ in dims], size))


def _laid(device: DeviceContext, transfer: Transfer, rows: Rows, which: int) -> _Laid | None:
    """Return where a side of all rows lies; None where one of them leaves its variable or its memory."""
    side, operand = rows.form[which], ("src", "dst")[which]
    same = not rows.adds and rows.sides[0].dtype == rows.sides[1].dtype
    dtype = None if same else side.dtype
    even = None if which == rows.moving else rows.even
    if even is not None:
        if not _splits_alike(device, even, side):
            return None
        try:
            found = find_side(device, transfer, even, operand, dtype)
        except FaultError:  # of the row that is the first to leave the memory
            return None
        return None if found is None else _Laid(found[0], ..., even, found[1], None)
    place = _place(device, side, rows.places(which), operand)
    if place is None:
        return None
    memory, owner, offsets, dims, box = place
    start = int(offsets.min())
    index = offsets - start
    if (int(index.max()) + 1) * side.nbytes > _MOST:
        return None
    array = _windows(memory, start, index, dims, side.run, unit_of(side.run) if same else element_dtype(side.dtype))
    under = _RowsExtent(owner, start, index, dims, side.run, box)
    known = not isinstance(owner, ChipMemory) and owner.whole
    return _Laid(array[..., 0] if same else array, index, side, None if known else under, under)


def _place(
    device: DeviceContext, side: Side, places: npt.NDArray[Any], operand: str
) -> tuple[Bytes, Allocation | ChipMemory, Numbers, Dims, Region] | None:
    """Return the bytes that hold rows, whose they are, where in them rows begin, the steps of a row, and their box."""
    low, high = int(places.min()), int(places.max())
    if side.space == "SBUF":
        if side.core >= len(device.cores) or places.dtype == object:
            return None
        owner = device.cores[side.core].memory
        memory = owner.laid("SBUF")
        partitions, width = memory.shape
        partition, byte = np.divmod(places, SBUF_PARTITION_STRIDE)
        first, least = int(partition.min()), int(byte.min())
        box, steps = _box(side.dims, side.run, least, width)
        other, others = _box(side.dims, side.run, int(byte.max()), width)
        # What splits alike at both ends does so between them.
        if steps != others:
            return None
        box = Region("SBUF", side.core, first + box.first, int(partition.max()) - first + box.partitions, box.byte,
                     other.end - box.byte)  # fmt: skip
        if box.first < 0 or box.behind > partitions or box.byte < 0 or box.end > width:
            return None
        dims = tuple([(over * width + by, count) for (over, by), (_, count) in zip(steps, side.dims, strict=True)])
        return memory, owner, partition * width + byte, dims, box
    if side.limit is None:
        return None
    _, start, room = side.limit
    reach, behind = side.span
    reach, behind = low - start + reach - side.address, high - start + behind - side.address
    allocation = device.hbm.allocations.get(start)
    if reach < 0 or behind > room or allocation is None or allocation.nbytes < room:
        return None
    box = Region("HBM", 0, 0, 1, reach, behind - reach)
    offsets = (places - start).astype(np.int64)
    return bytes_of_allocation(allocation, operand), allocation, offsets, side.dims, box


@lru_cache(1 << 10)
def _box(dims: Dims, run: int, byte: int, width: int) -> tuple[Region, tuple[tuple[int, int], ...]]:
    """Return box and steps of a side in SBUF that begins at a byte of partition 0."""
    return box_of(Side("SBUF", 0, byte, dims, run, Dtype.UNKNOWN), width)


def _splits_alike(device: DeviceContext, even: Side, row: Side) -> bool:
    """Return whether steps inside a row of SBUF mean the same in the first row and in the last one."""
    step, count = even.dims[0]
    if even.space != "SBUF" or not row.dims or not step % SBUF_PARTITION_STRIDE:
        return True
    width = device.arch.sbuf_bytes.whole
    first, last = row.address, row.address + step * (count - 1)
    one, other = (_box(row.dims, row.run, at % SBUF_PARTITION_STRIDE, width)[1] for at in (first, last))
    return one == other


def _are_apart(device: DeviceContext, source: _Laid, target: _Laid) -> bool:
    """Return whether nothing that is read is written, so that the order of rows does not matter."""
    if source.side.space != target.side.space:
        return True
    if source.side.space == "HBM":
        return not np.may_share_memory(source.array, target.array)
    if source.side.core != target.side.core:
        return True
    width = device.arch.sbuf_bytes.whole
    one, other = (box_of(each.side, width)[0] if each.rows is None else each.rows.box for each in (source, target))
    return one.behind <= other.first or other.behind <= one.first or one.end <= other.byte or other.end <= one.byte


@lru_cache(1 << 10)
def _nests(dims: Dims, run: int, gap: int = 0, reach: int = 0) -> bool:
    """Return whether no two runs share a byte, those of rows included that begin `gap` bytes apart or more.

    The last row begins `reach` bytes behind the first one.  Steps that interleave count as sharing.
    """
    steps = [(abs(step), abs(step) * (count - 1)) for step, count in dims if count > 1]
    if reach:
        steps.append((gap, reach))
    for step, whole in sorted(steps):
        if step < run:
            return False
        run += whole
    return True


def _turns(index: Numbers, adds: bool) -> Iterator[Numbers]:
    """Yield which rows go where none has gone before, then those that go to the same places, and so on.

    Only the last that goes to a place counts where rows do not add up.
    """
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])
    if not adds:
        yield order[np.append(begins[1:], True)]
        return
    at = np.arange(index.size)
    turn = at - np.maximum.accumulate(np.where(begins, at, 0))
    for number in range(int(turn.max()) + 1):
        yield order[turn == number]


def _taken(source: Index, target: Numbers, chosen: Numbers) -> tuple[Index, Index]:
    return chosen if isinstance(source, EllipsisType) else source[chosen], target[chosen]
