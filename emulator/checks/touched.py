"""The regions that a run that is over touched, and which of them may share bytes with others.

Tiles lie beside one another, and most regions share bytes with no other one. Those that do are put into groups, by
their ranges alone; which ones of a group really share bytes is worked out when somebody has to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from emulator.checks.columns import apart_by_columns
from emulator.checks.row_sets import RowSet
from formats.regions import Region, RegionParts, share_bytes

__all__ = ["NOBODY", "Cell", "Group", "Log", "Touched", "Use", "share"]

_LOW = attrgetter("low")
_PATIENCE = 64  # comparisons of a region with others, on the average, beyond which somebody else has to look
_made = tuple.__new__

# Whose a word or transfer is, its number there, what it knew of the others when it began, the word as it is loaded or
# the transfer, and the word that triggered that.
Use = tuple[int, int, list[int], Any, Any]
NOBODY: list[Use] = []  # who has read most regions since they were written; nobody adds to it


class Log(dict["Cell | tuple[int, Cell]", "tuple[Use, Cell]"]):
    """The accesses of an actor to cells of a group, in order, each cell's latest; `last` is the number of the last."""

    __slots__ = ("last",)
    last: int


class Group:
    """Cells that may share bytes; the words and transfers that wrote to one of them, or read one, by actor."""

    __slots__ = ("cells", "is_split", "patience", "reads", "writes")

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        for cell in cells:
            cell.near = None
        self.is_split = False
        self.patience = _PATIENCE * len(cells)
        self.writes: dict[int, Log] = {}
        self.reads: dict[int, Log] = {}

    def take(self, looked: int) -> None:
        """Count accesses that another one was compared with.

        Raises LookupError where they become too many.
        """
        self.patience += _PATIENCE - looked
        if self.patience < 0:
            raise LookupError

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
    """A region that is touched: who wrote it last, who has read it since, and which others share bytes with it.

    Words of `owner` from pc `since` to `until` have a tile there; `spans` are all words of each engine that have it,
    where the region begins with the tile. `by` is the engine whose words alone touch it, None where a transfer or
    another one does, and of device memory. Where it is of `rows`, the region is around all of them.
    """

    __slots__ = (
        "by",
        "core",
        "group",
        "low",
        "near",
        "owner",
        "reads",
        "region",
        "rows",
        "since",
        "spans",
        "until",
        "write",
        "written",
    )
    near: list[tuple[Cell, bool]] | None  # of a group: those, and whether a write here leaves nothing of them
    reads: list[Use]
    region: RegionParts
    rows: RowSet | None
    since: int
    until: int
    written: bool

    def __init__(self, place: RegionParts | RowSet) -> None:
        self.begin(place, None)

    def begin(self, place: RegionParts | RowSet, engine: Any) -> None:
        """Become the cell of what an engine is the first to touch; None is a queue."""
        region: RegionParts
        if isinstance(place, RowSet):
            region, self.rows = place.box, place
        else:
            region, self.rows = place, None
        self.region = region
        if region[0] == "HBM":
            self.by, self.core = None, -1  # whoever reads it at the end has to know who wrote it
        else:
            self.by, self.core = engine, region[1]
        self.low = region[4]
        self.write: Use | None = None
        self.group: Group | None = None
        self.spans: Mapping[str, tuple[int, int]] | None = None
        self.reads = NOBODY
        self.owner = ""

    def common(self, other: Cell) -> Region:
        """Return the box of the bytes that it shares with another."""
        mine, others = _made(Region, self.region), _made(Region, other.region)
        return mine.common(others)


class Touched:
    """What the words and transfers of a run touched: `cells` by region, or rows, and by the memory where they lie."""

    def __init__(self) -> None:
        self.cells: dict[RegionParts | RowSet, Cell] = {}
        self.memories: dict[tuple[str, int], list[Cell]] = {}  # by `bring_together`

    def bring_together(self) -> bool:
        """Put cells whose ranges have bytes in common into groups, where one of them is written, as if none were yet.

        Return whether there is any.
        """
        found = False
        memories: defaultdict[tuple[str, int], list[Cell]] = defaultdict(list)
        for cell in self.cells.values():
            memories[cell.region[0], cell.core].append(cell)
        self.memories = memories
        for cells in memories.values():
            cells.sort(key=_LOW)
            for near in _in_common(cells):
                columns = apart_by_columns([cell.region for cell in near])
                if len(columns) == 1:
                    found |= _group(near)
                    continue
                for places in columns:
                    for some in _in_common([near[place] for place in places]):
                        found |= _group(some)
        return found

    def reach_of(self, cells: Iterable[Cell]) -> set[Cell]:
        """Return cells, those that share bytes with them, and so on.

        Raises LookupError where too many lie between one another.
        """
        waiting = list(dict.fromkeys(cells))
        found = set(waiting)
        while waiting:
            cell = waiting.pop()
            if cell.group is not None and not cell.group.is_split:
                cell.group.split()
            for other, _ in (cell.near or ()) if cell.group is not None else ():
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found


def _in_common(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Yield cells, sorted by where they begin, that have bytes in common by their ranges: no fewer than two each."""
    begun, reach = 0, -1
    for place, cell in enumerate(cells):
        region = cell.region
        low = region[4]
        if low >= reach:
            if place - begun > 1:
                yield cells[begun:place]
            begun = place
        end = low + region[5]
        if end > reach:
            reach = end
    if len(cells) - begun > 1:
        yield cells[begun:]


def _group(cells: list[Cell]) -> bool:
    """Make a group of cells, but where the order of one engine's words is all that matters, or nothing is written."""
    by = cells[0].by
    if by is not None and all(cell.by is by for cell in cells):
        return False
    if all(cell.write is None for cell in cells):
        return False
    group = Group(cells)
    for cell in cells:
        cell.written = cell.write is not None
        cell.group, cell.write, cell.reads = group, None, NOBODY
    return True


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
