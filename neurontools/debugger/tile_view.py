"""A tensor to look at: elements as a table, in figures, as a histogram and as a coarse picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Array

if TYPE_CHECKING:
    from neurontools.debugger.execution import Execution
    from neurontools.debugger.maps import Maps

__all__ = ["BINS", "Statistics", "TensorViewer", "TileView", "statistics_of"]

BINS = 32
_LATEST = 256  # events to look back for a tile


class Statistics(NamedTuple):
    """Figures of the written elements; least to `deviation` and the histogram are those of the finite ones.

    `bins` are counts between `BINS` + 1 edges, evenly spaced from `least` to `largest`; least, largest, mean and
    deviation are None where no element is finite.
    """

    elements: int
    unwritten: int
    nan: int
    infinite: int
    zeros: int
    least: float | None
    largest: float | None
    mean: float | None
    deviation: float | None
    bins: tuple[int, ...]


class TileView(NamedTuple):
    """A tensor as a table of `rows` x `columns` elements: the first dimension down, all others across.

    `part` are the elements from `row` and `column` on, `written` which of them are written whole; `heat` is the
    largest magnitude in each part of the whole table, NaN where no finite element is, `holes` where one is NaN.
    """

    name: str
    selection: str
    space: str
    dtype: str
    shape: tuple[int, ...]
    rows: int
    columns: int
    row: int
    column: int
    part: Array
    written: Array
    statistics: Statistics
    heat: Array
    holes: Array


class _Table(NamedTuple):
    key: tuple[object, ...]
    head: tuple[str, str, str, str, tuple[int, ...]]
    values: Array
    written: Array
    statistics: Statistics


class TensorViewer:
    """Shows tensors of an execution; the one looked at last is kept until the device moves."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._kept: _Table | None = None

    def view(self, maps: Maps, text: str, dtype: Dtype | None = None, window: tuple[int, int, int, int] = (0, 0, 8, 8),
             heat: tuple[int, int] = (0, 0)) -> TileView:  # fmt: skip
        """Return "TENSOR" or "TENSOR[slice]" as it is now, its bytes read as another element type if given.

        Without a text it is the tile that was written last. `window` is row, column, rows and columns of the part
        wanted, `heat` rows and columns of the picture, which has no more than the table. Raises as `Session.tensor`
        does, and UsageError where the bytes are not whole elements.
        """
        table = self._table(text or self._latest_tile(maps), dtype)
        rows, columns = table.values.shape
        row, column = min(max(window[0], 0), max(rows - 1, 0)), min(max(window[1], 0), max(columns - 1, 0))
        part = slice(row, row + window[2]), slice(column, column + window[3])
        picture, holes = _heat(table, min(heat[0], rows), min(heat[1], columns))
        return TileView(*table.head, rows, columns, row, column, table.values[part].copy(), table.written[part].copy(),
                        table.statistics, picture, holes)  # fmt: skip

    def _latest_tile(self, maps: Maps) -> str:
        """Return the name of the tile of the focus core that was written last; NotFoundError where none was."""
        log, core = self._execution.log, self._execution.focus[0]
        tables = {space: maps.table(space, core) for space in ("SBUF", "PSUM")}
        recent = log.log[-_LATEST:] if log is not None and any(table.tiles for table in tables.values()) else []
        # Only a while back: a pane that nothing was chosen for is not worth a search through a long run.
        seen: set[tuple[str, int, int]] = set()  # loops write the same bytes again and again
        for entry in reversed(recent):
            for region in entry.regions:
                place = region.space, region.first, region.byte
                if region.space == "HBM" or region.core != core or place in seen:
                    continue
                seen.add(place)
                tile = tables[region.space].at(region.first, region.byte)
                if tile is not None:
                    return tile.name
        raise NotFoundError("no tile was written yet")

    def _table(self, text: str, dtype: Dtype | None) -> _Table:
        device, core = self._execution.device, self._execution.focus[0]
        key = text, dtype, core, id(device), device.steps, device.now_ps
        if self._kept is not None and self._kept.key == key:
            return self._kept
        value, plane = self._execution.tensors.elements(text, core)
        array = np.asarray(value.array)
        written = np.ones(array.shape, np.bool_) if plane is None else np.asarray(plane)
        if dtype is not None and numpy_dtype(dtype) != array.dtype:
            array, written = _as(array, written, dtype, text)
        shape = array.shape
        flat = (shape[0], -1) if array.ndim > 1 and array.size else (1, array.size)
        head = value.name, value.selection, value.space, dtype.numpy_name if dtype else array.dtype.name, shape
        self._kept = _Table(key, head, array.reshape(flat), written.reshape(flat), statistics_of(array, written))
        return self._kept


def _as(array: Array, written: Array, dtype: Dtype, text: str) -> tuple[Array, Array]:
    """Return the same bytes as other elements; the last dimension changes its length."""
    size, wanted = array.dtype.itemsize, numpy_dtype(dtype).itemsize
    array, written = np.atleast_1d(np.ascontiguousarray(array)), np.atleast_1d(written)
    if array.shape[-1] * size % wanted:
        raise UsageError(f"{text}: {array.shape[-1] * size} bytes in a row are no whole {dtype.numpy_name}")
    shape = (*array.shape[:-1], array.shape[-1] * size // wanted)
    bytes_ = np.repeat(written, size, axis=-1).reshape(*shape, wanted)
    complete = np.asarray(bytes_.all(axis=-1))
    return array.view(np.uint8).reshape(-1).view(numpy_dtype(dtype)).reshape(shape), complete


def statistics_of(array: Array, written: Array) -> Statistics:
    """Return the figures of the elements that are written."""
    with np.errstate(all="ignore"):
        values = array[written].astype(np.float64)
        nan, finite = np.isnan(values), np.isfinite(values)
        good = values[finite]
        counts = int(nan.sum()), int(values.size - nan.sum() - finite.sum()), int(np.count_nonzero(values == 0))
        if not good.size:
            return Statistics(array.size, array.size - values.size, *counts, None, None, None, None, (0,) * BINS)
        least, largest = float(good.min()), float(good.max())
        # One value alone gets a bin around itself; a range beyond that of floats has no equal bins.
        width = largest - least
        bins = np.histogram(good, BINS, (least, largest))[0] if 0 < width < np.inf else np.zeros(BINS, int)
        if width == 0:
            bins[BINS // 2] = good.size
        return Statistics(array.size, array.size - values.size, *counts, least, largest, float(good.mean()),
                          float(good.std()), tuple(bins.tolist()))  # fmt: skip


def _heat(table: _Table, rows: int, columns: int) -> tuple[Array, Array]:
    if rows < 1 or columns < 1:
        return np.zeros((0, 0), np.float32), np.zeros((0, 0), np.bool_)
    with np.errstate(all="ignore"):
        values = np.abs(table.values.astype(np.float32))
    nan = np.isnan(values) & table.written
    values[~table.written | np.isnan(values)] = -1
    edges = [np.arange(n) * size // n for n, size in zip((rows, columns), values.shape, strict=True)]
    found: Array = np.maximum.reduceat(np.maximum.reduceat(values, edges[0], axis=0), edges[1], axis=1)
    holes: Array = np.logical_or.reduceat(np.logical_or.reduceat(nan, edges[0], axis=0), edges[1], axis=1)
    found[found < 0] = np.nan
    return found, holes
