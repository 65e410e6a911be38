"""What is known of some bytes: the tile they belong to, what they hold, what wrote there last; and HBM by variables."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff import SourceLocation
from formats.neff.tiles import Tile
from formats.regions import Region
from neurontools.debugger.last_writes import NEVER, blocks_of
from neurontools.debugger.maps import Maps
from neurontools.debugger.results import Array

if TYPE_CHECKING:
    from emulator.journal import Entry
    from emulator.placement import DeviceTensor
    from neurontools.debugger.execution import Execution

__all__ = ["ByteFacts", "Variable", "facts_of", "variables_of"]


class ByteFacts(NamedTuple):
    """A range of bytes in SBUF or PSUM and its first element in the tile that lies there; `tile` is "" without one.

    `element` is its place in the tile and `value` what it holds, None where it is not written. `number`,
    `time_ps`, `owner` (core, engine or queue, pc, "instruction" or "dma"), `text` and `source` are of what wrote last
    into any of the bytes, None and "" where nothing did or no journal tells.
    """

    region: Region
    written: int
    tile: str
    dtype: str
    element: tuple[int, ...]
    value: float | None
    number: int | None
    time_ps: int | None
    owner: tuple[int, str, int, str] | None
    text: str
    source: SourceLocation | None


class Variable(NamedTuple):
    """A variable or other allocation in HBM: `written` bytes of it are, `strip` is the share in equal parts."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    address: int
    nbytes: int
    written: int
    strip: tuple[float, ...]


def facts_of(execution: Execution, maps: Maps, region: Region) -> ByteFacts:
    """Return what is known of a region in SBUF or PSUM; NotFoundError for one outside its memory."""
    if region.space not in ("SBUF", "PSUM") or not 0 <= region.core < len(execution.device.cores):
        raise NotFoundError(f"no {region.space} of core {region.core}")
    memory = execution.device.cores[region.core].memory
    plane = memory.written(region.space)
    part = plane[region.first : region.behind, region.byte : region.end]
    if part.shape != (region.partitions, region.nbytes) or not part.size:
        raise NotFoundError(f"{region.text} is not inside {region.space}")
    tile = maps.table(region.space, region.core).at(region.first, region.byte)
    name = dtype = ""
    element: tuple[int, ...] = ()
    value = None
    if tile is not None:
        name, dtype = tile.name, tile.dtype
        element, value = _element(memory.array(region.space), plane, tile, region)
    entry = _last(execution, maps, region)
    if entry is None:
        return ByteFacts(region, int(np.count_nonzero(part)), name, dtype, element, value, None, None, None, "", None)
    word = execution.word_of(entry.owner)
    text, source = execution.program.text(*word), execution.program.source(*word)
    return ByteFacts(region, int(np.count_nonzero(part)), name, dtype, element, value, entry.number, entry.time_ps,
                     entry.owner, text, source)  # fmt: skip


def _element(data: Array, plane: Array, tile: Tile, region: Region) -> tuple[tuple[int, ...], float | None]:
    kind = numpy_dtype(Dtype.from_numpy_name(tile.dtype))
    offset = (region.byte - tile.offset) // kind.itemsize
    inner = np.unravel_index(offset, tile.shape[1:]) if len(tile.shape) > 1 else ()
    start = tile.offset + offset * kind.itemsize
    place = region.first, slice(start, start + kind.itemsize)
    index = (region.first - tile.partition, *(int(at) for at in inner))
    return index, float(data[place].view(kind)[0]) if plane[place].all() else None


def _last(execution: Execution, maps: Maps, region: Region) -> Entry | None:
    """Return the last event that wrote into a region: it is no later than the last one into its blocks."""
    numbers = maps.numbers(region.space, region.core)
    if numbers is None or execution.log is None:
        return None
    rows = slice(region.first, region.behind)
    latest = int(numbers[rows, blocks_of(region.byte, region.nbytes, None)].max())
    if latest == NEVER:
        return None
    return execution.log.last_write((region,), execution.log.count_before(latest + 1))


def variables_of(execution: Execution, parts: int = 0) -> tuple[Variable, ...]:
    """Return what HBM holds by address, each with the written-ness of `parts` parts of it."""
    named: dict[int, DeviceTensor] = {}
    for row in _tensors(execution):
        named.setdefault(row.address, row)
    found = []
    for address, item in sorted(execution.device.hbm.allocations.items()):
        tensor = named.get(address)
        edges = [item.nbytes * part // max(parts, 1) for part in range(max(parts, 1) + 1)]
        if item.whole or not item.touched:
            # Written whole or not at all: its plane of written bytes, which may never have been made, is not asked for.
            counts = [(high - low) * item.whole for low, high in pairwise(edges)]
        else:
            plane = item.written
            counts = [int(np.count_nonzero(plane[low:high])) for low, high in pairwise(edges)]
        strip = tuple(n / max(high - low, 1) for n, (low, high) in zip(counts, pairwise(edges), strict=True))
        kind, dtype, shape = ("", "", ()) if tensor is None else (tensor.kind, tensor.dtype, tensor.shape)
        found.append(Variable(item.name if tensor is None else tensor.name, kind, dtype, shape, address, item.nbytes,
                              sum(counts), strip if parts else ()))  # fmt: skip
    return tuple(found)


def _tensors(execution: Execution) -> list[DeviceTensor]:
    device = execution.device
    return [*device.tensors.values(), *(item for core in device.cores for item in core.variables.values())]
