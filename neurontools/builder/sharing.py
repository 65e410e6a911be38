"""Tiles that a kernel puts on the same bytes while both live: what is read through one after another has written it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from neurontools.builder.allocate import Life
from neurontools.builder.planes import part_of
from neurontools.builder.trace import View

__all__ = ["Loss", "Sharing"]


class Loss(NamedTuple):
    """A read, by the word `pc` of an engine, of bytes that were written through a tile and then through `other`."""

    tile: int
    other: str
    engine: str
    pc: int


class _Tile:
    """A tile of a group: where it begins in the group's plane, which of its bytes were written through it."""

    __slots__ = ("byte", "name", "number", "partition", "plane", "written")

    def __init__(self, number: int, name: str, place: tuple[int, int], plane: npt.NDArray[Any], low: int) -> None:
        self.number, self.name, self.plane = number, name, plane
        self.partition, self.byte = place[0], place[1] - low
        self.written = np.zeros(plane.shape, np.bool_)


class Sharing:
    """The tiles of a program that share bytes by their addresses; a program without any costs nothing."""

    def __init__(self, lives: list[Life], places: Mapping[int, tuple[int, int]], groups: Mapping[int, int]) -> None:
        self.losses: list[Loss] = []
        self.tiles: dict[int, _Tile] = {}
        self._pending: dict[int, str] = {}
        if not groups:
            return
        sizes = Counter(groups.values())
        shared: dict[int, list[Life]] = {}
        for life in lives:
            group = groups.get(life.allocation.id)
            if group is not None and sizes[group] > 1:
                shared.setdefault(group, []).append(life)
        for members in shared.values():
            spans = [(places[one.allocation.id][1], one.allocation.partition_bytes) for one in members]
            low, high = min(byte for byte, _ in spans), max(byte + size for byte, size in spans)
            # by byte, the id of the tile through which it was written last
            plane = np.full((PARTITIONS, high - low), -1, np.int32)
            for life in members:
                tile = life.allocation
                self.tiles[tile.id] = _Tile(tile.id, tile.name, places[tile.id], plane, low)

    def access(self, view: View, write: bool) -> None:
        """Note an access to a tile of a group."""
        tile = self.tiles[view.allocation.id]
        owners, mine = (part_of(plane, view, tile.partition, tile.byte) for plane in (tile.plane, tile.written))
        if write:
            owners[...] = tile.number
            mine[...] = True
            return
        lost = owners[mine & (owners != tile.number)]
        if lost.size:
            self._pending[tile.number] = self.tiles[int(lost.flat[0])].name

    def settle(self, engine: str, pc: int) -> None:
        """Give what the last operation lost to the word that carried it out."""
        for tile, other in self._pending.items():
            if not any(one.tile == tile and (one.engine, one.pc) == (engine, pc) for one in self.losses):
                self.losses.append(Loss(tile, other, engine, pc))
        self._pending.clear()

    @property
    def pending(self) -> bool:
        """Return whether the operation at hand has read what is lost."""
        return bool(self._pending)
