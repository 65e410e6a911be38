"""Which columns of a core's memory have to be filled again before another program finds it fresh.

A page that the host gives costs more than to fill the same page many times over.  What words and transfers write is
known by their extents, so that a memory keeps its pages from one program to the next, and only the columns of those
extents are filled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from formats.regions import Steps

__all__ = ["Columns", "columns_of_runs", "fill_columns"]

Columns = tuple[int, int]
"""The first byte of a partition that is touched, and the one behind the last."""

_BLOCK = 1 << 12  # columns that are filled together: neighbours are cheap, pages that nobody wrote are not


def columns_of_runs(offset: int, dims: Steps, run: int, width: int) -> Columns | None:
    """Return the columns of runs of bytes in an array of partitions of `width` bytes, None where they are not clear."""
    low = offset % width
    high = low + run
    for step, count in dims:
        if step % width:  # else from partition to partition
            reach = step * (count - 1)
            low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return (low, high) if low >= 0 and high <= width else None


def fill_columns(
    array: npt.NDArray[np.generic],
    columns: Iterable[Columns],
    byte: int,
    keeping: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Fill at least these columns of all partitions with a byte, but for those bytes that are to be kept."""
    blocks = 0
    for low, high in columns:
        blocks |= (1 << -(-high // _BLOCK)) - (1 << low // _BLOCK)
    flat, at = array.view(np.uint8), 0
    while blocks:
        gap = (blocks & -blocks).bit_length() - 1
        at, blocks = at + gap, blocks >> gap
        count = (~blocks & (blocks + 1)).bit_length() - 1
        part = slice(at * _BLOCK, (at + count) * _BLOCK)
        if keeping is None:
            flat[:, part].fill(byte)
        else:
            np.copyto(flat[:, part], byte, where=~keeping[:, part])
        at, blocks = at + count, blocks >> count
