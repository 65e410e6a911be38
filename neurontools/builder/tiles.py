"""The on-chip tiles of one program: how long each lives, where it stands, which share bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from formats.isa import ENGINES, PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from neurontools.builder.allocate import Life, allocate, groups_of
from neurontools.builder.chip import Chip
from neurontools.builder.encode import Place
from neurontools.trace import (
    Allocation,
    LoopEndOp,
    LoopOp,
    Source,
    Space,
    Trace,
    views_of,
)

__all__ = ["Tiles", "lives_of", "loops_of", "place_tiles", "tile_map", "views_of"]


class Tiles(NamedTuple):
    """Lives of all tiles; (partition, byte) of each by allocation id; group of those that share bytes by choice."""

    lives: list[Life]
    places: dict[int, tuple[int, int]]
    groups: dict[int, int]

    def engine_places(self) -> dict[int, Place]:
        """Return the engine address of every tile."""
        found = {}
        for life in self.lives:
            partition, byte = self.places[life.allocation.id]
            psum = life.allocation.space is Space.PSUM
            base, stride = (PSUM_BASE, PSUM_PARTITION_STRIDE) if psum else (0, SBUF_PARTITION_STRIDE)
            found[life.allocation.id] = Place(base + partition * stride + byte, stride)
        return found

    def top(self, space: Space) -> int:
        """Return the byte behind the highest one in use, 0 for none."""
        mine = [life.allocation for life in self.lives if life.allocation.space is space]
        return max((self.places[one.id][1] + one.partition_bytes for one in mine), default=0)

    def bottom(self, space: Space) -> int | None:
        """Return the lowest byte in use."""
        mine = [life.allocation.id for life in self.lives if life.allocation.space is space]
        return min((self.places[number][1] for number in mine), default=None)


def lives_of(trace: Trace) -> list[Life]:
    """Return every tile that an operation touches, with its first and last operation."""
    first: dict[int, tuple[Allocation, int, Source]] = {}
    last: dict[int, int] = {}
    for number, op in enumerate(trace.ops):
        for view in views_of(op):
            allocation = view.allocation
            if allocation.space is not Space.HBM:
                if allocation.id not in first:
                    first[allocation.id] = allocation, number, op.source
                last[allocation.id] = number
    lives = [Life(tile, start, last[tile.id], source) for tile, start, source in first.values()]
    for begin, end in loops_of(trace):
        # The next turn finds what an earlier one left in tiles that are older than the loop.
        lives = [
            life._replace(first=min(life.first, begin), last=max(life.last, end))
            if life.allocation.born <= begin and life.first <= end and life.last >= begin else life
            for life in lives
        ]
    return lives


def loops_of(trace: Trace) -> list[tuple[int, int]]:
    """Return the numbers of the first and last operation of each loop, inner ones before those around them."""
    found, open_loops = [], []
    for number, op in enumerate(trace.ops):
        if isinstance(op, LoopOp):
            open_loops.append(number)
        elif isinstance(op, LoopEndOp):
            found.append((open_loops.pop(), number))
    return found


def place_tiles(trace: Trace, chip: Chip) -> Tiles:
    """Return the tiles of a program with their places.

    Raises AllocationError when they do not fit.
    """
    lives = lives_of(trace)
    return Tiles(lives, allocate(lives, chip), groups_of(lives))


def tile_map(tiles: Tiles, words: Mapping[int, Sequence[int]]) -> bytes:
    """Return member `tiles.json`, the debugger's map of names to places.

    `words` are first and last pc of each engine that touches a tile, -1 for the others.

    The format is described in `emulator.session.tiles`.
    """
    encode = json.JSONEncoder(separators=(",", ":")).encode
    nowhere = [-1] * (2 * len(ENGINES))
    text = bytearray(b"[")
    for life in tiles.lives:
        one = life.allocation
        partition, byte = tiles.places[one.id]
        spans = words.get(one.id, nowhere)
        row = encode({"name": one.name, "space": one.space.name, "partition": partition, "partitions": one.partitions,
                     "offset": byte, "shape": list(one.shape), "dtype": one.dtype.numpy_name,
                     "pcs": {engine: spans[2 * place : 2 * place + 2] for place, engine in enumerate(ENGINES)
                             if spans[2 * place] >= 0}})
        text += (b"," if len(text) > 1 else b"") + row.encode()
    text += b"]"
    return bytes(text)
