"""Which earlier accesses an access has to wait for: overlapping bytes, one of the two a write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import count

from neurontools.builder.areas import Area, overlap

__all__ = ["Memory", "Needs", "Region"]

_FLAT = 32  # records that one list holds before it is cut into buckets
_BUCKETS = 64


_stamps = count(1)  # one per look into buckets


class Needs:
    """Last unit of each actor that has to be complete: `data` for what is read, `order` for what is overwritten."""

    __slots__ = ("data", "order")

    def __init__(self) -> None:
        self.data: dict[int, int] = {}
        self.order: dict[int, int] = {}


class _Record:
    """One access: area, who, as which unit, whether it writes; `dead` once a later access stands for it."""

    __slots__ = ("actor", "area", "dead", "stamp", "unit", "write")

    def __init__(self, area: Area, actor: int, unit: int, write: bool) -> None:
        self.area, self.actor, self.unit, self.write = area, actor, unit, write
        self.dead = False
        self.stamp = 0


class Region:
    """Accesses to one piece of memory that a later access may still have to be ordered with."""

    __slots__ = ("buckets", "records", "shift")

    def __init__(self, size: int) -> None:
        self.records: list[_Record] = []
        self.buckets: dict[int, list[_Record]] | None = None
        self.shift = max((size // _BUCKETS).bit_length(), 2)

    def access(self, area: Area, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Add to `needs` what the access must wait for, and remember it for those to come."""
        found = self.records if self.buckets is None else self._near(area)
        stale = False
        low, high, first, last, step = area.low, area.high, area.first, area.last, area.step
        for record in found:
            if not (write or record.write or record.actor == actor):
                continue
            other = record.area
            if other.low >= high or low >= other.high or other.first >= last or first >= other.last or record.dead:
                continue
            if step and step == other.step:
                # Columns of one row-major tensor: apart where their places in the row are.
                distance = (other.low - low) % step
                if distance >= area.shape.run and step - distance >= other.shape.run:
                    continue
            whole = area.contains(other)
            if not whole and (area.shape.steps or other.shape.steps) and not overlap(area, other):
                continue
            if (write or record.write) and (record.unit != unit or record.actor != actor):
                into = needs.order if write else needs.data
                if into.get(record.actor, -1) < record.unit:
                    into[record.actor] = record.unit
            # What this access covers has nothing more to say: whoever follows has to wait for this one anyway.
            if whole and (write or not record.write):
                record.dead = stale = True
        if stale and self.buckets is None:
            self.records = [record for record in self.records if not record.dead]
        self._add(_Record(area, actor, unit, write))

    def within(self, low: int, high: int) -> list[_Record]:
        """Return the accesses that touch bytes `low` to `high` - 1."""
        found = self.records if self.buckets is None else self._near_bytes(low, high)
        return [one for one in found if not one.dead and one.area.low < high and one.area.high > low]

    def adopt(self, records: list[_Record]) -> None:
        """Take over accesses to the same bytes from regions that had them before."""
        for record in records:
            self._add(record)

    def _add(self, record: _Record) -> None:
        if self.buckets is None:
            self.records.append(record)
            if len(self.records) > _FLAT:
                self.buckets = {}
                for one in self.records:
                    self._file(one, self.buckets)
                self.records = []
        else:
            self._file(record, self.buckets)

    def _file(self, record: _Record, buckets: dict[int, list[_Record]]) -> None:
        for number in range(record.area.low >> self.shift, (record.area.high - 1 >> self.shift) + 1):
            bucket = buckets.get(number)
            if bucket is None:
                buckets[number] = [record]
            else:
                bucket.append(record)

    def _near(self, area: Area) -> list[_Record]:
        return self._near_bytes(area.low, area.high)

    def _near_bytes(self, low: int, high: int) -> list[_Record]:
        """Return the records of every bucket that the bytes touch, each once, in order of access."""
        buckets, stamp = self.buckets or {}, next(_stamps)
        found: list[_Record] = []
        for number in range(low >> self.shift, (high - 1 >> self.shift) + 1):
            bucket = buckets.get(number)
            if not bucket:
                continue
            dead = False
            for record in bucket:
                if record.dead:
                    dead = True
                elif record.stamp != stamp:
                    record.stamp = stamp
                    found.append(record)
            if dead:
                bucket[:] = [record for record in bucket if not record.dead]
        return found


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
        end = bisect_left(self._starts, high)
        replaced = self._pieces[begin:end]
        inherited: list[_Record] = []
        owners: list[Region] = []
        for _, _, owner in replaced:
            if owner is not region and owner not in owners:
                owners.append(owner)
                inherited += owner.within(low, high)
        pieces = [(low, high, region)]
        if replaced:
            first, last = replaced[0], replaced[-1]
            if first[0] < low:
                pieces.insert(0, (first[0], low, first[2]))
            if last[1] > high:
                pieces.append((high, last[1], last[2]))
        self._pieces[begin:end] = pieces
        self._starts[begin:end] = [piece[0] for piece in pieces]
        region.adopt(inherited)
