"""Which operations of a trace share bytes that one of them writes, whatever engines they run on."""

from __future__ import annotations

from itertools import count
from typing import Any

from formats.regions import Shape
from neurontools.builder.areas import lie_apart, step_of
from neurontools.builder.cells import Grid, grid_of, repeated_in

__all__ = ["Conflicts", "Record", "record_of"]

Record = list[Any]
"""An access: what it touches, low, high, first and last of `builder.areas.Area`, its shape and the step of that.

Then whether it writes, by which operation, whether a later one stands for it, and the last look that found it.
"""
_LOW, _HIGH, _SHAPE, _DEAD, _STAMP = 0, 1, 4, 8, 9


def record_of(first: int, last: int, start: int, shape: Shape, write: bool, number: int) -> Record:
    """Return an operation's access to partitions `first` to `last` - 1, from the byte of the first element on."""
    low = start + shape.shift
    return [low, low + shape.reach, first, last, shape, step_of(shape), write, number, False, 0]


_FEW = 8  # records that are taken apart without a look at their bytes first
_FLAT = 100  # records that one list holds before they are filed in cells

_stamps = count(1)  # one per look into cells


class _Kept:
    """Accesses of one kind, reads or writes: in a list, and filed in cells once they are many."""

    __slots__ = ("grids", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.grids: dict[Grid, dict[tuple[int, int], list[Record]]] | None = None

    def near(self, low: int, high: int, shape: Shape) -> list[Record]:
        """Return those that may share bytes, each once."""
        if self.grids is not None:
            return self._in_cells(low, high, shape, self.grids)
        found = self.records
        if len(found) > _FEW:
            return [one for one in found if one[_LOW] < high and low < one[_HIGH]]
        return found

    def forget(self) -> None:
        """Let go of those that nobody has to follow any more, some of which were just found."""
        if self.grids is None:
            self.records = [one for one in self.records if not one[_DEAD]]

    def add(self, record: Record) -> None:
        """Keep one more."""
        if self.grids is not None:
            self._file(record, self.grids)
            return
        self.records.append(record)
        if len(self.records) > _FLAT:
            self.grids = {}
            for one in self.records:
                self._file(one, self.grids)
            self.records = []

    def _file(self, record: Record, grids: dict[Grid, dict[tuple[int, int], list[Record]]]) -> None:
        low, shape = record[_LOW], record[_SHAPE]
        grid = grid_of(shape)
        cells = grids.get(grid)
        if cells is None:
            cells = grids[grid] = {}
        for key in grid.cells(low, record[_HIGH], repeated_in(shape, grid.step)):
            cell = cells.get(key)
            if cell is None:
                cells[key] = [record]
            else:
                cell.append(record)

    def _in_cells(
        self, low: int, high: int, shape: Shape, grids: dict[Grid, dict[tuple[int, int], list[Record]]]
    ) -> list[Record]:
        """Return the records of every cell that the bytes touch, each once."""
        stamp = next(_stamps)
        found: list[Record] = []
        for grid, cells in grids.items():
            inside = repeated_in(shape, grid.step)
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


class Conflicts:
    """Accesses to one piece of memory that a later one may still have to be ordered with.

    Reads are kept apart: all operations behind a fill may read its tile, and no read follows another.
    """

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.reads, self.writes = _Kept(), _Kept()

    def access(self, record: Record, before: set[int]) -> None:
        """Add to `before` the operations that the one of an access has to follow; keep it for those to come."""
        low, high, first, last, shape, step, write, number, _, _ = record
        for kept in (self.writes, self.reads) if write else (self.writes,):
            gone = False
            for other in kept.near(low, high, shape):
                its_low, its_high, its_first, its_last, its_shape, its_step, _, its, _, _ = other
                if its_low >= high or low >= its_high or its_first >= last or first >= its_last:
                    continue
                covers = low <= its_low and high >= its_high and first <= its_first and last >= its_last
                if step:
                    covers = covers and low == its_low and high == its_high and shape == its_shape
                if not covers and (step or its_step) and lie_apart(shape, its_shape, its_low - low):
                    continue
                if its != number:
                    before.add(its)
                # What a write covers has nothing more to say: whoever follows has to follow the write anyway.
                if covers and write:
                    other[_DEAD] = gone = True
            if gone:
                kept.forget()
        (self.writes if write else self.reads).add(record)
