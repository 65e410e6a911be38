"""Which earlier accesses an access has to wait for: overlapping bytes, one of the two a write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, product

from formats.named_tuple import NamedTuple
from formats.regions import Shape
from neurontools.builder.areas import Area, overlap, repeated

__all__ = ["Memory", "Needs", "Region"]

_FLAT = 100  # records that one list holds before they are filed in cells

_stamps = count(1)  # one per look into cells


class Needs:
    """Last unit of each actor that has to be complete: `data` for what is read, `order` for what is overwritten."""

    __slots__ = ("data", "order")

    def __init__(self) -> None:
        self.data: dict[int, int] = {}
        self.order: dict[int, int] = {}


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


_Cells = dict[tuple[int, int], list[Area]]


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

    Nothing is accessed outside bytes `low` to `high` - 1 of it, though those it inherits may reach farther.
    """

    __slots__ = ("grids", "high", "low", "records")

    def __init__(self, low: int = -1, high: int = 1 << 62) -> None:
        self.low, self.high = low, high
        self.records: list[Area] = []
        self.grids: dict[_Grid, _Cells] | None = None

    def access(self, area: Area, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Add to `needs` what the access must wait for, and keep its area for those to come."""
        # The innermost loop of the builder: everything it asks for is in locals, and the cheap questions come first.
        low, high, first, last, plain = area.low, area.high, area.first, area.last, area.plain
        found = self.records if self.grids is None else self._near(low, high, area.shape)
        into = needs.order if write else needs.data
        kept = []
        for other in found:
            its = other.actor
            its_write = other.write
            if (
                not (write or its_write or its == actor)
                or other.low >= high
                or low >= other.high
                or other.first >= last
                or first >= other.last
            ):
                kept.append(other)
                continue
            if other.dead:
                continue
            strictly = low <= other.low and high >= other.high and first <= other.first and last >= other.last
            if strictly and plain:
                whole = True
            elif plain and other.plain:
                # Nobody accesses what lies outside the region, so that it counts as covered.
                whole = strictly or (
                    first <= other.first
                    and last >= other.last
                    and (low <= other.low or low <= self.low)
                    and (high >= other.high or high >= self.high)
                )
            else:
                step = area.step
                if step and step == other.step:
                    # Columns of one row-major tensor: apart where their places in the row are.
                    distance = (other.low - low) % step
                    if distance >= area.shape.run and step - distance >= other.shape.run:
                        kept.append(other)
                        continue
                whole = strictly = strictly and area.contains(other)
                # the cheap answer first: what is covered overlaps
                if not whole and not overlap(area, other):
                    kept.append(other)
                    continue
            if its != actor:
                if its_write or write:
                    its_unit = other.unit
                    if its not in into or into[its] < its_unit:
                        into[its] = its_unit
            elif (its_write or write) and not (write and area.way is not None and _in_ring(area, other)):
                its_unit = other.unit
                if its_unit != unit and (its not in into or into[its] < its_unit):
                    into[its] = its_unit
            # What this access covers has nothing more to say: whoever follows has to wait for this one anyway. Reads of
            # one queue that are cut differently are on different DMA engines: a later write may be in order with one.
            if whole and (write or (not its_write and (its != actor or area.way == other.way))):
                other.dead = strictly
            else:
                kept.append(other)
        area.actor = actor
        area.unit = unit
        area.write = write
        if self.grids is not None:
            self._file(area, self.grids)
            return
        kept.append(area)
        self.records = kept
        if len(kept) > _FLAT:
            self.adopt(())

    def within(self, low: int, high: int) -> list[Area]:
        """Return the accesses that touch bytes `low` to `high` - 1."""
        found = self.records if self.grids is None else self._near(low, high, Shape(0, high - low, high - low, ()))
        return [one for one in found if not one.dead and one.low < high and one.high > low]

    def adopt(self, records: Sequence[Area]) -> None:
        """Take over accesses to the same bytes, from regions that had them before."""
        if self.grids is None:
            self.records += records
            if len(self.records) <= _FLAT:
                return
            self.grids = {}
            records, self.records = self.records, []
        for record in records:
            self._file(record, self.grids)

    def _file(self, area: Area, grids: dict[_Grid, _Cells]) -> None:
        area.stamp = 0
        grid = _grid_of(area.shape)
        cells = grids.get(grid)
        if cells is None:
            cells = grids[grid] = {}
        for key in grid.cells(area.low, area.high, _repeated(area.shape, grid.step)):
            cell = cells.get(key)
            if cell is None:
                cells[key] = [area]
            else:
                cell.append(area)

    def _near(self, low: int, high: int, shape: Shape) -> list[Area]:
        """Return the records of every cell that the bytes touch, each once."""
        stamp = next(_stamps)
        found: list[Area] = []
        for grid, cells in (self.grids or {}).items():
            inside = _repeated(shape, grid.step)
            few = grid.most(low, high, inside) < len(cells)
            for key in grid.cells(low, high, inside) if few else list(cells):
                cell = cells.get(key)
                if cell is None:
                    continue
                dead = False
                for record in cell:
                    if record.dead:
                        dead = True
                    elif record.stamp != stamp:
                        record.stamp = stamp
                        found.append(record)
                if dead:
                    cell[:] = [record for record in cell if not record.dead]
                    if not cell:
                        del cells[key]
        return found


def _in_ring(area: Area, other: Area) -> bool:
    """Return whether two transfers of one queue bring each byte through the same ring, which keeps their order.

    Rings of different DMA engines do not wait for one another. Source: hardware.md 4.1.
    """
    return area.way == other.way and area.low == other.low and area.first == other.first


class Memory:
    """SBUF or PSUM of one core: which region the bytes of a partition belong to now.

    A tile that takes over bytes inherits the accesses of their former owners, so that reuse of an address is ordered.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, Region]] = []  # disjoint, ascending

    def claim(self, low: int, high: int, region: Region) -> None:
        """Give bytes `low` to `high` - 1 to a region."""
        begin = bisect_right(self._starts, low)
        if begin and self._pieces[begin - 1][1] > low:
            begin -= 1
            start, stop, owner = self._pieces[begin]
            if start == low and stop == high:  # all of one owner's bytes, as tiles of one size take them over
                self._pieces[begin] = (low, high, region)
                if owner is not region:
                    region.adopt(owner.within(low, high))
                return
        end = bisect_left(self._starts, high)
        replaced = self._pieces[begin:end]
        if not replaced:
            self._pieces.insert(begin, (low, high, region))
            self._starts.insert(begin, low)
            return
        inherited: list[Area] = []
        owners: list[Region] = []
        for _, _, owner in replaced:
            if owner is not region and owner not in owners:
                owners.append(owner)
                inherited += owner.within(low, high)
        pieces = [(low, high, region)]
        first, last = replaced[0], replaced[-1]
        if first[0] < low:
            pieces.insert(0, (first[0], low, first[2]))
        if last[1] > high:
            pieces.append((high, last[1], last[2]))
        self._pieces[begin:end] = pieces
        self._starts[begin:end] = [piece[0] for piece in pieces]
        region.adopt(inherited)
