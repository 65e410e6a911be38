"""Tensors whose partition dimension is not the first one: blocks of tiles, each made when a kernel first names it.

`nl.ndarray((4, 8, nl.par_dim(128), 512), buffer=nl.psum)` is 32 tiles. Together they may be larger than the memory,
since a tile lives from its first use to its last.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

from neurontools.neuronxcc.nki.tile import Tile, copy_into
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.reshaping import note_copy
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import tracer
from neurontools.nki.views import complain

__all__ = ["Blocks"]


class _Store:
    """The tiles of a blocked tensor, by place; one tensor of all of them once a kernel looks across blocks."""

    def __init__(
        self, blocks: tuple[int, ...], tile: tuple[int, ...], dtype: Any, region: MemoryRegion, name: str
    ) -> None:
        self.blocks, self.tile, self.dtype, self.region, self.name = blocks, tile, dtype, region, name
        self.fill: Callable[[Tile], None] | None = None
        self.tiles: dict[tuple[int, ...], Tile] = {}
        self.whole: NkiTensor | None = None

    def at(self, place: tuple[int, ...]) -> Tile:
        """Return the tile of a block."""
        found = self.tiles.get(place)
        if found is None:
            found = self.tiles[place] = Tile(nl.ndarray(self.tile, self.dtype, self.region, self.name))
            if self.fill is not None:
                self.fill(found)
        return found

    def join(self) -> NkiTensor:
        """Return one tensor of all blocks, which takes the place of the tiles from now on."""
        if self.whole is None:
            name = next((one.name for one in self.tiles.values()), self.name)
            storage = nl.ndarray((self.tile[0], *self.blocks, *self.tile[1:]), self.dtype, self.region, name)
            depth = len(self.blocks)
            strides = (*storage.strides[1 : 1 + depth], storage.strides[0], *storage.strides[1 + depth :])
            self.whole = storage._make((*self.blocks, *self.tile), strides, 0)
            t, joined = tracer(), []
            for place in product(*map(range, self.blocks)):
                offset = sum(one * stride for one, stride in zip(place, strides, strict=False))
                part = Tile(storage._make(self.tile, strides[depth:], offset))
                before = self.tiles.setdefault(place, part)
                if before is not part:
                    copy_into(part, before)
                    joined.append(before.tensor.allocation)
                    before._tensor = part.tensor  # the kernel may hold on to the tile, and write to it
                elif self.fill is not None:
                    self.fill(part)
            for old in joined:  # of what it holds of parts of tiles nothing is known here
                note_copy(t, old, storage.allocation, "taken in part before a look across its blocks")
        return self.whole


class Blocks(Tile):
    """A blocked tensor, or what is left of it when the first blocks are chosen."""

    def __init__(self, blocks: tuple[int, ...], tile: tuple[int, ...], dtype: Any, region: MemoryRegion,
                 name: str = "") -> None:  # fmt: skip
        self._store = _Store(blocks, tile, dtype, region, name)
        self._chosen: tuple[int, ...] = ()

    def fill_with(self, fill: Callable[[Tile], None]) -> None:
        """Have each tile filled when it is made."""
        self._store.fill = fill

    @property
    def tensor(self) -> NkiTensor:
        """Return all blocks as one tensor."""
        whole = self._store.join()
        depth = len(self._chosen)
        offset = sum(one * stride for one, stride in zip(self._chosen, whole.strides, strict=False))
        return whole._make(whole.shape[depth:], whole.strides[depth:], offset)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents, of blocks first."""
        return (*self._store.blocks[len(self._chosen) :], *self._store.tile)

    @property
    def dtype(self) -> Any:
        """Return the element type."""
        return dtype_of(self._store.dtype)

    @property
    def buffer(self) -> MemoryRegion:
        """Return the memory region."""
        return self._store.region

    def __getitem__(self, key: Any) -> Tile:
        keys = self._keys(key)
        left = self._store.blocks[len(self._chosen) :]
        chosen: list[int] = []
        for one, extent in zip(keys, left, strict=False):
            try:
                place = operator.index(one)
            except TypeError:
                break
            if not -extent <= place < extent:
                raise complain(f"block {place} is outside dimension {len(chosen)} of {extent}")
            chosen.append(place % extent)
        rest = keys[len(chosen) :]
        full = all(isinstance(one, slice) and one == slice(None) for one in rest)
        if len(chosen) == len(left):
            tile = self._store.at((*self._chosen, *chosen))
            return tile if full else tile[tuple(rest)]
        if not full:
            return Tile(self.tensor)[tuple(keys)]
        part = Blocks.__new__(Blocks)
        part._store, part._chosen = self._store, (*self._chosen, *chosen)
        return part
