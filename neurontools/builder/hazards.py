"""Which earlier accesses an access has to wait for: overlapping bytes, one of the two a write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, product
from typing import Any

from formats.named_tuple import NamedTuple
from formats.regions import Shape
from neurontools.builder.areas import Way, lie_apart, repeated, step_of

__all__ = ["NOWHERE", "Memory", "Needs", "Record", "Region", "record_of"]

Record = list[Any]
"""An access: what it touches, low, high, first and last of `builder.areas.Area`, its shape and the step of that.

Then whether it writes, by which actor, as which unit of that, how a transfer walks its bytes and is cut into
descriptors, None for words and for transfers of which that is not known; whether a later one stands for it, and the
last look that found it.

One is made for every operand of every operation and asked of hundreds of neighbours: a list is made in a third of the
time of an object and taken apart at once.
"""
_LOW, _HIGH, _SHAPE, _DEAD, _STAMP = 0, 1, 4, 10, 11


def record_of(first: int, last: int, start: int, shape: Shape, write: bool, actor: int, unit: int,
              way: Way | None = None) -> Record:  # fmt: skip
    """Return an access to partitions `first` to `last` - 1, from the byte of the first element on."""
    low = start + shape.shift
    return [low, low + shape.reach, first, last, shape, step_of(shape), write, actor, unit, way, False, 0]


NOWHERE = 1 << 62, -1  # bounds of a region in which nothing was accessed yet
_FEW = 8  # records that are taken apart without a look at their bytes first
_FLAT = 100  # records that one list holds before they are filed in cells

_stamps = count(1)  # one per look into cells


class Needs:
    """Last unit of each actor that has to be complete: `data` for what is read, `order` for what is overwritten."""

    __slots__ = ("data", "order")

    def __init__(self) -> None:
        self.data: dict[int, int] = {}
        self.order: dict[int, int] = {}

    def clear(self) -> Needs:
        """Forget all of it for the next word, and return this: every operation has some."""
        if self.data:
            self.data.clear()
        if self.order:
            self.order.clear()
        return self


class _Grid(NamedTuple):
    """Where records of one kind of shape are filed: by their bytes, and by their place inside a step they repeat in.

    A cell spans more than a record's reach, and more than the part that repeats, so each record lies in at most four.
    `step` is 0 for shapes that are filed by bytes alone.
    """

    step: int
    byte_shift: int
    place_shift: int

    def cells(self, low: int, high: int, inside: int) -> Iterator[tuple[int, int]]:
        """Return the cells of bytes `low` to `high` - 1 of which `inside` bytes from `low` on repeat in each step."""
        buckets = range(low >> self.byte_shift, (high - 1 >> self.byte_shift) + 1)
        return product(buckets, self._places(low, inside))

    def most(self, low: int, high: int, inside: int) -> int:
        """Return an upper bound of the number of those cells."""
        places = min(inside, self.step) >> self.place_shift
        return ((high - 1 >> self.byte_shift) - (low >> self.byte_shift) + 1) * (places + 2)

    def _places(self, low: int, inside: int) -> Iterable[int]:
        step, shift = self.step, self.place_shift
        if not step:
            return (0,)
        if inside >= step:
            return range((step - 1 >> shift) + 1)
        place = low % step
        behind = place + inside
        if behind <= step:
            return range(place >> shift, (behind - 1 >> shift) + 1)
        return {*range(place >> shift, (step - 1 >> shift) + 1), *range((behind - step - 1 >> shift) + 1)}


_Cells = dict[tuple[int, int], list[Record]]


@lru_cache(maxsize=1 << 12)
def _grid_of(shape: Shape) -> _Grid:
    """Return the grid of a shape; patterns that repeat in the step of their innermost jump are told apart inside it."""
    step = shape.steps[-1][0] if shape.steps else 0
    inside = repeated(shape, step) if step else 0
    # a power of two above the part that repeats
    shift = inside.bit_length()
    # one cell would hold the whole step: places tell nothing apart
    if step - 1 >> shift <= 0:
        return _Grid(0, shape.reach.bit_length(), 0)
    return _Grid(step, shape.reach.bit_length(), shift)


@lru_cache(maxsize=1 << 14)
def _repeated(shape: Shape, step: int) -> int:
    return repeated(shape, step) if step else 0


class Region:
    """Accesses to one piece of memory that a later access may still have to be ordered with.

    Nothing is accessed outside bytes `low` to `high` - 1 of it, though those it inherits may reach farther. One that is
    made with `NOWHERE` inherits nothing, and spans what was accessed so far: tensors are often written from one end to
    the other, and who touches bytes behind all others need not look at any of them.
    """

    __slots__ = ("grids", "high", "low", "records")

    def __init__(self, low: int = -1, high: int = 1 << 62) -> None:
        self.low, self.high = low, high
        self.records: list[Record] = []
        self.grids: dict[_Grid, _Cells] | None = None

    def access(self, record: Record, needs: Needs) -> None:
        """Add to `needs` what the access must wait for, and keep it for those to come."""
        # The innermost loop of the builder: everything it asks for is in locals, and the cheap questions come first.
        low, high, first, last, shape, step, write, actor, unit, way, _, _ = record
        if low < self.low or high > self.high:
            apart = low >= self.high or high <= self.low
            self.low, self.high = min(low, self.low), max(high, self.high)
            if apart:
                self.adopt((record,))
                return
        numbered: Iterable[tuple[int, Record]]
        if self.grids is not None:
            numbered = enumerate(self._near(low, high, shape))
        else:
            found = self.records
            if not found:
                found.append(record)
                return
            numbered = enumerate(found)
            if len(found) > _FEW:
                numbered = [(number, one) for number, one in numbered if one[0] < high and low < one[1]]
        into = needs.order if write else needs.data
        gone: list[int] | None = None
        for number, other in numbered:
            its_low, its_high, its_first, its_last, its_shape, its_step, its_write, its, its_unit, its_way, dead, _ = (
                other
            )
            if (
                its_low >= high
                or low >= its_high
                or its_first >= last
                or first >= its_last
                or not (write or its_write or its == actor)
            ):
                continue
            if dead:
                if gone is None:
                    gone = [number]
                else:
                    gone.append(number)
                continue
            if its_shape is shape and its_low == low and its_first == first and its_last == last:
                whole = strictly = True  # as many: what is read is what was written
            elif not step and not its_step:
                if its_write and not write:  # as most: who reads what was written stands for nothing
                    if its_unit > into.get(its, -1) and (its != actor or its_unit != unit):
                        into[its] = its_unit
                    continue
                covers = first <= its_first and last >= its_last
                strictly = covers and low <= its_low and high >= its_high
                # Nobody accesses what lies outside the region, so that it counts as covered.
                whole = strictly or (
                    covers and (low <= its_low or low <= self.low) and (high >= its_high or high >= self.high)
                )
            else:
                strictly = low <= its_low and high >= its_high and first <= its_first and last >= its_last
                if step > 0 and step == its_step:
                    # Columns of one row-major tensor: apart where their places in the row are.
                    distance = (its_low - low) % step
                    if distance >= shape.run and step - distance >= its_shape.run:
                        continue
                if step:
                    strictly = strictly and low == its_low and high == its_high and shape == its_shape
                whole = strictly
                # The cheap answers first: what is covered overlaps, and a read waits for no other.
                if not whole and (not (write or its_write) or lie_apart(shape, its_shape, its_low - low)):
                    continue
            if its != actor:
                if (its_write or write) and (its not in into or into[its] < its_unit):
                    into[its] = its_unit
            # Two transfers of one queue that bring each byte through the same ring stay in order: rings of different
            # DMA engines do not wait for one another. Source: hardware.md 4.1.
            elif (
                (its_write or write)
                and its_unit != unit
                and not (write and way is not None and way == its_way and low == its_low and first == its_first)
                and (its not in into or into[its] < its_unit)
            ):
                into[its] = its_unit
            # What this access covers has nothing more to say: whoever follows has to wait for this one anyway. Reads of
            # one queue that are cut differently are on different DMA engines: a later write may be in order with one.
            if whole and (write or (not its_write and (its != actor or way == its_way))):
                other[_DEAD] = strictly
                if gone is None:
                    gone = [number]
                else:
                    gone.append(number)
        if self.grids is not None:
            self._file(record, self.grids)
            return
        found = self.records
        if gone is not None:
            for number in reversed(gone):
                del found[number]
        found.append(record)
        if len(found) > _FLAT:
            self.adopt(())

    def within(self, low: int, high: int) -> list[Record]:
        """Return the accesses that touch bytes `low` to `high` - 1."""
        found = self.records if self.grids is None else self._near(low, high, Shape(0, high - low, high - low, ()))
        return [one for one in found if not one[_DEAD] and one[_LOW] < high and one[_HIGH] > low]

    def adopt(self, records: Sequence[Record]) -> None:
        """Take over accesses to the same bytes, from regions that had them before."""
        if self.grids is None:
            self.records += records
            if len(self.records) <= _FLAT:
                return
            self.grids = {}
            records, self.records = self.records, []
        for record in records:
            self._file(record, self.grids)

    def _file(self, record: Record, grids: dict[_Grid, _Cells]) -> None:
        record[_STAMP] = 0
        low, shape = record[_LOW], record[_SHAPE]
        grid = _grid_of(shape)
        cells = grids.get(grid)
        if cells is None:
            cells = grids[grid] = {}
        for key in grid.cells(low, record[_HIGH], _repeated(shape, grid.step)):
            cell = cells.get(key)
            if cell is None:
                cells[key] = [record]
            else:
                cell.append(record)

    def _near(self, low: int, high: int, shape: Shape) -> list[Record]:
        """Return the records of every cell that the bytes touch, each once."""
        stamp = next(_stamps)
        found: list[Record] = []
        for grid, cells in (self.grids or {}).items():
            inside = _repeated(shape, grid.step)
            few = grid.most(low, high, inside) < len(cells)
            for key in grid.cells(low, high, inside) if few else list(cells):
                cell = cells.get(key)
                if cell is None:
                    continue
                dead = False
                for record in cell:
                    if record[_DEAD]:
                        dead = True
                    elif record[_STAMP] != stamp:
                        record[_STAMP] = stamp
                        found.append(record)
                if dead:
                    cell[:] = [record for record in cell if not record[_DEAD]]
                    if not cell:
                        del cells[key]
        return found


class Memory:
    """SBUF or PSUM of one core: which region the bytes of a partition belong to now.

    A tile that takes over bytes inherits the accesses of their former owners, so that reuse of an address is ordered.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: dict[int, tuple[int, Region]] = {}  # by first byte: the one behind the last, and whose they are
        self._end = 0  # the byte behind all that have an owner

    def claim(self, low: int, high: int) -> Region:
        """Give bytes `low` to `high` - 1 to a new owner; return its region."""
        piece = self._pieces.get(low)
        if piece is not None and piece[0] == high:
            region = piece[1]
            # All of one owner's bytes, as tiles of one size take them over: its accesses are what the new one inherits.
            if region.low == low and region.high == high and region.grids is None:
                return region
        region = Region(low, high)
        self.give(low, high, region)
        return region

    def give(self, low: int, high: int, region: Region) -> None:
        """Give bytes `low` to `high` - 1 to a region."""
        starts, pieces = self._starts, self._pieces
        if low >= self._end:
            starts.append(low)
            pieces[low] = high, region
            self._end = high
            return
        self._end = max(self._end, high)
        begin = bisect_right(starts, low)
        if begin and pieces[starts[begin - 1]][0] > low:
            begin -= 1
        end = bisect_left(starts, high)
        replaced = [(start, *pieces.pop(start)) for start in starts[begin:end]]
        inherited: list[Record] = []
        owners: list[Region] = []
        for _, _, owner in replaced:
            if owner is not region and owner not in owners:
                owners.append(owner)
                inherited += owner.within(low, high)
        kept = [low]
        pieces[low] = high, region
        if replaced:
            start, _, owner = replaced[0]
            if start < low:
                pieces[start] = low, owner
                kept.insert(0, start)
            _, stop, owner = replaced[-1]
            if stop > high:
                pieces[high] = stop, owner
                kept.append(high)
        starts[begin:end] = kept
        if inherited:
            region.adopt(inherited)
