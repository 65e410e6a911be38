"""Accesses to the memories of one core, in program order: what each must wait for, by the bytes it shares."""

from __future__ import annotations

from array import array
from itertools import count
from typing import Any

from formats.isa import ENGINES
from neurontools.builder.areas import Area, Shape, shape_of
from neurontools.builder.hazards import Memory, Needs, Region
from neurontools.builder.tiles import Place, Tiles
from neurontools.trace import Allocation, Space, View

__all__ = ["Accesses", "TileState"]

_HBM = Space.HBM


class TileState:
    """One tile while the program runs through its life: its place, and the region of what touched it so far.

    `row` is where its row in `Accesses.pcs` begins.
    """

    __slots__ = ("address", "byte", "partition", "region", "row", "stride")

    def __init__(self, place: Place, partition: int, byte: int, row: int) -> None:
        self.address, self.stride = place
        self.partition, self.byte, self.row = partition, byte, row
        self.region: Region | None = None


class Accesses:
    """Regions of all memories of a core; `tiles` has the state of every tile by allocation id.

    `pcs` has a row per tile, in the order of their lives: first and last word of each engine, -1 where none touches it.
    """

    def __init__(self, tiles: Tiles, written: frozenset[int]) -> None:
        self._groups, self._written = tiles.groups, written
        self.tiles = {
            life.allocation.id: TileState(tiles.place(life.allocation), *tiles.places[life.allocation.id], row)
            for life, row in zip(tiles.lives, count(0, 2 * len(ENGINES)), strict=False)
        }
        self.pcs = array("q", [-1]) * (2 * len(ENGINES) * len(tiles.lives))
        self._memory = {Space.SBUF: Memory(), Space.PSUM: Memory()}
        self._tensors: dict[int, Region] = {}
        self._group_regions: dict[int, Region] = {}
        self._shapes: dict[tuple[Any, int], Shape] = {}

    def access(self, view: View, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Order an access with those before it: add to `needs` what it must wait for."""
        key = (view.dims, view.dtype.size)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = shape_of(*key)
        self.touch(view, shape, write, actor, unit, needs)

    def touch(self, view: View, shape: Shape, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Order an access as `access` does, for a view whose shape is known."""
        allocation = view.allocation
        region: Region | None
        if allocation.space is _HBM:
            number = allocation.id
            if number not in self._written:
                return  # only ever read: nothing to order
            region = self._tensors.get(number)
            if region is None:
                region = self._tensors[number] = Region()
            area = Area(0, 1, view.offset, shape)
        else:
            tile = self.tiles[allocation.id]
            region = tile.region
            if region is None:
                region = self._claim(allocation, tile)
            first = tile.partition + view.partition
            area = Area(first, first + view.partitions, tile.byte + view.offset, shape)
        region.access(area, write, actor, unit, needs)

    def _claim(self, allocation: Allocation, tile: TileState) -> Region:
        """Give the bytes of a tile to it when it is touched for the first time."""
        group = self._groups.get(allocation.id)
        region = None if group is None else self._group_regions.get(group)
        if region is None:
            region = Region()
            if group is not None:
                self._group_regions[group] = region
        tile.region = region
        low = tile.byte
        self._memory[allocation.space].claim(low, low + max(allocation.partition_bytes, 1), region)
        return region

    def end(self, tile: int) -> None:
        """Let go of a tile behind its last access; its bytes know what touched them until another takes them over."""
        del self.tiles[tile]
