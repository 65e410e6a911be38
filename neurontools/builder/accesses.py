"""Accesses to the memories of one core, in program order: what each must wait for, by the bytes it shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from neurontools.builder.areas import Access, Way, access_to
from neurontools.builder.emitted import ROW
from neurontools.builder.hazards import NOWHERE, Memory, Needs, Record, Region
from neurontools.builder.sharing import Sharing
from neurontools.builder.streams import GUARDED
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import Space, View
from neurontools.builder.vector_clocks import VectorClocks

__all__ = ["Accesses", "TileState"]

_HBM, _PSUM = Space.HBM, Space.PSUM
# behind every operation
_NEVER = 1 << 62
# One tile while the program runs through its life: engine address of its first byte and bytes between partitions, its
# first partition, its byte there, where its row in `Emitted.pcs` begins, the region of what touched it so far. It is a
# plain tuple, as `builder.areas.Access`.
TileState = tuple[int, int, int, int, int, Region]


class Accesses:
    """Regions of all memories of a core; `tiles` has the state of every tile that lives now, by allocation id.

    `touched` has, tile by tile as they were touched, where each one's row in `Emitted.pcs` begins.
    """

    def __init__(self, tiles: Tiles, written: frozenset[int], clocks: VectorClocks) -> None:
        self._clocks = clocks
        self._tiles, self._groups, self._written = tiles, tiles.groups, written
        self.sharing = Sharing(tiles.lives, tiles.places, tiles.groups)
        self.tiles: dict[int, TileState] = {}
        firsts = [life.first for life in tiles.lives]
        # Lives are in the order of first uses, but for those that a loop makes longer at their beginning.
        self._coming = sorted(range(len(firsts)), key=firsts.__getitem__, reverse=True)  # the next one at the end
        self.next = firsts[self._coming[-1]] if firsts else _NEVER  # the operation that the next life begins with
        self.touched: list[int] = []
        self._sbuf, self._psum = Memory(clocks), Memory(clocks)
        self._tensors: dict[int, Region] = {}
        self._group_regions: dict[int, Region] = {}
        self._accesses: dict[tuple[Any, int, bool], Access] = {}

    def begin(self, number: int) -> None:
        """Make room for the tiles whose lives begin with an operation: their bytes are theirs from here on."""
        coming, groups, states = self._coming, self._groups, self.tiles
        lives, places = self._tiles.lives, self._tiles.places
        following = self.next
        while following <= number:
            row = coming.pop()
            tile = lives[row].allocation
            partition, byte = places[tile.id]
            if tile.space is _PSUM:
                memory, base, stride = self._psum, PSUM_BASE, PSUM_PARTITION_STRIDE
            else:
                memory, base, stride = self._sbuf, 0, SBUF_PARTITION_STRIDE
            high = byte + (tile.partition_bytes or 1)
            group = groups.get(tile.id) if groups else None
            if group is None:
                region = memory.claim(byte, high)
            else:
                # Tiles that the kernel put onto common bytes share one region: an access to one orders those to all.
                region = self._group_regions.get(group) or self._group_regions.setdefault(group, Region())
                memory.give(byte, high, region)
            address = base + partition * stride + byte
            states[tile.id] = address, stride, partition, byte, row * ROW, region
            following = lives[coming[-1]].first if coming else _NEVER
        self.next = following

    def access(
        self, view: View, write: bool, engine: int, actor: int, unit: int, needs: Needs, itself: int = -1
    ) -> None:
        """Order an access with those before it but those of the actor `itself`: add to `needs` what it waits for."""
        key = (view.dims, view.dtype.size, write)
        known = self._accesses.get(key)
        if known is None:
            known = self._accesses[key] = access_to(0, *key)
        self.touch(view, known, engine, actor, unit, needs, None, itself)

    def touch(self, view: View, access: Access, engine: int, actor: int, unit: int, needs: Needs,
              way: Way | None, itself: int = -1) -> None:  # fmt: skip
        """Order an access of a transfer as `access` does, for a view whose way is known too."""
        allocation, _, partition, partitions, offset, _ = view
        _, shape, shift, reach, step, write = access
        if allocation.space is _HBM:
            number = allocation.id
            if number not in self._written:
                return  # only ever read: nothing to order
            region = self._tensors.get(number) or self._tensors.setdefault(number, Region(*NOWHERE))
            first, partitions = 0, 1
        else:
            _, _, first, byte, row, region = self.tiles[allocation.id]
            if allocation.id in self.sharing.tiles:
                self.sharing.access(view, write)
            self.touched.append(row)
            first += partition
            offset += byte
        low = offset + shift
        region.access(
            (unit, low, low + reach, first, first + partitions, shape, step, way),
            write, actor, needs, self._clocks.known[engine], itself,
        )  # fmt: skip

    def arrive(self, view: View, actor: int, unit: int) -> None:
        """Note what somebody outside this core writes into a tile: who follows waits for nothing that it covers."""
        *_, row, region = self.tiles[view.allocation.id]
        if view.allocation.id in self.sharing.tiles:
            self.sharing.access(view, True)
        self.touched.append(row)
        access = access_to(0, view.dims, view.dtype.size, True)
        region.replace(self._record(view, access, unit), actor)

    def written(self, view: View) -> list[tuple[int, int]]:
        """Return each actor that wrote a tile with the last unit that did."""
        return self.tiles[view.allocation.id][-1].written()

    def is_written_since(self, view: View, access: Access, before: list[tuple[int, int]]) -> bool:
        """Return whether anybody wrote bytes of a tile's view behind what `written` gave before."""
        region = self.tiles[view.allocation.id][-1]
        return region.written() != before and region.is_written_since(self._record(view, access, _NEVER), before)

    def _record(self, view: View, access: Access, unit: int) -> Record:
        """Return the record of an access to a tile."""
        _, _, first, byte, _, _ = self.tiles[view.allocation.id]
        _, shape, shift, reach, step, _ = access
        low, first = byte + view.offset + shift, first + view.partition
        return unit, low, low + reach, first, first + view.partitions, shape, step, None

    def operands(self, views: Sequence[View], accesses: Sequence[Access], actor: int, unit: int, needs: Needs,
                 addresses: list[int]) -> None:  # fmt: skip
        """Order accesses to operands on chip as `touch` does; note the engine address of each one's first element."""
        tiles, used = self.tiles, self.touched.append
        shared = self.sharing.tiles
        known = self._clocks.known[actor]
        reader = -1 if actor in GUARDED else actor
        for number, shape, shift, reach, step, write in accesses:
            allocation, _, partition, partitions, offset, _ = views[number]
            address, stride, first, byte, row, region = tiles[allocation.id]
            if shared and allocation.id in shared:
                self.sharing.access(views[number], write)
            used(row)
            addresses[number] = address + partition * stride + offset
            first += partition
            low = byte + offset + shift
            region.access(
                (unit, low, low + reach, first, first + partitions, shape, step, None),
                write, actor, needs, known, actor if write else reader,
            )  # fmt: skip
