"""Ranges of bytes that a person names: an address, so many bytes, a tensor, a slice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side
from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.neff.tiles import Tile
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region
from neurontools.debugger.errors import UsageError
from neurontools.debugger.memory import parse_spot
from neurontools.debugger.names import parse_core, parse_number
from neurontools.debugger.tensors import NAMED, Index, parse_index

if TYPE_CHECKING:
    from neurontools.debugger.execution import Execution

__all__ = ["regions_of_text"]


def regions_of_text(execution: Execution, text: str, core: int) -> tuple[tuple[Region, ...], str]:
    """Return the regions of "ADDRESS", "ADDRESS, BYTES", "TENSOR" or "TENSOR[slice]", and how it is shown.

    Raises UsageError for what means nothing or selects nothing, NotFoundError for what does not exist.
    """
    device, (chosen, named) = execution.device, parse_core(text)
    core = core if chosen is None else chosen
    place, comma, rest = (text, "", "") if "[" in text else text.partition(",")
    spot = parse_spot(device, place.strip(), core)
    if spot is None:
        if comma:
            raise UsageError("a number of bytes goes with an address; for a tensor, use a slice")
        return _tensor(execution, named, core), text
    size = parse_number(rest.strip(), "a number of bytes") if comma else 1
    if size < 1 or spot.address + size > spot.end:
        raise NotFoundError(f"{size} bytes do not fit at {place.strip()}; there are {spot.end - spot.address}")
    many = "byte" if size == 1 else "bytes"
    if spot.space == "HBM":
        return (Region("HBM", 0, 0, 1, spot.address, size),), f"{size} {many} of {spot.name} at {spot.address:#x}"
    assert spot.core is not None and spot.partition is not None
    shown = f"{size} {many} of nc{spot.core} {spot.space} partition {spot.partition} at {spot.address:#x}"
    return (Region(spot.space, spot.core, spot.partition, 1, spot.address, size),), shown


def _tensor(execution: Execution, text: str, core: int) -> tuple[Region, ...]:
    matched = NAMED.fullmatch(text)
    if matched is None:
        raise UsageError(f"{text!r} is not an ADDRESS, TENSOR or TENSOR[slice]")
    found = execution.tensors.find(matched[1], core)
    if isinstance(found, Tile):
        execution.tensors.need_inside(found, core)
        dtype = Dtype.from_numpy_name(found.dtype)
        shape, start = found.shape, found.partition * SBUF_PARTITION_STRIDE + found.offset
    else:
        dtype = Dtype.from_numpy_name(found.dtype or "uint8")
        shape, start = (found.shape if found.dtype else (found.nbytes,)), found.address
    size = numpy_dtype(dtype).itemsize
    strides = [size] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    if isinstance(found, Tile):
        strides[0] = SBUF_PARTITION_STRIDE
    offset, dims = _selected(shape, strides, matched[2], text)
    space = "HBM" if not isinstance(found, Tile) else "SBUF"
    side = Side(space, core, start + offset, dims, size, dtype)
    regions = side_regions(side, execution.device.arch.sbuf_bytes.whole)
    return tuple(region._replace(space=found.space) for region in regions) if isinstance(found, Tile) else regions


def _selected(
    shape: tuple[int, ...], strides: list[int], index: str | None, text: str
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return offset and (step, count) pairs of what an index selects; no byte is looked at."""
    # An array of strides without memory: NumPy itself says where an index leads.
    whole = as_strided(np.zeros(1, np.uint8), shape, strides, writeable=False)
    chosen: Index = () if index is None else parse_index(index)
    parts = chosen if isinstance(chosen, tuple) else (chosen,)
    if ... not in parts:
        parts = (*parts, ...)  # a view even of one element
    try:
        view = whole[parts]
    except (IndexError, TypeError, ValueError) as error:
        raise NotFoundError(f"{text}: {error} (shape {list(shape)})") from None
    if not view.size:
        raise UsageError(f"{text} selects nothing")
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return offset, tuple((step, count) for step, count in zip(view.strides, view.shape, strict=True) if count > 1)
