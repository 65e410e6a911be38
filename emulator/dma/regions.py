"""The bytes that a transfer touches, as regions for observers: watchpoints, race and initialisation checks."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby, product

from emulator.dma.transfer import Side, Transfer
from emulator.dma.views import box_of
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region, Shape, shape_of

__all__ = ["TransferRegions", "regions_of", "side_regions"]


class TransferRegions:
    """What a transfer touches, worked out when somebody asks; `width` is the bytes of an SBUF partition."""

    __slots__ = ("_transfer", "_width")

    def __init__(self, transfer: Transfer, width: int) -> None:
        self._transfer, self._width = transfer, width

    @property
    def read_regions(self) -> tuple[Region, ...]:
        """Return the bytes read."""
        return regions_of(self._transfer.reads, self._width)

    @property
    def write_regions(self) -> tuple[Region, ...]:
        """Return the bytes written."""
        return regions_of(self._transfer.writes, self._width)


def regions_of(sides: tuple[Side, ...], width: int) -> tuple[Region, ...]:
    """Return the regions of several sides; `width` is the bytes of an SBUF partition."""
    if len(sides) == 1:
        return side_regions(sides[0], width)
    return tuple(region for side in sides for region in side_regions(side, width))


@lru_cache(1 << 10)
def _shape(dims: tuple[tuple[int, int], ...], run: int) -> Shape:
    return shape_of(dims, run, unit=1)


def side_regions(side: Side, width: int) -> tuple[Region, ...]:
    """Return the regions of one side: one for HBM, one per run of partitions for SBUF.

    A side that moves diagonally, partition and byte at once, gives the box around it.
    """
    dims = side.dims
    if side.space == "HBM":
        shape = _shape(dims, side.run)
        return (Region("HBM", side.core, 0, 1, side.address + shape.shift, shape.reach, shape.pattern),)
    if len(dims) == 1 and dims[0][0] == SBUF_PARTITION_STRIDE:  # a row of partitions, the usual shape
        partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
        return (Region("SBUF", side.core, partition, dims[0][1], byte, side.run),)
    box, steps = box_of(side, width)
    counts = [count for _, count in side.dims]
    if any(over and inside for over, inside in steps):
        return (box,)
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    across = [(over, count) for (over, _), count in zip(steps, counts, strict=True) if over]
    shape = shape_of(((inside, count) for (_, inside), count in zip(steps, counts, strict=True)), side.run, unit=1)
    rows = sorted({partition + sum(p) for p in product(*(range(0, step * count, step) for step, count in across))})
    found = []
    for _, group in groupby(enumerate(rows), lambda pair: pair[1] - pair[0]):
        members = [row for _, row in group]
        found.append(
            Region("SBUF", side.core, members[0], len(members), byte + shape.shift, shape.reach, shape.pattern)
        )
    return tuple(found)
