"""Maps of SBUF and PSUM: a window of partitions and bytes in cells, by tensor, age, value, written-ness or traffic.

A cell is `row_step` partitions by `byte_step` bytes. Only the window is read, and of whole blocks of 64 bytes only what
changed since the last look.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.journal import Journal
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.debugger.blocks import BlockFigures, figures_of, magnitudes
from neurontools.debugger.errors import UsageError
from neurontools.debugger.last_writes import BLOCK, NEVER, LastWrites, Numbers, blocks_of
from neurontools.debugger.results import Array
from neurontools.debugger.tile_table import TileTable
from neurontools.debugger.traffic import Traffic
from neurontools.debugger.window import Window

if TYPE_CHECKING:
    from formats.regions import Region
    from neurontools.debugger.execution import Execution

__all__ = ["MODES", "MapCells", "Maps", "Window", "cells_of_regions"]

MODES = ("tensor", "age", "value", "unwritten", "traffic")


class MapCells(NamedTuple):
    """A map: `cells` are (rows, columns), cells outside the memory left out.

    By "tensor" they are indexes into `names`, -1 where no tile has begun to live; by "age" numbers of the events that
    wrote last, -1 for none, `events` having happened; by "value" the largest magnitude or the mean of the elements,
    NaN without any; by "unwritten" the share of bytes that nothing wrote; by "traffic" how many
    events wrote into one of its blocks, the most of them. `marked` tells, by "value", which cells hold
    a NaN; by "tensor", which hold written bytes. `kept` is false where no journal tells when bytes were written; a core
    dump keeps the end of one, and what was written before that counts as written by event 0.
    """

    window: Window
    mode: str
    cells: Array
    marked: npt.NDArray[np.bool_]
    names: tuple[str, ...] = ()
    events: int = 0
    kept: bool = True


class Maps:
    """Maps of one device; where a session begins again on another one, new ones are made."""

    def __init__(self, execution: Execution) -> None:
        self.device, self._execution = execution.device, execution
        self._writes = None if execution.log is None else LastWrites(execution.log)
        self._traffic = None if execution.log is None else Traffic(execution.log)
        self._whole = isinstance(execution.log, Journal)
        self._tables: dict[tuple[str, int], TileTable] = {}
        self._figures: dict[tuple[str, int, str], BlockFigures] = {}
        self._counted: dict[tuple[str, int], tuple[Window, int, Array]] = {}  # window, changes, written bytes a cell

    def numbers(self, space: str, core: int) -> Numbers | None:
        """Return the number of the event that wrote each block last, None without a journal."""
        return None if self._writes is None else self._writes.numbers(space, core)

    def _versions(self, space: str, core: int) -> Numbers:
        """Return numbers that change where blocks do: without a whole journal, all of them with every completion."""
        if self._whole and self._writes is not None:
            return self._writes.numbers(space, core)
        rows, width = self.size(space, core)
        return np.full((rows, width // BLOCK), self.device.steps, np.int32)

    def size(self, space: str, core: int) -> tuple[int, int]:
        """Return partitions and bytes of each; NotFoundError for a memory that does not exist."""
        if space not in ("SBUF", "PSUM") or not 0 <= core < len(self.device.cores):
            raise NotFoundError(f"no {space} of core {core}; there are {len(self.device.cores)} cores")
        rows, width = self.device.cores[core].memory.array(space).shape
        return rows, width

    def used(self, space: str, core: int) -> tuple[int, int]:
        """Return the range of bytes that the program's tiles lie in, everything where it has none."""
        _, width = self.size(space, core)
        # A file may say that a tile lies anywhere; what lies nowhere is not on the map.
        tiles = [tile for tile in self.table(space, core).tiles if tile.offset < width]
        first = min((tile.offset for tile in tiles), default=0)
        return first // BLOCK * BLOCK, min(max((t.offset + t.partition_bytes for t in tiles), default=width), width)

    def table(self, space: str, core: int) -> TileTable:
        """Return the tiles of a memory."""
        found = self._tables.get((space, core))
        if found is None:
            tiles = [tile for tile in self._execution.tensors.tiles(core) if tile.space == space]
            found = self._tables[space, core] = TileTable(tiles, self.device.cores[core])
        return found

    def cells(self, window: Window, mode: str, dtype: Dtype = Dtype.FLOAT32, figure: str = "absmax") -> MapCells:
        """Return the map of a window; `figure` is "absmax" or "mean", as `dtype`, of mode "value".

        Raises UsageError for a mode or window that does not exist, NotFoundError for one outside the memory.
        """
        if mode not in MODES or figure not in ("absmax", "mean"):
            raise UsageError(f"a map is by {', '.join(MODES)}, its values by absmax or mean; not {mode} {figure}")
        if min(window.row_step, window.byte_step, window.rows, window.columns) < 1:
            raise UsageError("a map has one row, one column, one partition and one byte at least")
        partitions, width = self.size(window.space, window.core)
        if not (0 <= window.partition < partitions and 0 <= window.byte < width):
            raise NotFoundError(f"{window.space} has partitions 0 to {partitions - 1}, bytes 0 to {width - 1:#x}")
        window = window.clipped(partitions, width)
        events, kept = self._execution.events, self._writes is not None
        if isinstance(self._execution.log, Journal) and self._execution.log.log:
            events = self._execution.log.log[-1].number + 1  # one may have happened that is not reported yet
        if mode == "tensor":
            cells = self.table(window.space, window.core).cells(window)
            written = self._written(window) > 0
            return MapCells(window, mode, cells, written, self.table(window.space, window.core).names, events, kept)
        if mode == "age":
            cells = self._ages(window)
            if not self._whole and kept:
                cells = np.where((cells == NEVER) & (self._written(window) > 0), 0, cells)
            return MapCells(window, mode, cells, cells != NEVER, (), events, kept)
        if mode == "unwritten":
            share = 1 - self._written(window) / _sizes(window, partitions, width)
            return MapCells(window, mode, share, share < 1, (), events, kept)
        if mode == "traffic":
            cells = self._counted_writes(window)
            return MapCells(window, mode, cells, cells > 0, (), events, kept)
        values, nan = self._values(window, dtype, figure)
        return MapCells(window, mode, values, nan, (), events, kept)

    # --- figures -----------------------------------------------------------------------------------------------------

    def _counted_writes(self, window: Window) -> Array:
        counts = None if self._traffic is None else self._traffic.counts(window.space, window.core)
        return self._of_blocks(window, counts, 0)

    def _ages(self, window: Window) -> Array:
        return self._of_blocks(window, self.numbers(window.space, window.core), NEVER)

    def _of_blocks(self, window: Window, numbers: Array | None, nothing: int) -> Array:
        """Return the largest number of the blocks that each cell meets."""
        if numbers is None:
            return np.full((window.rows, window.columns), nothing, np.int32)
        rows = slice(window.partition, window.partition + window.rows * window.row_step)
        if _in_blocks(window):
            first, step = window.byte // BLOCK, window.byte_step // BLOCK
            part = numbers[rows, first : first + window.columns * step]
        else:
            step = window.byte_step
            bytes_ = np.arange(window.byte, window.byte + window.columns * step)
            part = numbers[rows][:, np.minimum(bytes_ // BLOCK, numbers.shape[1] - 1)]
        return _reduced(part, window, step, np.maximum, nothing)

    def _written(self, window: Window) -> Array:
        found, step = self._figured(window, "written", Dtype.UINT8)
        blocks = self._figures.get((window.space, window.core, "written")) if _in_blocks(window) else None
        known = self._counted.get((window.space, window.core))
        if blocks is not None and known is not None and known[:2] == (window, blocks.changes):
            return known[2]
        counts = _reduced(found["written"], window, step, np.add, 0)
        if blocks is not None:
            self._counted[window.space, window.core] = window, blocks.changes, counts
        return counts

    def _values(self, window: Window, dtype: Dtype, figure: str) -> tuple[Array, Array]:
        found, step = self._figured(window, figure, dtype)
        count = _reduced(found["count"], window, step, np.add, 0)
        nan = _reduced(found["nan"], window, step, np.logical_or, False)
        if figure == "absmax":
            values = magnitudes(_reduced(found["code"], window, step, np.maximum, 0), dtype)
        else:
            with np.errstate(all="ignore"):
                total = _reduced(found["sum"], window, step, np.add, 0)
                values = (total / np.maximum(count, 1)).astype(np.float32)
        return np.where(count > 0, values, np.float32(np.nan)), nan

    def _figured(self, window: Window, figure: str, dtype: Dtype) -> tuple[dict[str, Array], int]:
        """Return figures of the window's partitions by its parts of columns, and how many parts make a column."""
        memory = self.device.cores[window.core].memory
        data, written = memory.array(window.space), memory.written(window.space)
        width = data.shape[1]
        rows = slice(window.partition, window.partition + window.rows * window.row_step)
        if not _in_blocks(window) or width % BLOCK:
            return _directly(data[rows], written[rows], window, figure, dtype)
        key = window.space, window.core, figure
        known = self._figures.get(key)
        if known is None or known.dtype != dtype:
            known = self._figures[key] = BlockFigures(data, written, figure, dtype)
        first, step = window.byte // BLOCK, window.byte_step // BLOCK
        blocks = slice(first, min(first + window.columns * step, width // BLOCK))
        changed = partial(self._writes.changed, window.space, window.core) if self._whole and self._writes else None
        return known.window(rows, blocks, self._versions(window.space, window.core), changed), step


def cells_of_regions(window: Window, regions: tuple[Region, ...]) -> npt.NDArray[np.bool_]:
    """Return which cells of a window some regions meet."""
    found = np.zeros((window.rows, window.columns), np.bool_)
    for region in regions:
        if (region.space, region.core) != (window.space, window.core):
            continue
        first, behind = region.first - window.partition, region.behind - window.partition
        rows = slice(max(first // window.row_step, 0), max(-(-behind // window.row_step), 0))
        columns = blocks_of(region.byte - window.byte, region.nbytes, region.pattern, window.byte_step)
        if isinstance(columns, slice):
            columns = slice(max(columns.start, 0), max(columns.stop, 0))
        else:
            columns = columns[(columns >= 0) & (columns < window.columns)]
        found[rows, columns] = True
    return found


def _in_blocks(window: Window) -> bool:
    return window.byte % BLOCK == 0 and window.byte_step % BLOCK == 0


def _reduced(array: Array, window: Window, step: int, ufunc: np.ufunc, nothing: Any) -> Array:
    """Return cells from (partitions, parts), `step` parts a column; `nothing` stands for missing parts."""
    rows, parts = window.rows * window.row_step, window.columns * step
    if array.shape != (rows, parts):
        padded = np.full((rows, parts), nothing, array.dtype)
        padded[: array.shape[0], : array.shape[1]] = array[:rows, :parts]
        array = padded
    if step > 1:
        array = ufunc.reduce(array.reshape(rows, window.columns, step), axis=2)
    if window.row_step > 1:
        array = ufunc.reduce(array.reshape(window.rows, window.row_step, window.columns), axis=1)
    return array


def _directly(data: Array, written: Array, window: Window, figure: str, dtype: Dtype) -> tuple[dict[str, Array], int]:
    """Return figures of cells that are not whole blocks, straight from (partitions, bytes).

    An element counts with each of its bytes that lies in the cell, where cells cut elements.
    """
    size, start, step, columns = dtype.size, window.byte, window.byte_step, window.columns
    rows, wanted = data.shape[0], start + columns * step
    if start % size == 0 and step % size == 0:
        count, apart, low, high = columns, step, start, wanted
    else:
        low, high = start // size * size, -(-wanted // size) * size
        count, apart = (high - low) // size, size
    parts = []
    for array in (data, written):
        part = np.zeros((rows, high - low), array.dtype)
        here = array[:, low:high]
        part[:, : here.shape[1]] = here
        parts.append(part.reshape(rows * count, apart))
    found = {name: a.reshape(rows, count) for name, a in figures_of(parts[0], parts[1], figure, dtype).items()}
    if apart == step and low == start:
        return found, 1
    skip = start - low
    return {name: np.repeat(a, size, axis=1)[:, skip : skip + columns * step] for name, a in found.items()}, step


def _sizes(window: Window, partitions: int, width: int) -> Array:
    """Return how many bytes of the memory each cell has."""
    rows = window.partition + np.arange(window.rows + 1) * window.row_step
    columns = window.byte + np.arange(window.columns + 1) * window.byte_step
    heights, widths = np.diff(np.minimum(rows, partitions)), np.diff(np.minimum(columns, width))
    return np.asarray(heights[:, None] * widths[None, :])
