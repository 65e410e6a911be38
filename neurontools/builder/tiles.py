"""The on-chip tiles of one program: how long each lives, where it stands, which share bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from formats.isa import ENGINES, PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from neurontools.builder.allocate import Life, allocate, groups_of
from neurontools.builder.chip import Chip
from neurontools.builder.encode import Place
from neurontools.builder.errors import AllocationError
from neurontools.builder.reorder import filled_late, moved_forward
from neurontools.builder.rewritten import apart
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

    def place(self, tile: Allocation) -> Place:
        """Return where the engines find a tile."""
        partition, byte = self.places[tile.id]
        base, stride = (PSUM_BASE, PSUM_PARTITION_STRIDE) if tile.space is Space.PSUM else (0, SBUF_PARTITION_STRIDE)
        return Place(base + partition * stride + byte, stride)

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
    hbm = Space.HBM
    for number, op in enumerate(trace.ops):
        for view in views_of(op):
            allocation = view.allocation
            if allocation.space is not hbm:
                tile = allocation.id
                if tile not in last:
                    first[tile] = allocation, number, op.source
                last[tile] = number
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


def place_tiles(trace: Trace, chip: Chip) -> tuple[Trace, Tiles]:
    """Return a program and its tiles with their places; a program that fits is the one given.

    Where it does not, tiles that it fills anew are taken apart and constants filled in late; where that is not enough,
    reads move forward.
    Raises AllocationError, for the program as the kernel has it, when neither helps.
    """
    lives = lives_of(trace)
    try:
        places = allocate(lives, chip)
    except AllocationError:
        changed = _made_to_fit(trace, lives, chip)
        if changed is None:
            raise
        trace, places = changed
        lives = lives_of(trace)
    return trace, Tiles(lives, places, groups_of(lives))


def _made_to_fit(trace: Trace, lives: list[Life], chip: Chip) -> tuple[Trace, dict[int, tuple[int, int]]] | None:
    trace = apart(trace, lives) or trace
    trace = filled_late(trace, lives_of(trace))
    lives = lives_of(trace)
    try:
        return trace, allocate(lives, chip)
    except AllocationError:
        pass  # less is wanted than before, and still too much
    return moved_forward(trace, lives, chip)


def tile_map(tiles: Tiles, words: Sequence[int]) -> bytes:
    """Return member `tiles.json`, the debugger's map of names to places.

    `words` has a row per tile: first and last pc of each engine that touches it, -1 for the others.

    The format is described in `emulator.session.tiles`.
    """
    encode = json.JSONEncoder(separators=(",", ":")).encode
    kinds: dict[Any, str] = {}  # what tiles of one kind have in common
    text = bytearray(b"[")
    for number, life in enumerate(tiles.lives):
        one = life.allocation
        partition, byte = tiles.places[one.id]
        key = one.shape, one.dtype
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = f'"shape":{encode(list(one.shape))},"dtype":"{one.dtype.numpy_name}"'
        at = 2 * len(ENGINES) * number
        pcs = ",".join([
            f'"{engine}":[{words[place]},{words[place + 1]}]' for engine, place in zip(ENGINES, count(at, 2))
            if words[place] >= 0
        ])
        row = (f'{{"name":{encode(one.name)},"space":"{one.space.name}","partition":{partition},'
               f'"partitions":{one.partitions},"offset":{byte},{kind},"pcs":{{{pcs}}}}}')  # fmt: skip
        text += b"," if number else b""
        text += row.encode()
    text += b"]"
    return bytes(text)
