"""The tiles of one memory as columns of numbers: which of them lives where, for maps and for single bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formats.neff.tiles import Tile

if TYPE_CHECKING:
    from emulator.machine_view import CoreView
    from neurontools.debugger.window import Window

__all__ = ["TileTable"]

Numbers = npt.NDArray[np.int64]
# Above any pc: the life of a tile never begins on an engine that does not touch it.
_NEVER = 1 << 60


class TileTable:
    """Tiles in the order of the file; `names` are their names, each once, and `name_of` the index of every tile's."""

    def __init__(self, tiles: Sequence[Tile], core: CoreView) -> None:
        self.tiles = tuple(tiles)
        self.names = tuple(dict.fromkeys(tile.name for tile in tiles))
        index = {name: number for number, name in enumerate(self.names)}
        self.name_of = np.array([index[tile.name] for tile in tiles], np.int32)
        self._engines = tuple(core.engines.values())
        columns = [(t.partition, t.partition + t.partitions, t.offset, t.offset + t.partition_bytes) for t in tiles]
        self._box = np.array(columns, np.int64).reshape(-1, 4)
        spans = [[tile.pcs.get(engine.name, (_NEVER, -1)) for engine in self._engines] for tile in tiles]
        self._spans = np.array(spans, np.int64).reshape(len(self.tiles), len(self._engines), 2)

    def resident(self) -> Numbers:
        """Return the tiles whose life has begun: first those that have ended, then those that live, each in order."""
        pcs = np.array([engine.pc for engine in self._engines], np.int64)
        begun = (pcs >= self._spans[:, :, 0]).any(axis=1)
        alive = (pcs <= self._spans[:, :, 1]).any(axis=1) & begun
        return np.concatenate((np.flatnonzero(begun & ~alive), np.flatnonzero(alive)))

    def cells(self, window: Window) -> npt.NDArray[np.int32]:
        """Return the name of the newest tile that meets each cell of a window, as an index, -1 without one."""
        found = np.full((window.rows, window.columns), -1, np.int32)
        order = self.resident()
        box = self._box[order]
        rows = _cells(box[:, :2] - window.partition, window.row_step, window.rows)
        columns = _cells(box[:, 2:] - window.byte, window.byte_step, window.columns)
        meets = (rows[:, 0] < rows[:, 1]) & (columns[:, 0] < columns[:, 1])
        names = self.name_of[order[meets]]
        for row, column, name in zip(rows[meets].tolist(), columns[meets].tolist(), names.tolist(), strict=True):
            found[slice(*row), slice(*column)] = name
        return found

    def at(self, partition: int, byte: int) -> Tile | None:
        """Return the newest tile that holds a byte of a partition, None without one."""
        for number in self.resident()[::-1].tolist():
            top, bottom, left, right = self._box[number].tolist()
            if top <= partition < bottom and left <= byte < right:
                return self.tiles[int(number)]
        return None


def _cells(spans: Numbers, step: int, limit: int) -> Numbers:
    first, behind = spans[:, 0] // step, -(-spans[:, 1] // step)
    return np.clip(np.stack((first, behind), axis=1), 0, limit)
