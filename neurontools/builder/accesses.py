"""Accesses to the memories of one core, in program order: what each must wait for, by the bytes it shares."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from formats.engines import ENGINES
from formats.regions import Shape, shape_of
from neurontools.builder.areas import Access, Area, Way
from neurontools.builder.encode import Place
from neurontools.builder.hazards import Memory, Needs, Region
from neurontools.builder.sharing import Sharing
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import Allocation, Space, View

__all__ = ["Accesses", "TileState"]

_HBM, _PSUM = Space.HBM, Space.PSUM
# behind every operation
_NEVER = 1 << 62
_ROW = 2 * len(ENGINES)


class TileState:
    """One tile while the program runs through its life: its place, and the region of what touched it so far.

    `row` is where its row in `Accesses.pcs` begins.
    """

    __slots__ = ("address", "byte", "partition", "region", "row", "stride")

    def __init__(self, place: Place, partition: int, byte: int, row: int) -> None:
        self.address, self.stride = place
        self.partition = partition
        self.byte = byte
        self.row = row
        self.region: Region | None = None


class Accesses:
    """Regions of all memories of a core; `tiles` has the state of every tile that lives now, by allocation id.

    `pcs` has a row per tile, in the order of their lives: first and last word of each engine, -1 where none touches it.
    `rows` has those of the tiles touched since it was cleared.
    """

    def __init__(self, tiles: Tiles, written: frozenset[int]) -> None:
        self._tiles, self._groups, self._written = tiles, tiles.groups, written
        self.sharing = Sharing(tiles.lives, tiles.places, tiles.groups)
        self.tiles: dict[int, TileState] = {}
        firsts = [life.first for life in tiles.lives]
        # Lives are in the order of first uses, but for those that a loop makes longer at their beginning.
        self._coming = sorted(range(len(firsts)), key=firsts.__getitem__, reverse=True)  # the next one at the end
        self.next = firsts[self._coming[-1]] if firsts else _NEVER  # the operation that the next life begins with
        self.pcs = array("q", [-1]) * (_ROW * len(tiles.lives))
        self.rows: list[int] = []
        self._sbuf, self._psum = Memory(), Memory()
        self._tensors: dict[int, Region] = {}
        self._group_regions: dict[int, Region] = {}
        self._shapes: dict[tuple[Any, int], Shape] = {}

    def begin(self, number: int) -> None:
        """Make room for the tiles whose lives begin with an operation."""
        coming, tiles = self._coming, self._tiles
        lives, places, place = tiles.lives, tiles.places, tiles.place
        following = self.next
        while following <= number:
            row = coming.pop()
            tile = lives[row].allocation
            partition, byte = places[tile.id]
            self.tiles[tile.id] = TileState(place(tile), partition, byte, row * _ROW)
            following = lives[coming[-1]].first if coming else _NEVER
        self.next = following

    def access(self, view: View, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Order an access with those before it: add to `needs` what it must wait for."""
        key = (view.dims, view.dtype.size)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = shape_of(*key)
        self.touch(view, shape, write, actor, unit, needs, None)

    def used(self, place: int, first: int, last: int) -> None:
        """Note that words `first` to `last` of an engine use the tiles touched; `place` is where it stands in a row."""
        pcs = self.pcs
        for row in self.rows:
            at = row + place
            if pcs[at] < 0:
                pcs[at] = first
            pcs[at + 1] = last

    def touch(self, view: View, shape: Shape, write: bool, actor: int, unit: int, needs: Needs,
              way: Way | None) -> None:  # fmt: skip
        """Order an access of a transfer as `access` does, for a view whose shape and way are known."""
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
            if allocation.id in self.sharing.tiles:
                self.sharing.access(view, write)
            self.rows.append(tile.row)
            first = tile.partition + view.partition
            area = Area(first, first + view.partitions, tile.byte + view.offset, shape)
        area.way = way
        region.access(area, write, actor, unit, needs)

    def operands(self, views: Sequence[View], accesses: Sequence[Access], actor: int, unit: int, needs: Needs,
                 addresses: list[int]) -> None:  # fmt: skip
        """Order accesses to operands on chip as `touch` does; note the engine address of each one's first element."""
        tiles, row = self.tiles, self.rows.append
        shared = self.sharing.tiles
        for number, shape, write in accesses:
            allocation, _, partition, partitions, offset, _ = views[number]
            tile = tiles[allocation.id]
            region = tile.region
            if region is None:
                region = self._claim(allocation, tile)
            if shared and allocation.id in shared:
                self.sharing.access(views[number], write)
            row(tile.row)
            addresses[number] = tile.address + partition * tile.stride + offset
            first = tile.partition + partition
            area = Area(first, first + partitions, tile.byte + offset, shape)
            region.access(area, write, actor, unit, needs)

    def _claim(self, allocation: Allocation, tile: TileState) -> Region:
        """Give the bytes of a tile to it when it is touched for the first time."""
        low = tile.byte
        high = low + (allocation.partition_bytes or 1)
        group = self._groups.get(allocation.id) if self._groups else None
        if group is None:
            region = Region(low, high)
        else:
            # Tiles that the kernel put onto common bytes share one region: an access to one orders those to all.
            region = self._group_regions.get(group) or self._group_regions.setdefault(group, Region())
        tile.region = region
        (self._psum if allocation.space is _PSUM else self._sbuf).claim(low, high, region)
        return region
