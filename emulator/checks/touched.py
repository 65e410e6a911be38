"""The regions that a run that is over touched, and which of them may share bytes with others.

Tiles lie beside one another, and most regions share bytes with no other one. Those that do are put into groups, by
their ranges alone; which ones of a group really share bytes is worked out when somebody has to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from emulator.checks.columns import apart_by_columns
from emulator.checks.row_sets import Places, RowSet
from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts, share_bytes

__all__ = [
    "BY",
    "NOBODY",
    "OWNER",
    "PSUM",
    "READS",
    "SINCE",
    "SPANS",
    "TILED",
    "UNTIL",
    "WRITE",
    "Cell",
    "Group",
    "Last",
    "Log",
    "Moved",
    "Touched",
    "Use",
    "share",
]

_LOW = itemgetter(4)
_PATIENCE = 64  # comparisons of a region with others, on the average, beyond which somebody else has to look
_BESIDE = 32  # such comparisons beyond which it is worked out which cells of a group share bytes
_NEVER = 1 << 62
_made = tuple.__new__

# Whose a word or transfer is, its number there, what it knew of the others when it began, its note, what it touches.
Use = tuple[int, int, list[int], tuple[Any, ...], Any]
NOBODY: list[Use] = []  # who has read most places since they were written; nobody adds to it

# What is known of a place, as a list: one is made for every second access, and an object takes twice as long to make.
# `BY` is the engine whose words alone touch it, on chip; None where others do. `PSUM` tells whether it lies there.
# `WRITE` is who wrote it last, `READS` those who have read it since. Where tiles are to be gone by, `TILED` is their
# core, else -1; `OWNER` has a tile there for its words from `SINCE` to `UNTIL`, and `SPANS` are those of each engine.
Last = list[Any]
BY, TILED, PSUM, WRITE, READS, OWNER, SINCE, UNTIL, SPANS = range(9)


class Moved(NamedTuple):
    """What a transfer touches, and the word that triggered it."""

    read_places: Places
    write_places: Places
    trigger: Any


class Log(dict["Cell | tuple[int, Cell]", "tuple[Use, Cell]"]):
    """The accesses of an actor to cells of a group, in order, each cell's latest; `last` is the number of the last.

    `by_cell` are all accesses of a queue to each cell, in order, once they are asked for so.
    """

    __slots__ = ("by_cell", "last")
    last: int
    by_cell: dict[Cell, list[Use]] | None


class Group:
    """Cells that may share bytes; the words and transfers that wrote to one of them, or read one, by actor.

    `is_sorted` tells that accesses are looked for by the cells that share bytes, not from the last one back.
    """

    __slots__ = ("_left", "cells", "is_sorted", "is_split", "patience", "reads", "writes")

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        self.is_split = self.is_sorted = False
        self.patience, self._left = _PATIENCE * len(cells), _BESIDE * len(cells)
        self.writes: dict[int, Log] = {}
        self.reads: dict[int, Log] = {}

    def take(self, looked: int) -> None:
        """Count accesses that another one was compared with.

        Raises LookupError where they become too many.
        """
        self._left -= looked
        if self._left < 0:
            self._sort()
        self.patience += _PATIENCE - looked
        if self.patience < 0:
            raise LookupError

    def let_go(self) -> None:
        """Leave no cycles behind; nobody may ask for the cells of the group then, nor for what lies beside one."""
        if self.is_split:
            for cell in self.cells:
                cell.near = None
        self.cells = []
        self.writes.clear()
        self.reads.clear()

    def _sort(self) -> None:
        """Have accesses found by the cells that share bytes, unless too many lie between one another."""
        self._left = _NEVER
        try:
            self.split()
        except LookupError:
            self.is_split = False
            for cell in self.cells:
                cell.near = None
            return
        self.is_sorted = True
        for log in (*self.writes.values(), *self.reads.values()):
            if log.by_cell is not None:
                for old, cell in log.values():
                    log.by_cell.setdefault(cell, []).append(old)

    def split(self) -> None:
        """Tell each cell of those that share bytes with it, where one of the two is written.

        Raises LookupError where too many lie between one another.
        """
        self.is_split = True
        cells = self.cells
        patience = _PATIENCE * len(cells)
        written: list[tuple[int, Cell]] = []
        others: list[tuple[int, Cell]] = []
        for cell in cells:
            _, _, _, _, low, nbytes, _ = cell.region
            if written:
                written = [one for one in written if one[0] > low]
                patience -= len(written)
                for _, other in written:
                    _pair(other, cell)
            if not cell.written:
                others.append((low + nbytes, cell))
            else:
                if others:
                    others = [one for one in others if one[0] > low]
                    patience -= len(others)
                    for _, other in others:
                        _pair(other, cell)
                written.append((low + nbytes, cell))
            if patience < 0:
                raise LookupError


class Cell:
    """A place that may share bytes with others: who wrote it last, and which ones do.

    `by` is the engine whose words alone touch it, None where a transfer or another one does, and of device memory.
    Where it is of `rows`, the region is around all of them.
    """

    __slots__ = ("by", "group", "low", "near", "place", "region", "rows", "write", "written")
    near: list[tuple[Cell, bool]] | None  # those, and whether a write here leaves nothing of them
    region: RegionParts
    rows: RowSet | None
    group: Group

    def __init__(self, place: RegionParts | RowSet, by: Any = None, written: bool = False) -> None:
        if isinstance(place, RowSet):
            self.region, self.rows = place.box, place
        else:
            self.region, self.rows = place, None
        self.place, self.by, self.written = place, by, written
        self.low = self.region[4]
        self.write: Use | None = None
        self.near = None

    def common(self, other: Cell) -> Region:
        """Return the box of the bytes that it shares with another."""
        mine, others = _made(Region, self.region), _made(Region, other.region)
        return mine.common(others)


class Touched:
    """What the words and transfers of a run touched: the last accesses to each place.

    By `bring_together`, `cells` are those places that may share bytes with others, and `stored` all of device memory.
    """

    def __init__(self) -> None:
        self.places: dict[RegionParts | RowSet, Last] = {}
        self.cells: dict[RegionParts | RowSet, Cell] = {}
        self._groups: list[Group] = []
        self.stored: list[RegionParts | RowSet] = []

    def bring_together(self) -> bool:
        """Put places whose ranges have bytes in common into groups, where one of them is written.

        Return whether there is any.
        """
        memories: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
        for place in self.places:
            memories[place[0], place[1]].append(place)
        hbm = [memories.pop(memory) for memory in list(memories) if memory[0] == "HBM"]  # which is of all cores
        self.stored = [place for places in hbm for place in places]
        for places in (self.stored, *memories.values()):
            places.sort(key=_LOW)
            for near in _in_common(places):
                if not self._matter(near):
                    continue
                columns = apart_by_columns(near)
                if len(columns) == 1:
                    self._group(near)
                    continue
                for numbers in columns:
                    for some in _in_common([near[number] for number in numbers]):
                        if self._matter(some):
                            self._group(some)
        return bool(self.cells)

    def _matter(self, near: list[RegionParts | RowSet]) -> bool:
        """Return whether more than the order of one engine's words matters to places, and one of them is written."""
        known = self.places
        by = known[near[0]][BY]
        if by is not None:
            for place in near:
                if known[place][BY] is not by:
                    break
            else:
                return False
        return any(known[place][WRITE] is not None for place in near)

    def _group(self, near: list[RegionParts | RowSet]) -> None:
        """Make a group of places."""
        known = list(map(self.places.__getitem__, near))
        cells = [Cell(place, last[BY], last[WRITE] is not None) for place, last in zip(near, known, strict=True)]
        group = Group(cells)
        self._groups.append(group)
        for cell in cells:
            cell.group = group
            self.cells[cell.place] = cell

    def let_go(self) -> None:
        """Leave no cycles behind, of which all that a run has done would hang; nothing may be asked after that."""
        for group in self._groups:
            group.let_go()

    def write_of(self, place: RegionParts | RowSet) -> Use | None:
        """Return who wrote a place last."""
        cell = self.cells.get(place)
        last: Use | None = self.places[place][WRITE] if cell is None else cell.write
        return last

    def reach_of(self, places: Iterable[RegionParts | RowSet]) -> set[RegionParts | RowSet]:
        """Return places, those that share bytes with them, and so on.

        Raises LookupError where too many lie between one another.
        """
        waiting = list(dict.fromkeys(places))
        found = set(waiting)
        while waiting:
            cell = self.cells.get(waiting.pop())
            if cell is None:
                continue
            if not cell.group.is_split:
                cell.group.split()
            for other, _ in cell.near or ():
                if other.place not in found:
                    found.add(other.place)
                    waiting.append(other.place)
        return found


def _in_common(places: list[Any]) -> Iterator[list[Any]]:
    """Yield places, sorted by where they begin, that have bytes in common by their ranges: no fewer than two each."""
    begun, reach = 0, -1
    for number, place in enumerate(places):
        low = place[4]
        if low >= reach:
            if number - begun > 1:
                yield places[begun:number]
            begun = number
        end = low + place[5]
        if end > reach:
            reach = end
    if len(places) - begun > 1:
        yield places[begun:]


def share(one: Cell, other: Cell) -> bool:
    """Return whether two cells whose boxes have bytes in common share some."""
    if one is other:
        return True
    if _is_scattered(one) or _is_scattered(other):
        return _share_rows(one, other)
    _, _, _, _, low, nbytes, pattern = one.region
    _, _, _, _, its_low, its_nbytes, its_pattern = other.region
    if pattern is None and its_pattern is None:
        return True
    return share_bytes(low, nbytes, pattern, its_low, its_nbytes, its_pattern)


def _pair(one: Cell, other: Cell) -> None:
    """Put two cells beside each other where they share bytes; their ranges do."""
    if one.by is other.by and one.by is not None:
        return  # words of one engine are in order
    _, _, first, partitions, low, nbytes, pattern = one.region
    _, _, its_first, its_partitions, its_low, its_nbytes, its_pattern = other.region
    if first >= its_first + its_partitions or its_first >= first + partitions:
        return
    if (one.rows is not None and not one.rows.is_box) or (other.rows is not None and not other.rows.is_box):
        _pair_rows(one, other)
        return
    # A range that leaves no byte out shares some with all that lies in it.
    holds = pattern is None and low <= its_low and its_low + its_nbytes <= low + nbytes
    lies = its_pattern is None and its_low <= low and low + nbytes <= its_low + its_nbytes
    is_thinned = pattern is not None or its_pattern is not None
    if is_thinned and not (holds or lies or share_bytes(low, nbytes, pattern, its_low, its_nbytes, its_pattern)):
        return
    same = low == its_low and nbytes == its_nbytes and pattern == its_pattern
    _put_beside(
        one, other, (holds or same) and first <= its_first and its_first + its_partitions <= first + partitions,
        (lies or same) and its_first <= first and first + partitions <= its_first + its_partitions,
    )  # fmt: skip


def _put_beside(one: Cell, other: Cell, covers: bool, is_covered: bool) -> None:
    """Put two cells beside each other: whether a write to the one leaves nothing of the other, and the other way."""
    if one.near is None:
        one.near = []
    if other.near is None:
        other.near = []
    one.near.append((other, covers))
    other.near.append((one, is_covered))


def _is_scattered(cell: Cell) -> bool:
    return cell.rows is not None and not cell.rows.is_box


def _share_rows(one: Cell, other: Cell) -> bool:
    """Return whether rows of the one share bytes with the other; those of a pattern are taken to."""
    if not _is_scattered(one):
        one, other = other, one
    rows = one.rows
    assert rows is not None
    if _is_scattered(other):
        assert other.rows is not None
        return rows.meets(other.rows)
    _, _, _, _, low, nbytes, pattern = other.region
    return pattern is not None or rows.meets_range(low, low + nbytes)


def _pair_rows(one: Cell, other: Cell) -> None:
    """Put two cells beside each other where rows of the one share bytes with the other."""
    if not _share_rows(one, other):
        return
    mine, others = one.rows, other.rows
    same = mine is not None and others is not None and mine.same_rows(others)
    _put_beside(one, other, same or _holds(one, other), same or _holds(other, one))


def _holds(one: Cell, other: Cell) -> bool:
    """Return whether a cell is a range around all of another."""
    _, _, _, _, low, nbytes, pattern = one.region
    _, _, _, _, its_low, its_nbytes, _ = other.region
    is_range = pattern is None and not _is_scattered(one)
    return is_range and low <= its_low and its_low + its_nbytes <= low + nbytes
