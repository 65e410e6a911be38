"""Regions of bytes, and what can be asked of them: one value for words, transfers, checks, journal, debugger, builder.

A region is a range of partitions by a pattern of bytes: runs of neighbouring bytes, repeated with steps. The engines
walk patterns in any order and direction; `shape_of` gives the bytes that a walk covers, whatever its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import gcd

from formats.named_tuple import NamedTuple

__all__ = ["Pattern", "Region", "RegionParts", "Shape", "Steps", "shape_of", "share_bytes"]

# (bytes, count) of dimensions; a pattern is steps and the length of the runs between them.
Steps = tuple[tuple[int, int], ...]
Pattern = tuple[Steps, int]
# A region as a plain tuple, equal to it and with the same hash.
RegionParts = tuple[str, int, int, int, int, int, Pattern | None]
_REMEMBERED = 1 << 14
_PATIENCE = 1 << 22  # sums looked at before two patterns are taken to meet


class Shape(NamedTuple):
    """The bytes of a walk, whatever its address.

    The lowest byte lies `shift` before the first element; `reach` bytes lie from there to behind the highest, in runs
    of `run`; `steps` are those of the dimensions that jump over bytes, largest first.
    """

    shift: int
    reach: int
    run: int
    steps: Steps

    @property
    def pattern(self) -> Pattern | None:
        """Return the pattern in the range of the shape, None where it leaves no byte out."""
        return (self.steps, self.run) if self.steps else None


def shape_of(dims: Iterable[tuple[int, int]], run: int, unit: int = 0) -> Shape:
    """Return the shape of a walk over runs of `run` bytes, with steps up or down in units of bytes, or else of runs."""
    shift = 0
    jumps = []
    unit = unit or run
    pairs = [(step * unit, count) for step, count in dims if count > 1 and step]
    pairs.sort(key=lambda pair: (abs(pair[0]), pair[1]))
    for step, count in pairs:
        if step < 0:
            shift += step * (count - 1)
            step = -step
        if step <= run:
            run += step * (count - 1)
        else:
            jumps.append((step, count))
    return Shape(shift, run + sum(step * (count - 1) for step, count in jumps), run, tuple(reversed(jumps)))


class Region(NamedTuple):
    """Bytes that something reads or writes.

    On chip (`space` "SBUF" or "PSUM"): partitions `first` to first + partitions - 1 of `core`, in each the byte range
    `byte` to byte + nbytes - 1; `pattern` says where in the range bytes are touched: steps up from `byte`, and runs;
    None for all of it. In "HBM" `byte` is the device address and `first` and `partitions` are 0 and 1.
    """

    space: str
    core: int
    first: int
    partitions: int
    byte: int
    nbytes: int
    pattern: Pattern | None = None

    @property
    def behind(self) -> int:
        """Return the partition behind the last."""
        return self.first + self.partitions

    @property
    def end(self) -> int:
        """Return the byte behind the last."""
        return self.byte + self.nbytes

    @property
    def text(self) -> str:
        """Return the region as views print it."""
        if self.space == "HBM":
            return f"HBM[{self.byte:#x}:{self.end:#x}]"
        rows = f"{self.first}:{self.behind}"
        columns = f"{self.byte:#x}:{self.end:#x}"
        return f"nc{self.core} {self.space}[{rows}, {columns}]" + (" strided" if self.pattern else "")

    @property
    def size(self) -> int:
        """Return how many bytes it has, each counted once."""
        return self.partitions * sum(high - low for low, high in self.runs())

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the gapless byte ranges of each partition, as (first, behind), in ascending order."""
        if self.pattern is None:
            if self.nbytes:
                yield self.byte, self.end
            return
        shape = shape_of(*self.pattern, unit=1)
        low = high = None
        for start in sorted({sum(at) for at in product(*(range(0, s * n, s) for s, n in shape.steps))}):
            begin = self.byte + start
            if low is None or high is None or begin > high:
                if low is not None and high is not None:
                    yield low, high
                low = begin
            high = begin + shape.run
        if low is not None and high is not None:
            yield low, high

    def walk(self, width: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return offset, shape and strides, in bytes, of the region in an array of `width` bytes a partition."""
        steps, run = self.pattern or ((), self.nbytes)
        return (
            self.first * width + self.byte,
            (self.partitions, *(count for _, count in steps), run),
            (width, *(step for step, _ in steps), 1),
        )

    def overlaps(self, other: Region) -> bool:
        """Return whether the two have a byte in common."""
        if not self._beside(other) or self.first >= other.behind or other.first >= self.behind:
            return False
        return share_bytes(self.byte, self.nbytes, self.pattern, other.byte, other.nbytes, other.pattern)

    def _beside(self, other: Region) -> bool:
        """Return whether the two lie in one memory; cores of one device share its HBM."""
        return self.space == other.space and (self.core == other.core or self.space == "HBM")

    def covers(self, other: Region) -> bool:
        """Return whether every byte of `other` is certainly one of this region: inside its box, or the same bytes."""
        if not self._beside(other) or self.first > other.first or self.behind < other.behind:
            return False
        if self.pattern is None:
            return self.byte <= other.byte and self.end >= other.end
        return (self.byte, self.nbytes, self.pattern) == (other.byte, other.nbytes, other.pattern)

    def common(self, other: Region) -> Region:
        """Return the box that both of two overlapping regions lie in.

        With a pattern where both have the same, or where one lies in the other, which leaves no byte out.
        """
        first, byte = max(self.first, other.first), max(self.byte, other.byte)
        same = (self.byte, self.nbytes, self.pattern) == (other.byte, other.nbytes, other.pattern)
        inner, outer = (other, self) if self.pattern is None else (self, other)
        inside = outer.pattern is None and outer.byte <= inner.byte and outer.end >= inner.end
        return Region(
            self.space,
            self.core,
            first,
            min(self.behind, other.behind) - first,
            byte,
            min(self.end, other.end) - byte,
            inner.pattern if same or inside else None,
        )


_known: dict[tuple[Pattern | int, Pattern | int, int], bool] = {}


def share_bytes(
    low0: int, size0: int, pattern0: Pattern | None, low1: int, size1: int, pattern1: Pattern | None
) -> bool:
    """Return whether two byte ranges, thinned out by their patterns, have a byte in common.

    The answer is exact, but for patterns that no memory has, which are taken to share one; and it is remembered, since
    programs repeat the same pairs of shapes.
    """
    if low0 >= low1 + size1 or low1 >= low0 + size0:
        return False
    if pattern0 is None and pattern1 is None:
        return True
    key = (pattern0 or size0, pattern1 or size1, low1 - low0)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        found = _known[key] = _meet(pattern0 or ((), size0), pattern1 or ((), size1), low1 - low0)
    return found


def _meet(first: Pattern, second: Pattern, distance: int) -> bool:
    """Return whether a run of `first` meets one of `second`, which begins `distance` behind it.

    Two runs meet where the begin of the first less that of the second is between -run of the first and run of the
    second. That difference is a sum of multiples of all steps, counted from the last run of `second`; equal steps count
    together, which makes one dimension of two rows of the same table.
    """
    counts: dict[int, int] = {}
    least = -distance
    for step, count in first[0]:
        counts[step] = counts.get(step, 1) + count - 1
    for step, count in second[0]:
        counts[step] = counts.get(step, 1) + count - 1
        least -= step * (count - 1)
    return _reaches(sorted(counts.items(), reverse=True), 1 - first[1] - least, first[1] + second[1] - 2)


def _reaches(steps: list[tuple[int, int]], low: int, width: int) -> bool:
    """Return whether multiples of steps, fewer than its count of each, add up to a number from low to low + width.

    What is left to reach after the larger steps is kept as a set, so that the work stays below the reach of the smaller
    ones, whatever the patterns.
    """
    if low <= 0:
        return low + width >= 0
    left, patience = {low}, _PATIENCE
    for place, (step, count) in enumerate(steps, 1):
        rest = sum(size * (number - 1) for size, number in steps[place:])
        common = gcd(*(size for size, _ in steps[place:]))
        following = set()
        for low in left:
            fewest, most = max(0, -((rest - low) // step)), min(count - 1, (low + width) // step)
            patience -= most - fewest
            if patience < 0:
                return True
            for now in range(low - step * most, low - step * fewest + 1, step):
                if now <= 0:
                    return True
                if common and -now % common <= width:
                    following.add(now)
        left = following
    return False
