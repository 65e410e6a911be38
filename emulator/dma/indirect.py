"""From indirect DMA words to the parts of a transfer: indices are read from SBUF when the engine starts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from emulator.dma.direct import DirectContext, named_dtype, pattern_side, side_of
from emulator.dma.transfer import Part, Side, check_sizes
from emulator.dma.views import sbuf_geometry, strided
from emulator.dtypes import numpy_dtype
from emulator.errors import LoadError
from formats.isa import DmaIndirect
from formats.isa.operand import DmaPattern

if TYPE_CHECKING:
    from emulator.context import DeviceContext

__all__ = ["translate_indirect"]

_POINT = DmaPattern((1, 1), (1, 1))


def translate_indirect(
    word: DmaIndirect, context: DirectContext, device: DeviceContext, where: str
) -> Callable[[], tuple[Part, ...]]:
    """Return the function that reads the indices and gives the parts of the transfer, a row each.

    Raises LoadError naming a variable or table entry that does not exist, or sides that do not fit together.
    """
    sides: list[Side] = []
    for name, address, pattern, run, code in (
        ("src", word.src, word.src_pattern, word.src_element_size, word.src_dtype),
        ("dst", word.dst, word.dst_pattern, word.dst_element_size, word.dst_dtype),
    ):
        dtype = named_dtype(code, where)
        side = side_of(address, _POINT, run, dtype, context, f"{where}: {name}")
        steps, counts = pattern
        dims = tuple((step, count) for step, count in zip(reversed(steps), reversed(counts), strict=True) if count != 1)
        sides.append(side._replace(dims=dims))
    check_sizes(sides[0], sides[1], where)
    if [count for _, count in sides[0].dims] != [count for _, count in sides[1].dims]:
        raise LoadError(f"{where}: the patterns of both sides have different counts")
    index = pattern_side(word.index, word.channels, named_dtype(word.index_dtype, where), context.core)
    if word.rows > index.nbytes // index.dtype.size:
        raise LoadError(f"{where} has {word.rows} rows and {index.nbytes // index.dtype.size} indices")
    moving, fixed = (1, 0) if word.scatter else (0, 1)
    operation = "add" if word.accumulate else "copy" if sides[0].dtype == sides[1].dtype else "cast"

    def parts() -> tuple[Part, ...]:
        found = []
        for row, number in enumerate(_indices(index, device, where)[: word.rows]):
            pair = sides.copy()
            pair[moving] = _shifted(sides[moving], int(number) * word.index_step)._replace(
                chosen=(int(number), row, word.index_step)
            )
            pair[fixed] = _shifted(sides[fixed], row * word.row_step)
            for source, target in _kept(pair[0], pair[1], moving) if word.skip else ((pair[0], pair[1]),):
                copies = ((target, target), (source, target)) if word.accumulate else ((source, target),)
                found.append(Part(operation, copies))
        return tuple(found)

    return parts


def _indices(index: Side, device: DeviceContext, where: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the indices, down the partitions first."""
    memory = device.cores[index.core].memory.bound("SBUF")

    def refuse(low: int, high: int, allowed: str) -> None:
        raise LoadError(f"{where}: the index tile leaves SBUF: {allowed}")

    geometry = sbuf_geometry(index, memory.shape[1], memory.shape[0], refuse)
    values = strided(memory, geometry, index, numpy_dtype(index.dtype))
    return values.reshape(values.shape[0], -1).T.reshape(-1).astype(np.int64)


def _shifted(side: Side, distance: int) -> Side:
    return side._replace(address=side.address + distance)


def _inside(side: Side) -> bool:
    """Return whether a side stays inside its variable; on chip nothing is known but the partition's end."""
    low, high = side.span
    return side.limit is None or (side.limit.address <= low and high <= side.limit.address + side.limit.nbytes)


def _kept(source: Side, target: Side, moving: int) -> Iterator[tuple[Side, Side]]:
    """Yield the pair, or what is left of it run by run where the indirect side leaves its variable."""
    if _inside((source, target)[moving]):
        yield source, target
        return
    for place in product(*(range(count) for _, count in source.dims)):
        pair = [
            _shifted(side, sum(step * at for (step, _), at in zip(side.dims, place, strict=True)))._replace(dims=())
            for side in (source, target)
        ]
        if _inside(pair[moving]):
            yield pair[0], pair[1]
