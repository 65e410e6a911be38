"""Which tensors hold a NaN now, among their written elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from formats.dtypes import Dtype
from formats.errors import NeuronError

if TYPE_CHECKING:
    from neurontools.debugger.execution import Execution
    from neurontools.debugger.maps import Maps

__all__ = ["not_numbers"]

_MOST = 1 << 24  # elements that are looked at: what comes after them in the list is not


def not_numbers(execution: Execution, maps: Maps, space: str, core: int) -> frozenset[str]:
    """Return the names of the tiles of a memory, or of the variables in "HBM", with a NaN in them."""
    left, found = _MOST, set()
    for name, size in _names(execution, maps, space, core):
        left -= size
        if left < 0:
            break
        try:
            value, plane = execution.tensors.elements(name, core)
        except NeuronError:
            continue  # not in a light dump
        with np.errstate(all="ignore"):
            holes = np.isnan(np.asarray(value.array).astype(np.float32, copy=False))
        if (holes if plane is None else holes & plane).any():
            found.add(name)
    return frozenset(found)


def _names(execution: Execution, maps: Maps, space: str, core: int) -> Iterator[tuple[str, int]]:
    """Yield what holds floating-point numbers, with how many; a tile only while nothing newer lies in its place."""
    if space == "HBM":
        for each in (*execution.device.tensors.values(), *execution.device.cores[core].variables.values()):
            held = execution.device.hbm.find(each.address)
            # The screen asks after each step: what nobody touched yet has no NaN, and is not made to be looked at.
            if held is not None and held.touched and _floats(each.dtype):
                yield each.name, int(np.prod(each.shape))
        return
    table = maps.table(space, core)
    for tile in table.tiles:
        last = tile.partition + tile.partitions - 1, tile.offset + tile.partition_bytes - 1
        if _floats(tile.dtype) and table.at(tile.partition, tile.offset) is table.at(*last) is tile:
            yield tile.name, int(np.prod(tile.shape))


def _floats(dtype: str) -> bool:
    try:
        return Dtype.from_numpy_name(dtype).is_float
    except NeuronError:
        return False
