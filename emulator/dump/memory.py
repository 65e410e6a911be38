"""Which bytes of SBUF, PSUM and HBM a dump keeps: what was written, or what the fault and the present words name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from emulator.access import plan_of
from emulator.device_memory import Allocation
from emulator.dma.regions import regions_of, side_regions
from formats.core.records import Window
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loaded import LoadedWord
    from emulator.sequencer import Sequencer

__all__ = ["Piece", "chip_windows", "full_pieces", "light_pieces", "named_regions", "stored_bytes"]

_PAGE = {"SBUF": 512, "PSUM": 512, "HBM": 4096}  # kept or left out together
# Bounds on program headers, of which an ELF file has 65,534 at most (`formats.core.elf.MOST_HEADERS`).
_RUNS = 6000  # segments of one memory; above that whole partitions are kept
_ALLOCATION_RUNS, _HBM_RUNS = 500, 8000  # of one allocation, of all; above that whole allocations are kept
_LIGHT = 1 << 20  # bytes of memory in a light dump
_OFFSETS = {"SBUF": (0, SBUF_PARTITION_STRIDE), "PSUM": (PSUM_BASE, PSUM_PARTITION_STRIDE)}


class Piece(NamedTuple):
    """Bytes to store at an address; `written` is one bit per byte, None where all of them were written."""

    space: str
    core: int
    address: int
    data: npt.NDArray[np.uint8]
    written: npt.NDArray[np.uint8] | None


def chip_windows(device: Device, pieces: list[Piece], full: bool) -> Iterator[Window]:
    """Yield where SBUF and PSUM of every core lie, and how much of them is stored."""
    for core in device.cores:
        for space, (offset, stride) in _OFFSETS.items():
            plane = core.memory.written(space)
            base = device.addresses.core_base(core.index) + offset
            stored = sum(p.data.size for p in pieces if (p.space, p.core) == (space, core.index))
            written = int(np.count_nonzero(plane))
            rows, width = plane.shape
            yield Window(space, core.index, "", base, stride, rows, width, written, stored, full)


def full_pieces(device: Device) -> Iterator[Piece]:
    """Yield every page that holds a written byte."""
    for core in device.cores:
        for space in _OFFSETS:
            yield from _chip(device, core.index, space, _pages(core.memory.written(space), _PAGE[space]))
    touched = [each for each in device.hbm.allocations.values() if each.touched and each.nbytes]
    most = min(_ALLOCATION_RUNS, _HBM_RUNS // max(1, len(touched)))
    for allocation in touched:
        yield from _allocation(allocation, most)


def light_pieces(device: Device) -> Iterator[Piece]:
    """Yield what the fault and the words that engines stand at name, up to a mebibyte."""
    left = _LIGHT
    masks: dict[tuple[str, int], npt.NDArray[np.bool_]] = {}
    device_ranges: list[tuple[int, int]] = []
    for region in named_regions(device):
        if region.space == "HBM":
            size = min(region.nbytes, left)
            # Collected and merged first: two words that name the same bytes must not become two segments.
            device_ranges.append((region.byte, region.byte + size))
        else:
            plane = device.cores[region.core].memory.written(region.space)
            mask = masks.setdefault((region.space, region.core), np.zeros(plane.shape, np.bool_))
            # on chip `nbytes` is that of one partition: what does not fit is cut by whole partitions
            rows = min(region.partitions, max(left // max(region.nbytes, 1), 0))
            size = rows * region.nbytes
            mask[region.first : region.first + rows, region.byte : region.end] = True
        left -= size
        if left <= 0:
            break
    for (space, core), mask in masks.items():
        yield from _chip(device, core, space, mask)
    for first, behind in _merged(device_ranges):
        found = device.hbm.find(first)
        if found is not None and found.touched:
            end = min(behind, found.address + found.nbytes)
            yield _hbm_piece(found, first - found.address, end - found.address)


def named_regions(device: Device) -> Iterator[Region]:
    """Yield the bytes that the fault, the words engines stand at, and pending transfers touch, the fault's first."""
    fault = device.fault
    if fault is not None and fault.address is not None and 0 <= fault.core < len(device.cores):
        yield from _fault_region(device, fault.space or "", fault.core, *fault.address)
        yield from _word_regions(device)
    engines = [engine for core in device.cores for engine in core.engines.values()]
    if fault is not None:
        engines.sort(key=lambda engine: (engine.core.index, engine.name) != (fault.core, fault.engine))
    for engine in engines:
        yield from _operands(engine)
    width = device.arch.sbuf_bytes.whole
    for queue in device.queues:
        for transfer in queue.pending:
            yield from regions_of((*transfer.reads, *transfer.writes), width)


def _fault_region(device: Device, space: str, core: int, low: int, high: int) -> Iterator[Region]:
    """Yield what is there of the range that a fault names."""
    if space == "HBM":
        found = device.hbm.find(low)
        if found is not None:
            yield Region("HBM", 0, 0, 1, low, min(high, found.address + found.nbytes) - low)
    elif space in _OFFSETS:
        offset, stride = _OFFSETS[space]
        partition, byte = divmod(low - offset, stride)
        rows, width = device.cores[core].memory.array(space).shape
        if 0 <= partition < rows and byte < width:
            yield Region(space, core, partition, 1, byte, max(1, min(high - low, width - byte)))


def _word_regions(device: Device) -> Iterator[Region]:
    """Yield what the word at fault names: its operands, its indices, both sides of the transfer that it starts."""
    fault = device.fault
    assert fault is not None
    engine = device.cores[fault.core].engines.get(fault.engine)
    loaded = next((one for one in engine.words if one.pc == fault.pc), None) if engine is not None else None
    if engine is None or loaded is None:
        return
    yield from _regions_of_word(engine, loaded)
    if loaded.transfer is None:
        return
    try:
        parts = loaded.transfer().parts
    except NeuronError:
        return  # the indices themselves could not be read
    width = device.arch.sbuf_bytes.whole
    for source, target in (pair for part in parts for pair in part.copies):
        for side in (source, target):
            for region in side_regions(side, width):
                yield from _inside(device, region)


def _inside(device: Device, region: Region) -> Iterator[Region]:
    """Yield the part of a region that is there."""
    if region.space == "HBM":
        found = device.hbm.find(max(region.byte, 0))
        if found is not None:
            end = min(region.end, found.address + found.nbytes)
            yield Region("HBM", region.core, 0, 1, region.byte, end - region.byte)
        return
    if region.core < len(device.cores):
        rows, width = device.cores[region.core].memory.array(region.space).shape
        behind, end = min(region.behind, rows), min(region.end, width)
        if 0 <= region.first < behind and 0 <= region.byte < end:
            yield Region(region.space, region.core, region.first, behind - region.first, region.byte, end - region.byte)


def _operands(engine: Sequencer) -> Iterator[Region]:
    """Yield the operands of the words in flight and of the next one; those out of bounds have no bytes to keep."""
    words = [flight.loaded for flight in engine.in_flight]
    if engine.position < engine.count:
        words.append(engine.words[engine.position])
    for loaded in words:
        yield from _regions_of_word(engine, loaded)


def _regions_of_word(engine: Sequencer, loaded: LoadedWord) -> Iterator[Region]:
    for plan in plan_of(type(loaded.word)):
        try:
            operand = engine.core.resolver.resolve(loaded.word, plan, engine.name)
        except NeuronError:
            continue
        if operand is not None:
            yield from operand.regions


def _pages(plane: npt.NDArray[np.bool_], page: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the pages that hold a written byte."""
    cut = plane.reshape(plane.shape[0], -1, page)
    return np.repeat(cut.any(axis=2), page, axis=1)


def _chip(device: Device, core: int, space: str, mask: npt.NDArray[np.bool_]) -> Iterator[Piece]:
    """Yield the bytes of a memory that a mask selects, partition by partition."""
    memory = device.cores[core].memory
    array, plane = memory.array(space), memory.written(space)
    offset, stride = _OFFSETS[space]
    base = device.addresses.core_base(core) + offset
    runs = [(row, first, behind) for row in np.flatnonzero(mask.any(axis=1)) for first, behind in _runs(mask[row])]
    if len(runs) > _RUNS:
        rows = {row for row, _, _ in runs}
        runs = [(row, 0, array.shape[1]) for row in sorted(rows)]
    for row, first, behind in runs:
        address = base + int(row) * stride + first
        yield Piece(space, core, address, array[row, first:behind], _bits(plane[row, first:behind]))


def _allocation(allocation: Allocation, most: int) -> Iterator[Piece]:
    if allocation.whole:
        yield Piece("HBM", 0, allocation.address, allocation.data, None)
        return
    plane, page = allocation.written, _PAGE["HBM"]
    whole = plane.size // page * page
    pages = np.append(plane[:whole].reshape(-1, page).any(axis=1), plane[whole:].any())
    runs = [(first * page, min(behind * page, plane.size)) for first, behind in _runs(pages)]
    if len(runs) > most:
        runs = [(0, plane.size)]
    for first, behind in runs:
        yield _hbm_piece(allocation, first, behind)


def _hbm_piece(allocation: Allocation, first: int, behind: int) -> Piece:
    written = None if allocation.whole else _bits(allocation.written[first:behind])
    return Piece("HBM", 0, allocation.address + first, allocation.data[first:behind], written)


def _bits(plane: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8] | None:
    return None if plane.all() else np.packbits(plane, bitorder="little")


def _runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (first, behind) of every run of True."""
    edges = np.flatnonzero(np.diff(mask.view(np.int8), prepend=0, append=0))
    return [(int(first), int(behind)) for first, behind in edges.reshape(-1, 2)]


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, behind in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], behind)
        elif behind > first:
            found.append((first, behind))
    return found


def stored_bytes(pieces: list[Piece], allocation: Allocation) -> int:
    """Return how many bytes of an allocation are among the pieces."""
    end = allocation.address + allocation.nbytes
    return sum(p.data.size for p in pieces if p.space == "HBM" and allocation.address <= p.address < end)
