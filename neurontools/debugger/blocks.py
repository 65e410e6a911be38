"""Figures of blocks of SBUF and PSUM: bytes written, largest magnitude, sum, NaN; kept until the block changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from neurontools.debugger.last_writes import BLOCK, NEVER, Box, Numbers
from neurontools.debugger.results import Array

__all__ = ["FIGURES", "BlockFigures", "Codes", "code_of", "figures_of", "magnitudes"]

Figures = dict[str, Array]
FIGURES = ("written", "absmax", "mean")
_CHUNK = 1 << 15  # blocks at a time: what they take stays in the cache of a processor


class Codes(NamedTuple):
    """How magnitudes of an element type are compared as unsigned integers: those above `limit` are NaN."""

    unsigned: np.dtype[Any]
    mask: int
    limit: int


@cache
def code_of(dtype: Dtype) -> Codes:
    """Return the codes of an element type; infinity is the largest of a type that has one."""
    kind = numpy_dtype(dtype)
    unsigned = np.dtype(f"u{kind.itemsize}")
    ones = (1 << 8 * kind.itemsize) - 1
    if not dtype.is_float:
        return Codes(unsigned, ones, ones)
    # Without the sign, which that type of scales does not have.
    mask = ones if dtype is Dtype.FLOAT8E8M0 else ones >> 1
    if kind.itemsize == 4:
        # fp32's infinity: to list all four thousand million codes, as below, would take minutes.
        return Codes(unsigned, mask, 0x7F80_0000)
    every = np.arange(mask + 1, dtype=unsigned)
    return Codes(unsigned, mask, int(every[~np.isnan(every.view(kind).astype(np.float32))].max()))


def magnitudes(codes: Array, dtype: Dtype) -> npt.NDArray[np.float32]:
    """Return what codes of magnitudes mean."""
    return np.asarray(codes.view(numpy_dtype(dtype)) if dtype.is_float else codes).astype(np.float32)


def figures_of(data: Array, written: Array, figure: str, dtype: Dtype) -> Figures:
    """Return figures of rows of bytes, (rows, bytes); of elements that are not written whole, only `written` knows.

    "written" gives bytes `written`; "absmax" gives `code`, the largest magnitude, and `count` of elements; "mean" gives
    `sum` and `count`; both tell `nan`, where an element is NaN, which is in neither.
    """
    if figure == "written":
        return {"written": np.count_nonzero(written, axis=1).astype(np.int32)}
    codes = code_of(dtype)
    raw = np.ascontiguousarray(data).view(codes.unsigned)
    whole = written.all(axis=1)
    complete: Any = np.True_
    if not whole.all():
        complete = np.ascontiguousarray(written).reshape(*raw.shape, codes.unsigned.itemsize).all(axis=2)
    size = np.where(whole, raw.shape[1], complete.sum(axis=1) if complete.ndim else 0).astype(np.int32)
    bits = _bits(raw, codes, dtype)
    if complete.ndim:
        bits = np.where(complete, bits, 0).astype(codes.unsigned)
    top = bits.max(axis=1)
    nan = top > codes.limit
    good = bits <= codes.limit
    if figure == "absmax":
        # A NaN would be the largest of its block, and hide the largest number.
        if nan.any():
            top[nan] = np.where(good[nan], bits[nan], 0).max(axis=1)
        return {"code": top, "count": size - (~good).sum(axis=1, dtype=np.int32), "nan": nan}
    with np.errstate(all="ignore"):
        values = np.where(good & complete, raw.view(numpy_dtype(dtype)).astype(np.float64), 0.0)
    return {"sum": values.sum(axis=1), "count": size - (~good).sum(axis=1, dtype=np.int32), "nan": nan}


def _bits(raw: Array, codes: Codes, dtype: Dtype) -> Array:
    if dtype.is_float:
        return np.asarray(raw & codes.unsigned.type(codes.mask))
    kind = numpy_dtype(dtype)
    if kind.kind == "u":
        return raw
    # The magnitude of the lowest signed number does not fit itself, but the unsigned type.
    return np.asarray(np.abs(raw.view(kind)).view(codes.unsigned))


class BlockFigures:
    """One figure of every block of one memory; only blocks of the window asked for are computed, each once."""

    def __init__(self, data: Array, written: Array, figure: str, dtype: Dtype) -> None:
        self.figure, self.dtype = figure, dtype
        rows, width = data.shape
        blocks = width // BLOCK
        self._data, self._written = data.reshape(rows, blocks, BLOCK), written.reshape(rows, blocks, BLOCK)
        nothing = figures_of(data[:1, :BLOCK], np.zeros((1, BLOCK), np.bool_), figure, dtype)
        self._known = {name: np.full((rows, blocks), array[0], array.dtype) for name, array in nothing.items()}
        self._of = np.full((rows, blocks), NEVER, np.int32)
        self.changes = 0  # how often figures were computed: what was made of them is valid until the next time
        self._part, self._turn = (slice(0), slice(0)), -1  # what was looked at last, and when

    def window(self, rows: slice, blocks: slice, numbers: Numbers,
               changed: Callable[[int], Box] | None = None) -> Figures:  # fmt: skip
        """Return figures of blocks, (rows, blocks) each.

        `numbers` are of all blocks, and change where those do; `changed` tells where they have since a turn.
        """
        if changed is None:
            self._look(rows, blocks, numbers)
        else:
            box = changed(self._turn if (rows, blocks) == self._part else -1)
            self._turn, self._part = box.turn, (rows, blocks)
            self._look(slice(max(rows.start, box.top), min(rows.stop, box.bottom)),
                       slice(max(blocks.start, box.left), min(blocks.stop, box.right)), numbers)  # fmt: skip
        return {name: array[rows, blocks] for name, array in self._known.items()}

    def _look(self, rows: slice, blocks: slice, numbers: Numbers) -> None:
        """Recompute what has changed in a part."""
        if rows.start >= rows.stop or blocks.start >= blocks.stop:
            return
        part = rows, blocks
        now, of = numbers[part], self._of[part]
        stale = now != of
        if self.figure == "written":
            # Going forward nothing becomes unwritten: a block that is written whole stays so until its number falls.
            stale &= (self._known["written"][part] < BLOCK) | (now < of)
        chosen = np.flatnonzero(stale)
        if not chosen.size:
            return
        self.changes += 1
        data, written = self._data[part], self._written[part]
        for start in range(0, chosen.size, _CHUNK):
            at = np.unravel_index(chosen[start : start + _CHUNK], stale.shape)
            for name, array in figures_of(data[at], written[at], self.figure, self.dtype).items():
                self._known[name][part][at] = array
        self._of[part] = now
