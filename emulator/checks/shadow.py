"""Who touched which bytes last: accesses by region, so that one meets only those of regions that share its bytes.

Which regions share bytes is looked up when a region is touched for the first time; programs come back to theirs.
A record leaves when a later access makes it pointless: a write that covers it, or a read by the same actor that covers
it (on a queue only where it surely came later: DMA engines do not wait for one another). Either is ordered behind it,
or is a race with it that was reported as one, so whoever comes later and is ordered behind the new one is ordered
behind the old one too. What remains stays bounded, and the work per access with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from emulator.checks.history import Clock, Unit
from emulator.checks.row_sets import RowSet
from emulator.checks.spans import Combs
from formats.named_tuple import NamedTuple
from formats.regions import Region, RegionParts, share_bytes

__all__ = ["Cell", "Record", "Shadow"]

_made = tuple.__new__  # a named tuple in half the time
_NO_QUEUES = 1 << 30
_CROWDED = 24  # records of a region, or regions beside one, beyond which what everybody knows is looked for


class Record(NamedTuple):
    """One access that can still be one side of a race; `serial` counts the accesses to its memory."""

    unit: Unit
    region: Region
    write: bool
    serial: int

    @property
    def actor(self) -> int:
        """Return whose access it is."""
        return self.unit.actor

    @property
    def number(self) -> int:
        """Return the number of the unit that made it."""
        return self.unit.number


class Cell:
    """A region that was touched, its records, and other regions that share bytes with it: which, and whether it covers.

    `near` is empty for most: tiles lie beside one another.
    """

    __slots__ = ("held", "high", "limit", "low", "near", "p0", "p1", "region", "shadow")

    def __init__(self, parts: RegionParts, shadow: Shadow) -> None:
        self.region: Region = parts if type(parts) is Region else _made(Region, parts)
        self.shadow = shadow
        _, _, self.p0, partitions, self.low, nbytes, _ = parts
        self.p1, self.high = self.p0 + partitions, self.low + nbytes
        self.held: list[Record] = []
        self.near: list[tuple[Cell, bool]] = []
        self.limit = _CROWDED


class Shadow:
    """The records of one memory; `shift` is log2 of the bytes per bucket of regions.

    Actors from `queues` on are DMA queues: their accesses are in order only where `in_ring(earlier, this)` says so.
    `race(earlier, this)` is called for each two accesses that nothing orders, and returns whether the earlier one has
    to stay on record although this one covers it; `floor` gives what everybody knows. `cells` may be those of several
    memories.
    """

    def __init__(
        self,
        shift: int,
        race: Callable[[Record, Record], bool],
        floor: Callable[[], Clock],
        queues: int = _NO_QUEUES,
        in_ring: Callable[[Record, Record], bool] | None = None,
        cells: dict[RegionParts, Cell] | None = None,
    ) -> None:
        self.shift, self.queues = shift, queues
        self._race, self._floor, self._in_ring = race, floor, in_ring
        self._cells: dict[RegionParts, Cell] = {} if cells is None else cells
        self._spans: Combs[Cell] = Combs()
        self._rank: dict[int, int] = {}  # buckets in the order in which they were touched, of regions left out
        self._serial = 0
        self._made = self._stayed = 0  # regions that came since those were left out that everybody knows, and stayed

    def access(self, unit: Unit, region: RegionParts, write: bool) -> None:
        """Note an access, and tell of each earlier one that is not ordered before it."""
        self.touch(self._cells.get(region) or self.cell(region), unit, write)

    def touch(self, cell: Cell, unit: Unit, write: bool) -> None:
        """Note an access to a region, and tell of each earlier one that is not ordered before it."""
        self._serial = serial = self._serial + 1
        mine = _made(Record, (unit, cell.region, write, serial))
        held, near = cell.held, cell.near
        if not near and not held:
            held.append(mine)
            return
        clock, actor, number = unit.clock, unit.actor, unit.number
        ring = actor >= self.queues
        met: list[Record] = []
        read_before = False
        around = [(cell, True), *near] if near else ((cell, True),)
        for other, _ in around:
            for old in other.held:
                before, _, wrote, _ = old
                by = before.actor
                if by != actor:
                    # Two reads never clash; else something that this actor waited for has to come behind it.
                    if (write or wrote) and clock[by] < before.number:
                        met.append(old)
                    continue
                if not wrote:
                    read_before = True
                # An engine's words are in order; what a transfer does to itself is judged apart (`inside`).
                if (
                    ring
                    and (write or wrote)
                    and before.number != number
                    and clock[actor] < before.number
                    and (self._in_ring is None or not self._in_ring(old, mine))
                ):
                    met.append(old)
        stay = self._races(met, mine) if met else ()
        # Only a write is a side of every race that the old one could still be a side of; a read stands for an older
        # read of its own actor.
        if write:
            for other, covers in around:
                if covers and other.held:
                    other.held = [old for old in other.held if old in stay] if stay else []
        elif read_before:
            known = clock[actor] if ring else number
            for other, covers in around:
                if covers and other.held:
                    other.held = [
                        old for old in other.held
                        if old[2] or old[0].actor != actor or old[0].number > known
                    ]  # fmt: skip
        if len(cell.held) > cell.limit:
            cell.held = _unknown(cell.held, self._floor())
            cell.limit = max(_CROWDED, 2 * len(cell.held))
        cell.held.append(mine)

    def _races(self, met: list[Record], mine: Record) -> list[Record]:
        """Tell of races in the order of bytes, then of accesses; return the records that have to stay."""
        low, shift, race = mine.region.byte, self.shift, self._race
        met.sort(key=lambda old: (max(low, old.region.byte) >> shift, old.serial))
        return [old for old in met if race(old, mine)]

    def cell(self, region: RegionParts) -> Cell:
        """Return a region that is touched for the first time, beside those that share bytes with it."""
        cell = Cell(region, self)
        self._place(cell)
        self._made += 1
        if len(cell.near) > _CROWDED and self._made > self._stayed:
            self._leave_out(self._floor())
            cell = Cell(region, self)
            self._place(cell)
        return cell

    def _place(self, cell: Cell) -> None:
        """Put a region beside those that share bytes with it."""
        low, high, p0, p1, region = cell.low, cell.high, cell.p0, cell.p1, cell.region
        pattern = region.pattern
        for other in self._spans.near(low, high, pattern):
            first, behind = other.p0, other.p1
            if first >= p1 or behind <= p0:
                continue
            thinned = other.region.pattern
            if (pattern is not None or thinned is not None) and not share_bytes(
                other.low, other.high - other.low, thinned, low, high - low, pattern
            ):
                continue
            same = low == other.low and high == other.high and pattern == thinned
            covers = same or (pattern is None and low <= other.low and high >= other.high)
            covered = same or (thinned is None and other.low <= low and other.high >= high)
            cell.near.append((other, covers and p0 <= first and p1 >= behind))
            other.near.append((cell, covered and first <= p0 and behind >= p1))
        self._spans.add(low, high, pattern, cell)
        self._cells[region] = cell

    def release(self) -> None:
        """Leave no cycles behind; nothing may be touched after that."""
        for cell in self._cells.values():
            cell.near.clear()
        self._cells.clear()
        self._spans.clear()

    # --- rows of one transfer (`row_races`) --------------------------------------------------------------------------

    def around(self, rows: RowSet) -> list[Cell]:
        """Return the regions around a set of rows, all that may share bytes with it; rank the buckets of its rows."""
        rank, shift, box = self._ranks(), self.shift, rows.box
        places = np.stack((rows.starts, rows.starts + rows.nbytes - 1), 1) >> shift
        if (places[:, 1] - places[:, 0] < 2).all():
            for place in dict.fromkeys(places.ravel().tolist()):
                rank.setdefault(place, len(rank))
        else:
            for first, last in places.tolist():
                for place in range(first, last + 1):
                    rank.setdefault(place, len(rank))
        near = self._spans.near(box.byte, box.end, None)
        return [cell for cell in near if cell.low <= box.byte and box.end <= cell.high]

    def serials(self, count: int) -> int:
        """Return the number of the first of several accesses."""
        first = self._serial + 1
        self._serial += count
        return first

    def keeps_order(self, old: Record, new: Record) -> bool:
        """Return whether their rings order two accesses of one queue."""
        return self._in_ring is not None and self._in_ring(old, new)

    def floor(self) -> Clock:
        """Return what everybody knows."""
        return self._floor()

    def _ranks(self) -> dict[int, int]:
        """Return the buckets in the order in which they were touched."""
        rank, shift = self._rank, self.shift
        for cell in self._cells.values():
            if cell.shadow is self:
                for place in range(cell.low >> shift, (cell.high - 1 >> shift) + 1):
                    if place not in rank:
                        rank[place] = len(rank)
        return rank

    def _leave_out(self, known: Clock) -> None:
        """Leave out what everybody knows, and regions of which nothing else is on record."""
        cells = [cell for cell in self._cells.values() if cell.shadow is self]
        self._ranks()
        self._spans.clear()
        self._made = self._stayed = 0
        for cell in cells:
            del self._cells[cell.region]
            cell.held = _unknown(cell.held, known)
            if cell.held:
                cell.near = []
                self._place(cell)
                self._stayed += 1

    def writes(self, rows: Iterable[Record] = (), known: Clock | None = None) -> list[Record]:
        """Return the writes that are still on record, each once, and those of rows; none that is known."""
        found = [old for cell in self._cells.values() if cell.shadow is self for old in cell.held if old.write]
        if known is not None:
            found = _unknown(found, known)
        found += rows
        if not found:
            return found
        rank = self._ranks()
        shift = self.shift

        def order(old: Record) -> tuple[int, int]:
            region = old.region
            places = range(region.byte >> shift, ((region.end - 1) >> shift) + 1)
            return min(map(rank.__getitem__, places), default=0), old.serial

        return sorted(found, key=order)


def _unknown(records: list[Record], known: Clock) -> list[Record]:
    return [old for old in records if known[old[0].actor] < old[0].number]
