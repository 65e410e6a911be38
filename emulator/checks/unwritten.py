"""Which elements of operands have bytes that nothing wrote: tiles are alike, and so is what was not written of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.checks.mark_rows import MarkRows, Stencil, Which, distinct, in_use, stencil_of
from emulator.checks.poison import WORDS, box_of_missing, lanes_of
from emulator.checks.written import Written
from emulator.core import Core
from emulator.extents import Plane
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["KNOWN", "Unwritten", "direction_of", "is_row", "offset_of"]

_KEPT = 1 << 7
KNOWN = 1 << 13  # bytes of rows, each kind once, of which is kept what they lack


class _Lack(NamedTuple):
    """Which elements of rows have bytes that nothing wrote; the box around those bytes, and how many they are."""

    stencil: Stencil
    box: tuple[Region, int] | None


@lru_cache(_KEPT)
def _lack(which: bytes, written: bytes, kinds: int, size: int) -> _Lack:
    """Return what rows of elements of so many bytes lack, by whether each of these is written."""
    partitions, bytewise = distinct(np.frombuffer(which, np.intp), np.frombuffer(written, np.bool_).reshape(kinds, -1))
    kinds = bytewise.shape[0]
    lacking = np.logical_or.reduce(~bytewise.reshape(kinds, -1, size), 2)
    around = Region("", 0, 0, partitions.size, 0, bytewise.shape[1])
    return _Lack(stencil_of(partitions, lacking.astype(np.int16)), box_of_missing(around, ~bytewise, partitions))


class Unwritten:
    """Which elements of an operand have bytes that nothing wrote, each kind of row once.

    What is written is what the memory says now, or what was `written` up to a note of the run.
    """

    __slots__ = ("_core", "_direction", "_lack", "_operand", "_which", "_words", "_written")

    def __init__(self, core: Core, operand: Operand, written: Written | None = None) -> None:
        view, region = operand.view, operand.regions[0]
        self._core, self._operand, self._written = core, operand, written
        lanes = lanes_of(core, operand)
        self._lack: _Lack | None = None
        self._direction = direction = direction_of(view, region)
        first, byte = region.first, 0
        if not direction or lanes is not None:
            first, byte = divmod(offset_of(core, operand), core.memory.bound(region.space).shape[1])
        which, rows = self._rows(region.space, first, view.shape[0], region.byte, region.end)
        if lanes is not None:  # the others are asked for by nobody
            which, rows = in_use(which[lanes][np.maximum(np.cumsum(lanes) - 1, 0)], rows)
        if direction:
            if rows.size > KNOWN:
                which, rows = distinct(which, rows)
            if lanes is None and rows.size <= KNOWN:
                # Tiles are alike, and so is what was not written of them.
                self._lack = _lack(which.tobytes(), rows.tobytes(), rows.shape[0], view.itemsize)
                return
            self._which = which
            self._words = np.ascontiguousarray(rows).view(WORDS[view.itemsize])[:, ::direction]
            return
        # What is written of an element's bytes, as one number.
        rows = np.ascontiguousarray(rows)
        shape, strides = (rows.shape[0], *view.shape[1:]), (rows.strides[0], *view.strides[1:])
        words = np.ndarray(shape, WORDS[view.itemsize], rows, byte - region.byte, strides)
        self._which, self._words = distinct(which, words.reshape(words.shape[0], -1))

    def _rows(self, space: str, first: int, partitions: int, low: int, high: int) -> tuple[Which, Plane]:
        """Return which row each of some partitions has, and the rows: which of some bytes are written."""
        if self._written is not None:
            return self._written.rows(self._core.index, space, first, partitions, low, high)
        memory = self._core.memory
        memory.notes.settle()
        return np.arange(partitions), memory.plane(space)[first : first + partitions, low:high]

    @property
    def is_any(self) -> bool:
        """Return whether there surely is such an element."""
        return self._lack is not None and self._lack.stencil.is_any

    @property
    def is_none(self) -> bool:
        """Return whether there surely is no such element."""
        return self._lack is not None and not self._lack.stencil.is_any

    def marks(self, number: int) -> MarkRows:
        """Return marks of the operand: a number for each element that has such a byte."""
        if self._lack is not None:
            stencil = self._lack.stencil
            return (stencil if self._direction > 0 else stencil.backwards).marks(number)
        written = self._words.dtype.type(int.from_bytes(b"\1" * self._words.itemsize, "little"))
        return MarkRows(self._which, np.multiply(self._words != written, np.int16(number), dtype=np.int16), number)

    def boxes(self) -> list[tuple[Region, int]]:
        """Return the box around such bytes of each region that has some, and how many they are."""
        found: list[tuple[Region, int] | None] = []
        if self._lack is not None:
            if self._lack.box is not None:
                space, core, top, _, byte, _, _ = self._operand.regions[0]
                (_, _, first, partitions, low, nbytes, _), count = self._lack.box
                found.append((Region(space, core, top + first, partitions, byte + low, nbytes), count))
        else:
            for region in self._operand.regions:
                which, rows = self._rows(region.space, region.first, region.partitions, region.byte, region.end)
                found.append(box_of_missing(region, ~rows, which))
        return [box for box in found if box is not None]


def is_row(operand: Operand) -> bool:
    """Return whether an operand is a short row of bytes in each of some partitions."""
    regions = operand.regions
    return len(regions) == 1 and regions[0].pattern is None and regions[0].nbytes <= KNOWN


def direction_of(view: npt.NDArray[Any], region: Region) -> int:
    """Return 1 where each partition of a view is all of its region, element by element, -1 backwards; 0 else."""
    row = view[0]
    if region.pattern is not None or row.nbytes != region.nbytes:
        return 0
    if row.flags.c_contiguous:
        return 1
    return -1 if row.shape[-1] == row.size and row.strides[-1] == -row.itemsize else 0


def offset_of(core: Core, operand: Operand) -> int:
    """Return the byte of a memory where the view of an operand begins."""
    memory = core.memory.bound(operand.regions[0].space)
    begin: int = operand.view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return begin
