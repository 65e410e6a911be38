"""From an index space to tiles: which dimensions lie on partitions, which inside, which are gone through in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS

__all__ = ["Tile", "tiles"]

_PIECE = 512  # elements a partition: 2 KiB of fp32, a transfer's good length (hardware.md 4.2)
_TURNS = 8  # tiles of a large array at least, for loads to run ahead; with more its rows get longer instead
_ENOUGH = 16  # partitions in use that are not worth shorter rows
_LEAST = 64  # elements a partition below which spreading over partitions only makes transfers shorter


class Tile(NamedTuple):
    """One part of an index space: where it begins in each dimension, its extents, and how many lead to partitions.

    The first `rows` dimensions of `shape` have at most 128 elements together, one a partition.
    """

    starts: tuple[int, ...]
    shape: tuple[int, ...]
    splits: tuple[int, ...]
    rows: int

    @property
    def partitions(self) -> int:
        """Return the number of partitions in use."""
        return prod(self.shape[: self.rows])

    @property
    def free(self) -> tuple[int, ...]:
        """Return the extents inside a partition."""
        return self.shape[self.rows :]


class _Dim(NamedTuple):
    axis: int
    step: int  # how many elements of the axis one of this dimension stands for
    extent: int


def tiles(shape: Sequence[int], most: int, kept_inside: int = 0, starts: Sequence[int] | None = None) -> Iterator[Tile]:
    """Yield tiles that together cover an index space, or `shape` of it from `starts`; `most` elements a partition.

    The last `kept_inside` dimensions never lie on partitions. In a tile, `splits` names the axis of each of its
    dimensions; `starts` has one number per axis.
    """
    yield from _cover(list(shape), list(starts or [0] * len(shape)), most, kept_inside)


def _cover(shape: list[int], starts: list[int], most: int, inside: int) -> Iterator[Tile]:
    total = prod(shape)
    if total == 0:
        return
    folded = prod(shape[len(shape) - inside :]) if inside else 1
    # Enough elements a partition to fill all partitions, but several tiles where there is much: one is loaded while
    # another is computed.
    wanted = min(most, max(min(-(-total // PARTITIONS), _PIECE), total // (PARTITIONS * _TURNS), folded, _LEAST))
    free: list[int] = []
    size = 1
    axis = len(shape) - 1
    while axis >= 0 and _belongs_inside(shape, axis, size, wanted, most, inside):
        size *= shape[axis]
        free.append(axis)
        axis -= 1
    if axis < 0:  # everything fits into one partition
        yield Tile(tuple(starts), tuple(shape), tuple(range(len(shape))), 0)
        return
    if axis >= len(shape) - inside:
        # A folded dimension is too long for a tile: in parts, one after the other.
        part = most // size
        yield from _parts(shape, starts, axis, part, most, inside)
        return
    if size < wanted and shape[axis] > PARTITIONS:
        # Part of this dimension lies inside a partition, the rest on partitions.
        chunk = _chunk(shape[axis], wanted // size, most // size)
        if chunk > 1:
            whole = shape[axis] // chunk
            yield from _rows(shape, starts, axis, free, chunk, whole)
            rest = shape[axis] - whole * chunk
            if rest:
                left, begin = list(shape), list(starts)
                left[axis], begin[axis] = rest, starts[axis] + whole * chunk
                yield from _cover(left, begin, most, inside)
            return
    yield from _rows(shape, starts, axis, free, 1, shape[axis])


def _belongs_inside(shape: list[int], axis: int, size: int, wanted: int, most: int, inside: int) -> bool:
    """Return whether a dimension lies inside partitions: it must, or fits, or the outer ones fill partitions anyway."""
    grown = size * shape[axis]
    return grown <= most and (grown <= wanted or axis >= len(shape) - inside or prod(shape[:axis]) >= _ENOUGH)


def _chunk(extent: int, wanted: int, most: int) -> int:
    """Return how many elements of a dimension lie in one partition: a divisor near `wanted`, else `wanted` itself."""
    for size in range(max(wanted, 1), min(most, 2 * wanted) + 1):
        if extent % size == 0:
            return size
    for size in range(wanted, wanted // 2, -1):
        if extent % size == 0:
            return size
    return max(1, wanted)


def _parts(shape: list[int], starts: list[int], axis: int, part: int, most: int, inside: int) -> Iterator[Tile]:
    for begin in range(0, shape[axis], max(part, 1)):
        left, first = list(shape), list(starts)
        left[axis] = min(max(part, 1), shape[axis] - begin)
        first[axis] = starts[axis] + begin
        yield from _cover(left, first, most, inside)


def _rows(shape: list[int], starts: list[int], axis: int, free: list[int], chunk: int, extent: int) -> Iterator[Tile]:
    """Yield tiles with up to 128 of the `extent` chunks of an axis, and of outer axes where they are few."""
    rows = [axis]
    count = extent
    outer = axis - 1
    while outer >= 0 and count * shape[outer] <= PARTITIONS:
        count *= shape[outer]
        rows.append(outer)
        outer -= 1
    rows.reverse()
    if count <= PARTITIONS and outer >= 0 and PARTITIONS // count > 1:
        # As many of the next axis as partitions are left.
        rows.insert(0, outer)
        yield from _walk(shape, starts, rows, free, axis, chunk, extent, PARTITIONS // count, outer - 1)
        return
    limit = PARTITIONS if len(rows) == 1 else shape[rows[0]]
    yield from _walk(shape, starts, rows, free, axis, chunk, extent, limit, outer)


def _walk(
    shape: list[int],
    starts: list[int],
    rows: list[int],
    free: list[int],
    axis: int,
    chunk: int,
    extent: int,
    limit: int,
    outer: int,
) -> Iterator[Tile]:
    head = rows[0]
    length = extent if head == axis else shape[head]
    scale = chunk if head == axis else 1
    for place in _places(shape[: outer + 1]):
        for begin in range(0, length, limit):
            first = list(starts)
            for where, offset in enumerate(place):
                first[where] += offset
            first[head] += begin * scale
            counts = [min(limit, length - begin)]
            counts += [extent if one == axis else shape[one] for one in rows[1:]]
            axes, extents = list(rows), counts
            if chunk > 1:
                axes, extents = [*axes, axis], [*extents, chunk]
            axes += sorted(free)
            extents += [shape[one] for one in sorted(free)]
            yield Tile(tuple(first), tuple(extents), tuple(axes), len(rows))


def _places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in _places(shape[1:]):
            yield first, *rest
