"""The regions that a run that is over touched, and which of them may share bytes with others.

Tiles lie beside one another, and most regions share bytes with no other one. Those that do are put into groups, by
their ranges alone; which ones of a group really share bytes is worked out when somebody has to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from formats.regions import Region, RegionParts, share_bytes

__all__ = ["Cell", "Group", "Touched", "Use"]

_PATIENCE = 64  # comparisons of a region with others, on the average, beyond which somebody else has to look
_made = tuple.__new__

# Whose a word or transfer is, its number there, what it knew of the others when it began, the word as it is loaded or
# the transfer, and the word that triggered that.
Use = tuple[int, int, list[int], Any, Any]


class Group:
    """Cells that may share bytes; the last words and transfers that wrote to one of them, or read one, by actor."""

    __slots__ = ("cells", "is_split", "reads", "writes")

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        self.is_split = False
        self.writes: dict[int, int] = {}
        self.reads: dict[int, int] = {}

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

    Words of `owner` from pc `since` to `until` have a tile there. `by` is the engine whose words alone touch it, None
    where a transfer or another one does, and of device memory.
    """

    __slots__ = (
        "by",
        "core",
        "group",
        "near",
        "owner",
        "reads",
        "region",
        "since",
        "until",
        "write",
        "written",
    )

    def __init__(self, region: RegionParts) -> None:
        self.region = region
        if region[0] == "HBM":
            self.by, self.core = None, -1  # whoever reads it at the end has to know who wrote it
        else:
            self.by, self.core = self, region[1]  # nothing has touched it
        self.write: Use | None = None
        self.reads: list[Use] = []
        self.group: Group | None = None
        self.near: list[tuple[Cell, bool]] | None = None  # and whether a write here leaves nothing of it
        self.written = False
        self.owner = ""
        self.since = self.until = -1

    def common(self, other: Cell) -> Region:
        """Return the box of the bytes that it shares with another."""
        mine, others = _made(Region, self.region), _made(Region, other.region)
        return mine.common(others)


class _Cells(dict[RegionParts, Cell]):
    """Cells by region, made where they are asked for."""

    def __missing__(self, region: RegionParts) -> Cell:
        cell = self[region] = Cell(region)
        return cell


class Touched:
    """What the words and transfers of a run touched: `cells` by region, made where they are asked for."""

    def __init__(self) -> None:
        self.cells: dict[RegionParts, Cell] = _Cells()

    def bring_together(self) -> bool:
        """Put cells whose ranges have bytes in common into groups, where one of them is written, as if none were yet.

        Return whether there is any.
        """
        found = False
        memories: dict[tuple[str, int], list[Cell]] = {}
        for cell in self.cells.values():
            memories.setdefault((cell.region[0], cell.core), []).append(cell)
        for cells in memories.values():
            cells.sort(key=_low)
            begun, reach = 0, -1
            for place, cell in enumerate(cells):
                _, _, _, _, low, nbytes, _ = cell.region
                if low >= reach:
                    if place - begun > 1 and _group(cells[begun:place]):
                        found = True
                    begun = place
                if low + nbytes > reach:
                    reach = low + nbytes
            if len(cells) - begun > 1 and _group(cells[begun:]):
                found = True
        return found

    def reach_of(self, cells: Iterable[Cell]) -> set[int]:
        """Return the identities of cells, of those that share bytes with them, and so on.

        Raises LookupError where too many lie between one another.
        """
        waiting = list({id(cell): cell for cell in cells}.values())
        found = {id(cell) for cell in waiting}
        while waiting:
            cell = waiting.pop()
            if cell.group is not None and not cell.group.is_split:
                cell.group.split()
            for other, _ in cell.near or ():
                if id(other) not in found:
                    found.add(id(other))
                    waiting.append(other)
        return found


def _low(cell: Cell) -> int:
    return cell.region[4]


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
        cell.group, cell.write, cell.reads = group, None, []
    return True


def _pair(one: Cell, other: Cell) -> None:
    """Put two cells beside each other where they share bytes; their ranges do."""
    if one.by is other.by and one.by is not None:
        return  # words of one engine are in order
    _, _, first, partitions, low, nbytes, pattern = one.region
    _, _, its_first, its_partitions, its_low, its_nbytes, its_pattern = other.region
    if first >= its_first + its_partitions or its_first >= first + partitions:
        return
    # A range that leaves no byte out shares some with all that lies in it.
    holds = pattern is None and low <= its_low and its_low + its_nbytes <= low + nbytes
    lies = its_pattern is None and its_low <= low and low + nbytes <= its_low + its_nbytes
    is_thinned = pattern is not None or its_pattern is not None
    if is_thinned and not (holds or lies or share_bytes(low, nbytes, pattern, its_low, its_nbytes, its_pattern)):
        return
    same = low == its_low and nbytes == its_nbytes and pattern == its_pattern
    if one.near is None:
        one.near = []
    if other.near is None:
        other.near = []
    one.near.append(
        (other, (holds or same) and first <= its_first and its_first + its_partitions <= first + partitions)
    )
    other.near.append((one, (lies or same) and its_first <= first and first + partitions <= its_first + its_partitions))
