"""Who touched which bytes last: records of accesses in buckets, so that an access meets only its neighbours.

A record leaves when a later access makes it pointless: a write that covers it, or a read by the same actor that covers
it (on a queue only where it surely came later: DMA engines do not wait for one another). Either is ordered behind it,
or is a race with it that was reported as one, so whoever comes later and is ordered behind the new one is ordered
behind the old one too. What remains stays bounded, and the work per access with it.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.checks.history import Clock, Unit
from formats.regions import Region, share_bytes

__all__ = ["Record", "Shadow"]

_NO_QUEUES = 1 << 30
_CROWDED = 24  # records in a bucket beyond which those that everybody knows are looked for


class Record:
    """One access that can still be one side of a race."""

    __slots__ = (
        "actor",
        "dead",
        "high",
        "last",
        "low",
        "number",
        "p0",
        "p1",
        "pattern",
        "region",
        "stamp",
        "unit",
        "write",
    )

    def __init__(self, unit: Unit, region: Region, write: bool, stamp: int) -> None:
        _, _, self.p0, partitions, self.low, nbytes, self.pattern = region
        self.p1, self.high = self.p0 + partitions, self.low + nbytes
        self.unit, self.region, self.write, self.stamp = unit, region, write, stamp
        self.actor, self.number = unit.actor, unit.number
        self.dead = False


class Shadow:
    """The records of one memory; `shift` is log2 of the bytes per bucket.

    Actors from `queues` on are DMA queues: their accesses are in order only where `in_ring(earlier, this)` says so.
    """

    def __init__(
        self, shift: int, queues: int = _NO_QUEUES, in_ring: Callable[[Record, Record], bool] | None = None
    ) -> None:
        self.shift, self.queues, self.in_ring = shift, queues, in_ring
        self.buckets: dict[int, list[Record]] = {}
        self._limits: dict[int, int] = {}
        self._stamp = 0

    def access(
        self,
        unit: Unit,
        region: Region,
        write: bool,
        race: Callable[[Record, Record], bool],
        floor: Callable[[], Clock],
    ) -> None:
        """Note an access and call `race(earlier, this)` for each earlier one that is not ordered before it.

        It returns whether the earlier one has to stay on record although this one covers it.
        """
        self._stamp = stamp = self._stamp + 1
        mine = Record(unit, region, write, stamp)
        p0, p1, low, high, pattern = mine.p0, mine.p1, mine.low, mine.high, mine.pattern
        clock, actor = unit.clock, unit.actor
        ring = actor >= self.queues
        buckets, shift = self.buckets, self.shift
        for place in range(low >> shift, ((high - 1) >> shift) + 1):
            bucket = buckets.get(place)
            if bucket is None:
                buckets[place] = [mine]
                continue
            gone = False
            for old in bucket:
                if old.dead or old.stamp == stamp:
                    gone |= old.dead
                    continue
                old.stamp = stamp
                if old.p0 >= p1 or old.p1 <= p0 or old.low >= high or old.high <= low:
                    continue
                same = old.actor == actor
                if (
                    (write or old.write)  # two reads never clash
                    # An engine's words are in order; what a transfer does to itself is judged apart (`inside`).
                    and not (same and (not ring or old.number == mine.number))
                    and clock[old.actor] < old.number  # nothing that this actor waited for came behind it
                    and (
                        (pattern is None and old.pattern is None)
                        or share_bytes(old.low, old.high - old.low, old.pattern, low, high - low, pattern)
                    )
                    and not (same and self._in_ring(old, mine))
                    and race(old, mine)
                ):
                    continue
                if (
                    # Only a write is a side of every race that the old one could still be a side of; a read stands for
                    # an older read of its own actor.
                    (write or (same and not old.write and (not ring or clock[actor] >= old.number)))
                    and p0 <= old.p0
                    and p1 >= old.p1
                    and (
                        (pattern is None and low <= old.low and high >= old.high)
                        or (pattern == old.pattern and low == old.low and high == old.high)
                    )
                ):
                    old.dead = gone = True
            if gone:
                bucket[:] = [old for old in bucket if not old.dead]
            bucket.append(mine)
            if len(bucket) > _CROWDED and len(bucket) > self._limits.get(place, 0):
                known = floor()
                bucket[:] = [old for old in bucket if old is mine or known[old.actor] < old.number]
                self._limits[place] = 2 * len(bucket)

    def _in_ring(self, old: Record, mine: Record) -> bool:
        return self.in_ring is None or self.in_ring(old, mine)

    def writes(self) -> list[Record]:
        """Return the writes that are still on record, each once."""
        found = {
            id(record): record
            for bucket in self.buckets.values()
            for record in bucket
            if record.write and not record.dead
        }
        return list(found.values())
