"""The bytes that a transfer touches, as regions for observers: watchpoints, race and initialisation checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, product

from emulator.dma.rows import Rows, RowsRequest
from emulator.dma.transfer import Request, Side, Transfer
from emulator.dma.views import box_of
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region, Shape, shape_of

__all__ = ["TransferRegions", "places_of", "regions_of", "regions_of_rows", "shape_of_side", "side_regions"]

_made = tuple.__new__  # a named tuple in half the time


class TransferRegions:
    """What a transfer touches, worked out when somebody asks first; `width` is the bytes of an SBUF partition."""

    __slots__ = ("_transfer", "_width", "read_places", "read_regions", "write_places", "write_regions")
    read_places: tuple[Region, ...]
    read_regions: tuple[Region, ...]
    write_places: tuple[Region, ...]
    write_regions: tuple[Region, ...]

    def __init__(self, transfer: Transfer, width: int) -> None:
        self._transfer, self._width = transfer, width

    def __getattr__(self, name: str) -> tuple[Region, ...]:
        """Return the bytes read or written, which are attributes from then on."""
        if name == "read_regions" or name == "read_places":
            self.read_places = self.read_regions = found = _regions(self._transfer, self._width, writes=False)
        elif name == "write_regions" or name == "write_places":
            self.write_places = self.write_regions = found = _regions(self._transfer, self._width, writes=True)
        else:
            raise AttributeError(f"transfers have no {name!r}", name=name, obj=self)
        return found


def places_of(transfer: Transfer, width: int) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Return the regions that a transfer reads and writes; `width` is the bytes of an SBUF partition."""
    request = transfer.request
    if type(request) is Request:
        parts = request.parts
        if len(parts) == 1 and len(parts[0].copies) == 1:  # nearly all
            ((source, target),) = parts[0].copies
            return side_regions(source, width), side_regions(target, width)
    return _regions(transfer, width, writes=False), _regions(transfer, width, writes=True)


def _regions(transfer: Transfer, width: int, writes: bool) -> tuple[Region, ...]:
    request = transfer.request
    if isinstance(request, RowsRequest) and not request.rows.is_cut and (writes or not request.rows.adds):
        return regions_of_rows(request.rows, int(writes), width)
    return regions_of(transfer.writes if writes else transfer.reads, width)


def regions_of_rows(rows: Rows, which: int, width: int) -> tuple[Region, ...]:
    """Return the regions of rows that are not cut, of their sources (0) or targets (1)."""
    side, places = rows.sides[which], rows.places(which).tolist()
    core, dims, run = side.core, side.dims, side.run
    if side.space == "HBM":
        shift, reach, *_ = shape = _shape(dims, run)
        pattern = shape.pattern
        return tuple([_made(Region, ("HBM", core, 0, 1, place + shift, reach, pattern)) for place in places])
    if not dims or (len(dims) == 1 and dims[0][0] == SBUF_PARTITION_STRIDE):
        count = dims[0][1] if dims else 1
        found = [divmod(place, SBUF_PARTITION_STRIDE) for place in places]
        return tuple([_made(Region, ("SBUF", core, partition, count, byte, run, None)) for partition, byte in found])
    return regions_of([side._replace(address=place) for place in places], width)


def regions_of(sides: Sequence[Side], width: int) -> tuple[Region, ...]:
    """Return the regions of several sides; `width` is the bytes of an SBUF partition."""
    if len(sides) == 1:
        return side_regions(sides[0], width)
    return tuple(region for side in sides for region in side_regions(side, width))


def shape_of_side(side: Side) -> Shape:
    """Return the shape of the bytes of a side of device memory."""
    return _shape(side.dims, side.run)


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
        shift, reach, run, steps = shape
        pattern = (steps, run) if steps else None
        return (_made(Region, ("HBM", side.core, 0, 1, side.address + shift, reach, pattern)),)
    if len(dims) == 1 and dims[0][0] == SBUF_PARTITION_STRIDE:  # a row of partitions, the usual shape
        partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
        return (_made(Region, ("SBUF", side.core, partition, dims[0][1], byte, side.run, None)),)
    partition, byte = divmod(side.address, SBUF_PARTITION_STRIDE)
    # Steps from partition to partition, and steps inside one: nothing that has to be worked out of both.
    across, inner = [], []
    for step, count in dims:
        if not step % SBUF_PARTITION_STRIDE:
            across.append((step // SBUF_PARTITION_STRIDE, count))
        elif step > 0 and byte + step * (count - 1) + side.run <= width:
            inner.append((step, count))
        else:
            break
    else:
        if not across or (len(across) == 1 and across[0][0] == 1):
            shape = _shape(tuple(inner), side.run)
            count = across[0][1] if across else 1
            return (Region("SBUF", side.core, partition, count, byte + shape.shift, shape.reach, shape.pattern),)
    box, steps = box_of(side, width)
    counts = [count for _, count in side.dims]
    if any(over and inside for over, inside in steps):
        return (box,)
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
