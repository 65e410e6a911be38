"""From indirect DMA words to the rows of a transfer: indices are read from SBUF when the engine starts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dma.direct import DirectContext, named_dtype, pattern_side, side_of
from emulator.dma.rows import Numbers, Rows
from emulator.dma.transfer import Side, check_sizes
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
) -> Callable[[], Rows]:
    """Return the function that reads the indices and gives the rows of the transfer.

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
    source, target = sides
    check_sizes(source, target, where)
    if [count for _, count in source.dims] != [count for _, count in target.dims]:
        raise LoadError(f"{where}: the patterns of both sides have different counts")
    index = pattern_side(word.index, word.channels, named_dtype(word.index_dtype, where), context.core)
    if word.rows > index.nbytes // index.dtype.size:
        raise LoadError(f"{where} has {word.rows} rows and {index.nbytes // index.dtype.size} indices")
    moving = 1 if word.scatter else 0
    operation = "add" if word.accumulate else "copy" if source.dtype == target.dtype else "cast"

    read = _reader(index, device, where)

    def rows() -> Rows:
        numbers = read()[: word.rows]
        return Rows(operation, source, target, moving, numbers, word.index_step, word.row_step, bool(word.skip))

    return rows


def _reader(index: Side, device: DeviceContext, where: str) -> Callable[[], Numbers]:
    """Return the function that reads the indices, down the partitions first."""

    def refuse(low: int, high: int, allowed: str) -> None:
        raise LoadError(f"{where}: the index tile leaves SBUF: {allowed}")

    def view() -> npt.NDArray[Any]:
        memory = device.cores[index.core].memory.laid("SBUF")
        geometry = sbuf_geometry(index, memory.shape[1], memory.shape[0], refuse)
        found = strided(memory, geometry, index, numpy_dtype(index.dtype))
        return found.transpose(*range(1, found.ndim), 0)

    known: npt.NDArray[Any] | None = None

    def read() -> Numbers:
        nonlocal known
        if known is None:
            known = view()
        return known.astype(np.int64).reshape(-1)

    return read
