"""The bytes that a transfer touches, as regions for observers: watchpoints, race and initialisation checks."""

from __future__ import annotations

from itertools import groupby, product

from emulator.dma.transfer import Side
from emulator.dma.views import split_step
from emulator.events import Region
from formats.isa.operand import SBUF_PARTITION_STRIDE

__all__ = ["regions_of", "side_regions"]

Dims = tuple[tuple[int, int], ...]


def regions_of(sides: tuple[Side, ...], width: int) -> tuple[Region, ...]:
    """Return the regions of several sides; `width` is the bytes of an SBUF partition."""
    return tuple(region for side in sides for region in side_regions(side, width))


def side_regions(side: Side, width: int) -> tuple[Region, ...]:
    """Return the regions of one side: one for HBM, one per run of partitions for SBUF.

    A side that moves diagonally, partition and byte at once, gives the box around it.
    """
    if side.space == "HBM":
        start, dims = _upwards(side.address, side.dims)
        low, high = side.span
        return (Region("HBM", side.core, 0, 1, start, high - low, _pattern(dims, side.run)),)
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    across: list[tuple[int, int]] = []
    along: list[tuple[int, int]] = []
    for step, count in side.dims:
        over, inside = split_step(step, count, byte, side.run, width)
        if over and inside:
            return (_box(side, width),)
        (across if over else along).append((over or inside, count))
    start, dims = _upwards(byte, tuple(along))
    nbytes = sum(step * (count - 1) for step, count in dims) + side.run
    rows = sorted({partition + sum(p) for p in product(*(range(0, step * count, step) for step, count in across))})
    found = []
    for _, group in groupby(enumerate(rows), lambda pair: pair[1] - pair[0]):
        members = [row for _, row in group]
        found.append(Region("SBUF", side.core, members[0], len(members), start, nbytes, _pattern(dims, side.run)))
    return tuple(found)


def _upwards(start: int, dims: Dims) -> tuple[int, Dims]:
    """Return start and dimensions of the same bytes with positive steps; repeats of one byte fall away."""
    found = []
    for step, count in dims:
        if step < 0:
            start, step = start + step * (count - 1), -step
        if step and count > 1:
            found.append((step, count))
    return start, tuple(found)


def _pattern(dims: Dims, run: int) -> tuple[Dims, int] | None:
    """Return the pattern of a region, None where the bytes are contiguous."""
    covered = run
    for step, count in sorted(dims):
        if step > covered:
            return dims, run
        covered = max(covered, step * (count - 1) + covered)
    return None


def _box(side: Side, width: int) -> Region:
    low_p = high_p = side.address // SBUF_PARTITION_STRIDE
    low_b = high_b = side.address % SBUF_PARTITION_STRIDE
    start = low_b
    for step, count in side.dims:
        over, inside = split_step(step, count, start, side.run, width)
        low_p, high_p = low_p + min(over * (count - 1), 0), high_p + max(over * (count - 1), 0)
        low_b, high_b = low_b + min(inside * (count - 1), 0), high_b + max(inside * (count - 1), 0)
    return Region("SBUF", side.core, low_p, high_p - low_p + 1, low_b, high_b + side.run - low_b)
