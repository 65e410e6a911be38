"""The regions that a run that is over touched, and which of them may share bytes with others.

Tiles lie beside one another, and most regions share bytes with no other one. Those that do are put into groups, by
their ranges alone; which ones of a group really share bytes is worked out when somebody has to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emulator.dma.regions import places_of
from emulator.events import Places
from emulator.notes import COMPARED, EXECUTED, ISSUED, MOVED, Notes
from formats.regions import Region, RegionParts, share_bytes

__all__ = ["Accesses", "Cell", "Group", "Touched", "Use"]

_OTHERS = (ISSUED, COMPARED)
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
    where a transfer or another one does.
    """

    __slots__ = ("by", "core", "group", "near", "owner", "reads", "region", "since", "until", "write", "written")

    def __init__(self, region: RegionParts) -> None:
        self.region = region
        self.by: object = self  # nothing has touched it
        self.core = -1 if region[0] == "HBM" else region[1]
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


Accesses = tuple[list[Cell], list[Cell], bool]  # cells read and written, and whether one lies in PSUM


class Touched:
    """What the words and transfers of a run touched; `of` has it by the identity of what their notes say.

    `width` is the bytes of an SBUF partition. Raises LookupError for a run that notes alone do not tell of: it faulted,
    or found a ring full.
    """

    def __init__(self, notes: Notes, width: int) -> None:
        self.cells: dict[RegionParts, Cell] = _Cells()
        self.of: dict[int, Accesses] = {}
        of = self.of
        for note in notes:
            what = note[0]
            if what == EXECUTED:
                action, changes = note[3], note[6]
                key = id(action)
                if key not in of and changes is not None:
                    of[key] = self._of(action.read_places, action.write_places, note[1])
            elif what == MOVED:
                _, transfer, _, changes, touches = note
                if changes is not None:
                    of[id(touches)] = self._of(*places_of(transfer, width), None)
            elif what in _OTHERS:
                continue
            else:
                raise LookupError
            if changes is None:
                raise LookupError

    def _of(self, read: Places, written: Places, engine: object) -> Accesses:
        """Return the cells that a word of an engine, or a transfer, touches, and whether one of them lies in PSUM."""
        cells = self.cells
        reads, writes = [cells[place] for place in read], [cells[place] for place in written]
        is_psum = False
        for cell in reads:
            if cell.by is not engine:
                cell.by = engine if cell.by is cell else None
            if cell.region[0] == "PSUM":
                is_psum = True
        for cell in writes:
            cell.written = True
            if cell.by is not engine:
                cell.by = engine if cell.by is cell else None
            if cell.region[0] == "PSUM":
                is_psum = True
        return reads, writes, is_psum

    def bring_together(self) -> None:
        """Put cells whose ranges have bytes in common into groups, where one of them is written."""
        memories: dict[tuple[str, int], list[Cell]] = {}
        for cell in self.cells.values():
            memories.setdefault((cell.region[0], cell.core), []).append(cell)
        for cells in memories.values():
            cells.sort(key=_low)
            begun, reach = 0, -1
            for place, cell in enumerate(cells):
                _, _, _, _, low, nbytes, _ = cell.region
                if low >= reach:
                    if place - begun > 1:
                        _group(cells[begun:place])
                    begun = place
                if low + nbytes > reach:
                    reach = low + nbytes
            if len(cells) - begun > 1:
                _group(cells[begun:])

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


def _group(cells: list[Cell]) -> None:
    """Make a group of cells, but where the order of one engine's words is all that matters, or nothing is written."""
    by = cells[0].by
    if by is not None and all(cell.by is by for cell in cells):
        return
    if any(cell.written for cell in cells):
        group = Group(cells)
        for cell in cells:
            cell.group = group


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
