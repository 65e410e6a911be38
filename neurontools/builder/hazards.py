"""Which earlier accesses an access has to wait for: overlapping bytes, one of the two a write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from formats.regions import Shape
from neurontools.builder.areas import Way, lie_apart
from neurontools.builder.cells import Grid, grid_of, repeated_in
from neurontools.builder.span_index import SpanIndex
from neurontools.builder.vector_clocks import VectorClocks

__all__ = ["NOWHERE", "Memory", "Needs", "Record", "Region"]

Record = tuple[int, int, int, int, int, Shape, int, Way | None]
"""An access: its unit; low, high, first and last of `builder.areas.Area`; its shape and the step of that.

Then how a transfer walks its bytes and is cut into descriptors, None for words and for transfers of which that is not
known. A plain tuple: one is made for every operand of every operation, and taken apart at once.
"""
_UNIT: Final = 0
_LOW: Final = 1
_HIGH: Final = 2
_FIRST: Final = 3
_LAST: Final = 4
_STEP: Final = 6
_unit = itemgetter(_UNIT)

NOWHERE = 1 << 62, -1  # bounds of a region in which nothing was accessed yet
_FLAT = 100  # records that are gone through before they are filed in cells
_LARGEST = 32  # writes of which it is looked for what they stand for
_TURNS = 8  # claims for which it is asked once what all know
_MANY = 256  # inherited records among which it is looked for those that others stand for


Needs = dict[int, int]
"""Last unit of each actor that has to be complete before a word begins."""
_Grids = dict[Grid, dict[tuple[int, int], list[Record]]]
Track = list[Any]
"""What one actor wrote, or read, of a region: the actor, whether it wrote, its last unit there, and the records.

Records are in the order of their units. When they are many they are in cells instead: `_Grids`, else None.
"""
_ACTOR, _WRITE, _NEWEST, _RECORDS, _GRIDS = range(5)


def _append(records: list[Record], record: Record) -> None:
    """Append a record of the same actor; it stands for the last one where that was of the same bytes."""
    _, low, _, first, last, shape, _, way = record
    _, its_low, _, its_first, its_last, its_shape, _, its_way = records[-1]
    if its_low == low and its_shape is shape and its_first == first and its_last == last and its_way == way:
        records[-1] = record
    else:
        records.append(record)


def _file(grids: _Grids, record: Record) -> None:
    """Put a record into all cells that it may touch."""
    _, low, high, _, _, shape, _, _ = record
    grid = grid_of(shape)
    cells = grids.get(grid)
    if cells is None:
        cells = grids[grid] = {}
    for key in grid.cells(low, high, repeated_in(shape, grid.step)):
        cell = cells.get(key)
        if cell is None:
            cells[key] = [record]
        else:
            _append(cell, record)


def _near(grids: _Grids, low: int, high: int, shape: Shape) -> Iterator[list[Record]]:
    """Yield the records of every cell that the bytes touch."""
    for grid, cells in grids.items():
        inside = repeated_in(shape, grid.step)
        if grid.most(low, high, inside) >= len(cells):
            yield from cells.values()
            continue
        for key in grid.cells(low, high, inside):
            cell = cells.get(key)
            if cell is not None:
                yield cell


def _all(track: Track) -> list[Record]:
    """Return the records of a track, each once, in the order of their units."""
    _, _, _, records, grids = track
    if grids is None:
        return list(records)
    found = {id(record): record for cells in grids.values() for cell in cells.values() for record in cell}
    return sorted(found.values(), key=_unit)


class Region:
    """Accesses to one piece of memory that a later access may still have to be ordered with.

    Nothing is accessed outside bytes `low` to `high` - 1 of it, though those it inherits may reach farther. One that is
    made with `NOWHERE` inherits nothing, and spans what was accessed so far: tensors are often written from one end to
    the other, and who touches bytes behind all others need not look at any of them.

    An actor completes its units in order, so of its accesses to common bytes the last one counts; and whoever asks
    knows of most, by what it waited for, that they are complete. So the records of an actor are looked at from the last
    one back, up to the first that shares a byte or is known to be complete.
    """

    __slots__ = ("_spans", "high", "low", "reads", "writes")

    def __init__(self, low: int = -1, high: int = 1 << 62) -> None:
        self.low, self.high = low, high
        # one of each actor; apart, since who reads waits for writes alone
        self.writes: list[Track] = []
        self.reads: list[Track] = []
        # Of tracks with many records, which others take over piece by piece: what these were, and an index of them.
        self._spans: dict[tuple[int, bool], tuple[list[Record], int, int, SpanIndex | None]] | None = None

    def access(self, record: Record, write: bool, actor: int, needs: Needs, known: Sequence[int], itself: int) -> None:
        """Add to `needs` what an access must wait for, and keep it for those to come.

        `known` has the last unit of each actor that whoever asks knows to be complete; the accesses of the actor
        `itself` are in order anyway.
        """
        # The innermost loop of the builder: everything it asks for is in locals, and the cheap questions come first.
        unit, low, high, first, last, shape, step, way = record
        if low < self.low or high > self.high:
            apart = low >= self.high or high <= self.low
            self.low, self.high = min(low, self.low), max(high, self.high)
            if apart:
                self.add(record, write, actor)
                return
        writes, reads = self.writes, self.reads
        for track in writes + reads if write else writes:
            its, _, newest, records, grids = track
            floor = known[its]
            if newest <= floor or its == itself:
                continue
            if its in needs and needs[its] > floor:
                floor = needs[its]
                if newest <= floor:
                    continue
            if grids is None:
                # As nearly always: the last one shares a byte, which nobody has to be called for.
                _, its_low, its_high, its_first, its_last, its_shape, its_step, _ = records[-1]
                if (
                    its_low < high and low < its_high and its_first < last and first < its_last and its != actor
                    and (not (step or its_step) or (its_low == low and its_shape is shape))
                ):  # fmt: skip
                    needs[its] = newest
                    continue
                found = _last(records, record, floor, write, its == actor)
                if found > floor:
                    needs[its] = found
                if len(records) > _FLAT and records[-_FLAT][0] > max(floor, found):
                    track[_GRIDS] = grids = {}
                    for one in records:
                        _file(grids, one)
                    records.clear()
            else:
                for cell in _near(grids, low, high, shape):
                    found = _last(cell, record, floor, write, its == actor)
                    if found > floor:
                        needs[its] = floor = found
        own = writes if write else reads
        for mine in own:
            if mine[_ACTOR] == actor:
                break
        else:
            own.append([actor, write, unit, [record], None])
            return
        mine[_NEWEST] = unit
        if mine[_GRIDS] is not None:
            _file(mine[_GRIDS], record)
            return
        # what `_append` does, without its call
        records = mine[_RECORDS]
        _, its_low, _, its_first, its_last, its_shape, _, its_way = records[-1]
        if its_low == low and its_shape is shape and its_first == first and its_last == last and its_way == way:
            records[-1] = record
        else:
            records.append(record)

    def add(self, record: Record, write: bool, actor: int) -> None:
        """Keep an access for those to come, which waits for nothing."""
        own = self.writes if write else self.reads
        for track in own:
            if track[_ACTOR] == actor:
                track[_NEWEST] = record[_UNIT]
                if track[_GRIDS] is None:
                    _append(track[_RECORDS], record)
                else:
                    _file(track[_GRIDS], record)
                return
        own.append([actor, write, record[_UNIT], [record], None])

    @property
    def tracks(self) -> list[Track]:
        """Return what each actor wrote, then what each read."""
        return self.writes + self.reads

    def written(self) -> list[tuple[int, int]]:
        """Return each actor that wrote here with the last unit that did."""
        return [(track[_ACTOR], track[_NEWEST]) for track in self.writes]

    def is_written_since(self, record: Record, before: Iterable[tuple[int, int]]) -> bool:
        """Return whether anybody wrote bytes of an access behind what `written` gave before."""
        _, low, high, _, _, shape, _, _ = record
        floors = dict(before)
        for actor, _, _, records, grids in self.writes:
            floor = floors.get(actor, -1)
            for each in (records,) if grids is None else _near(grids, low, high, shape):
                if _last(each, record, floor, False, False) >= 0:
                    return True
        return False

    def replace(self, record: Record, actor: int) -> None:
        """Keep a write that stands for all that it covers, though it has waited for none of it."""
        _, low, high, first, last, _, step, _ = record
        tracks = self.tracks
        self.writes, self.reads = [], []
        for track in tracks:
            for one in _all(track):
                outside = (  # nobody accesses what lies outside the region, so that it counts as covered
                    not step and not one[_STEP] and first <= one[_FIRST] and last >= one[_LAST]
                    and (low <= one[_LOW] or low <= self.low) and (high >= one[_HIGH] or high >= self.high)
                )  # fmt: skip
                if not outside and not _covers(record, one):
                    self.add(one, track[_WRITE], track[_ACTOR])
        self.add(record, True, actor)

    def within(self, low: int, high: int, floors: Sequence[int]) -> list[Track]:
        """Return the accesses that touch bytes `low` to `high` - 1, but for the units up to the floor of each actor."""
        found: list[Track] = []
        for track in self.writes + self.reads:
            actor, write, newest, records, grids = track
            floor = floors[actor]
            if newest > floor:
                if len(records) == 1:  # as nearly always
                    _, its_low, its_high, *_ = records[0]
                    if its_low < high and its_high > low:
                        found.append([actor, write, newest, records.copy(), None])
                    continue
                if grids is not None:
                    records = _all(track)
                elif len(records) > _FLAT:
                    records = self._near(track, low, high)
                kept = [one for one in records if one[_UNIT] > floor and one[_LOW] < high and one[_HIGH] > low]
                if kept:
                    found.append([actor, write, kept[-1][_UNIT], kept, None])
        return found

    def _near(self, track: Track, low: int, high: int) -> list[Record]:
        """Return those of many records that touch some bytes, or all of them the first time that somebody asks."""
        actor: int
        records: list[Record]
        actor, write, newest, records, _ = track
        spans = self._spans
        if spans is None:
            spans = self._spans = {}
        count, before = len(records), spans.get((actor, write))
        # A list is appended to, and its last record replaced, by later units alone, or by more records of the last one.
        if before is None or before[0] is not records or before[1:3] != (newest, count):
            spans[actor, write] = records, newest, count, None
            return records
        index = before[3]
        if index is None:
            index = SpanIndex([one[_LOW] for one in records], [one[_HIGH] for one in records])
            spans[actor, write] = records, newest, count, index
        return [records[place] for place in index.touching(low, high)]

    def adopt(self, inherited: list[Track]) -> None:
        """Take over accesses to the same bytes, from regions that had them before."""
        if self.writes or self.reads:
            tracks = _merged([*self.tracks, *inherited])
            self.writes = [track for track in tracks if track[_WRITE]]
            self.reads = [track for track in tracks if not track[_WRITE]]
            return
        # What `_merged` does, for a region in which nothing was accessed yet and the few tracks that it takes over.
        several: dict[int, Track] = {}
        for track in inherited:
            actor, write, _, records, _ = track
            own = self.writes if write else self.reads
            for mine in own:
                if mine[_ACTOR] == actor:
                    mine[_RECORDS] += records
                    several[id(mine)] = mine
                    break
            else:
                own.append(track)
        for mine in several.values():
            mine[_RECORDS] = records = _together(mine[_RECORDS])
            mine[_NEWEST] = records[-1][_UNIT]


def _merged(tracks: list[Track]) -> list[Track]:
    """Return one track of all that are of one actor, and as many more as there are actors that wrote or read."""
    together: dict[tuple[int, bool], list[Track]] = {}
    for track in tracks:
        together.setdefault((track[_ACTOR], track[_WRITE]), []).append(track)
    merged: list[Track] = []
    for (actor, write), each in together.items():
        if len(each) == 1:
            merged += each
        else:
            records = _together([one for track in each for one in _all(track)])
            merged.append([actor, write, records[-1][_UNIT], records, None])
    return merged


def _together(records: list[Record]) -> list[Record]:
    """Put records into the order of their units, and return each once: two regions may have inherited the same one."""
    records.sort(key=_unit)
    if len({*map(_unit, records)}) == len(records):
        return records
    return [*{id(one): one for one in records}.values()]


def _last(records: list[Record], record: Record, floor: int, write: bool, own: bool) -> int:
    """Return the last unit behind `floor` whose access shares a byte with another one, -1 for none.

    `own` says that both are of one actor.
    """
    unit, low, high, first, last, shape, step, way = record
    for its_unit, its_low, its_high, its_first, its_last, its_shape, its_step, its_way in reversed(records):
        if its_unit <= floor:
            return -1
        if its_low >= high or low >= its_high or its_first >= last or first >= its_last:
            continue
        if (step or its_step) and (its_low != low or its_shape is not shape):
            if step > 0 and step == its_step:
                # Columns of one row-major tensor: apart where their places in the row are.
                distance = (its_low - low) % step
                if distance >= shape.run and step - distance >= its_shape.run:
                    continue
            elif lie_apart(shape, its_shape, its_low - low):
                continue
        # Two transfers of one queue that bring each byte through the same ring stay in order: rings of different
        # DMA engines do not wait for one another. Source: hardware.md 4.1.
        if own and (
            its_unit == unit or (write and way == its_way is not None and low == its_low and first == its_first)
        ):
            continue
        return its_unit
    return -1


def _covers(record: Record, other: Record) -> bool:
    """Return whether every byte of `other` is certainly one of an access."""
    _, low, high, first, last, shape, step, _ = record
    _, its_low, its_high, its_first, its_last, its_shape, _, _ = other
    if low > its_low or high < its_high or first > its_first or last < its_last:
        return False
    return not step or (low == its_low and high == its_high and shape == its_shape)


def _essential(tracks: list[Track], clocks: VectorClocks) -> list[Track]:
    """Return the accesses but those that the largest writes stand for: whoever waits for these knows of those."""
    writes = [(_size(one), one, track[_ACTOR]) for track in tracks if track[_WRITE] for one in track[_RECORDS]]
    writes.sort(key=itemgetter(0), reverse=True)
    for _, write, actor in writes[:_LARGEST]:
        known = clocks.known_by(actor, write[_UNIT])
        for track in tracks:
            unit = known[track[_ACTOR]]
            track[_RECORDS] = [
                one for one in track[_RECORDS] if one[_UNIT] > unit or one is write or not _covers(write, one)
            ]
    return [[actor, wrote, records[-1][_UNIT], records, None] for actor, wrote, _, records, _ in tracks if records]


def _size(record: Record) -> int:
    _, low, high, first, last, _, _, _ = record
    return (high - low) * (last - first)


class Memory:
    """SBUF or PSUM of one core: which region the bytes of a partition belong to now.

    A tile that takes over bytes inherits the accesses of their former owners, so that reuse of an address is ordered.
    """

    def __init__(self, clocks: VectorClocks) -> None:
        self._clocks = clocks
        self._floors: list[int] = []  # what every engine knew of each actor some claims ago: it knows no less now
        self._many = _MANY
        self._turn = 0  # claims until they are asked again
        self._starts: list[int] = []
        self._pieces: dict[int, tuple[int, Region]] = {}  # by first byte: the one behind the last, and whose they are
        self._end = 0  # the byte behind all that have an owner

    def claim(self, low: int, high: int) -> Region:
        """Give bytes `low` to `high` - 1 to a new owner; return its region."""
        if low >= self._end:  # what `give` does, for bytes that had no owner
            region = Region(low, high)
            self._starts.append(low)
            self._pieces[low] = high, region
            self._end = high
            return region
        piece = self._pieces.get(low)
        if piece is not None and piece[0] == high:
            region = piece[1]
            # All of one owner's bytes, as tiles of one size take them over: its accesses are what the new one inherits.
            if region.low == low and region.high == high:
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
        if not self._turn or len(self._floors) < len(self._clocks.known[0]):
            self._floors, self._turn = self._clocks.common(), _TURNS
        self._turn -= 1
        inherited: list[Track] = []
        for owner in dict.fromkeys(owner for _, _, owner in replaced):
            if owner is not region:
                inherited += owner.within(low, high, self._floors)
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
            count = 0
            for track in inherited:
                count += len(track[_RECORDS])
            if count > self._many:
                inherited = _essential(_merged(inherited), self._clocks)
                self._many = max(_MANY, 2 * sum(len(track[_RECORDS]) for track in inherited))
            region.adopt(inherited)
