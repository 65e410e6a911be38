"""The on-chip tiles of one program: how long each lives, where it stands, which share bytes."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from neurontools.builder.allocate import Life, allocate, groups_of
from neurontools.builder.chip import Chip
from neurontools.builder.encode import Place
from neurontools.builder.errors import AllocationError
from neurontools.builder.leftovers import Leftovers
from neurontools.builder.live_ranges import split_live_ranges
from neurontools.builder.sharing import Loss
from neurontools.builder.sinking import hoist_last_uses, ordered_by_bytes, sink_fills
from neurontools.builder.spilling import Spilled, spilled
from neurontools.builder.trace import (
    Allocation,
    LoopEndOp,
    LoopOp,
    Source,
    Space,
    Trace,
    View,
    views_of,
)

__all__ = ["Tiles", "lives_of", "loops_of", "place_tiles", "tile_map", "views_of"]


# What `Place(...)` and `Life(...)` do, without their functions: every tile has one of each.
_place_of: Callable[[tuple[int, int]], Place] = partial(tuple.__new__, Place)
_life_of: Callable[[tuple[Allocation, int, int, Source]], Life] = partial(tuple.__new__, Life)
_ALLOCATION = itemgetter(View._fields.index("allocation"))


class Tiles(NamedTuple):
    """Lives of all tiles; (partition, byte) of each by allocation id; group of those that share bytes by choice.

    `spilled` says which of them go through device memory, None where none does.
    """

    lives: list[Life]
    places: dict[int, tuple[int, int]]
    groups: dict[int, int]
    spilled: Spilled | None = None

    def place(self, tile: Allocation) -> Place:
        """Return where the engines find a tile."""
        partition, byte = self.places[tile.id]
        base, stride = (PSUM_BASE, PSUM_PARTITION_STRIDE) if tile.space is Space.PSUM else (0, SBUF_PARTITION_STRIDE)
        return _place_of((base + partition * stride + byte, stride))

    def bounds(self, space: Space) -> tuple[int, int] | None:
        """Return the lowest byte that a memory uses and the byte behind its highest one; None where it is not used."""
        places = self.places
        mine = [
            (places[life.allocation.id][1], life.allocation.partition_bytes)
            for life in self.lives
            if life.allocation.space is space
        ]
        return (min(mine)[0], max([byte + size for byte, size in mine])) if mine else None


def lives_of(trace: Trace) -> list[Life]:
    """Return every tile that an operation touches, with its first and last operation."""
    views, ends, _, _, others = trace.what_is_touched()
    ops, hbm = trace.ops, Space.HBM
    touched = [*map(_ALLOCATION, views)]
    last = dict(zip(touched, range(len(touched)), strict=True))  # in the order of first uses
    first = dict(zip(reversed(touched), reversed(range(len(touched))), strict=True))
    lives: list[Life] = []
    for tile, end in last.items():
        if tile.space is not hbm:
            start = bisect_right(ends, first[tile])
            lives.append(_life_of((tile, start, bisect_right(ends, end), ops[start].source)))
    looped = LoopOp in map(type, others)
    for begin, end in loops_of(trace) if looped else ():
        # The next turn finds what an earlier one left in tiles that are older than the loop.
        lives = [
            life._replace(first=min(life.first, begin), last=max(life.last, end))
            if life.allocation.born <= begin and life.first <= end and life.last >= begin
            else life
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

    Where it does not, live ranges are split and fills sunk to the first use; where that is not enough, last uses are
    hoisted, and tiles spilled where the kernel leaves that to the compiler. The last resort are bytes between tiles at
    one address of the kernel, where nobody reads what is left. Raises AllocationError, for the program as the kernel
    has it, when none of that helps.
    """
    lives = lives_of(trace)
    moved: Spilled | None = None
    try:
        places = allocate(lives, chip)
    except AllocationError:
        changed = _made_to_fit(trace, lives, chip)
        if changed is None and trace.spills:
            moved, changed = _spilled(trace, lives, chip)
        if changed is None:
            changed = trace, allocate(lives, chip, Leftovers(trace, lives).are_read)
        trace, places = changed
        lives = lives_of(trace)
    return trace, Tiles(lives, places, groups_of(lives), moved)


def _spilled(
    trace: Trace, lives: list[Life], chip: Chip
) -> tuple[Spilled | None, tuple[Trace, dict[int, tuple[int, int]]] | None]:
    split = split_live_ranges(trace, lives) or trace
    for found in spilled(split, lives_of(split), chip):
        try:
            return found, (found.trace, allocate(lives_of(found.trace), chip))
        except AllocationError:
            continue  # bytes enough, but in gaps too small; or PSUM is full
    return None, None


def _made_to_fit(trace: Trace, lives: list[Life], chip: Chip) -> tuple[Trace, dict[int, tuple[int, int]]] | None:
    split = split_live_ranges(trace, lives) or trace
    # A fill that was sunk may want room where nothing can give any; it then stays where the kernel has it.
    for changed in (sink_fills(split, lives_of(split)), split):
        found = _reordered_to_fit(changed, chip)
        if found is not None:
            return found
    return None


def _reordered_to_fit(trace: Trace, chip: Chip) -> tuple[Trace, dict[int, tuple[int, int]]] | None:
    lives = lives_of(trace)
    try:
        return trace, allocate(lives, chip)
    except AllocationError:
        pass  # less is wanted than before, and still too much
    moved = hoist_last_uses(trace, lives, chip)
    if moved is not None:
        return moved
    for other in ordered_by_bytes(trace, lives, chip):
        try:
            return other, allocate(lives_of(other), chip)
        except AllocationError:
            continue  # bytes enough, but in gaps too small
    return None


class _Uses(Protocol):
    def pcs(self) -> Sequence[int]:
        """Return a row per tile: first and last pc of each engine that uses it, -1 for the others."""


def tile_map(tiles: Tiles, uses: _Uses, losses: Sequence[Loss] = ()) -> bytes:
    """Return member `tiles.json`, the debugger's map of names to places.

    `losses` are reads of what another tile on the same bytes has overwritten.

    The format is described in `formats.neff.tiles`.
    """
    encode = json.JSONEncoder(separators=(",", ":")).encode
    # JSON written by hand: rows of one shape, type and set of engines differ in a name and a few numbers.
    kinds: dict[Any, str] = {}
    rows: list[str] = []
    lost: dict[int, list[list[object]]] = {}
    for loss in losses:
        lost.setdefault(loss.tile, []).append([loss.engine, loss.pc, loss.other])
    width = 2 * len(ENGINES)
    pcs = np.array(uses.pcs(), np.int64).reshape(-1, width)
    touched = ((pcs[:, ::2] >= 0) @ (1 << np.arange(len(ENGINES)))).tolist()
    places, psum = tiles.places, Space.PSUM
    for life, engines, row in zip(tiles.lives, touched, pcs.tolist(), strict=True):
        one = life.allocation
        partition, byte = places[one.id]
        key = one.space is psum, one.shape, one.dtype, engines
        kind = kinds.get(key)
        if kind is None:
            named = ",".join(f'"{engine}":[%d,%d]' for bit, engine in enumerate(ENGINES) if engines >> bit & 1)
            kind = kinds[key] = (
                f'{{"name":%s,"space":"{one.space.name}","partition":%d,"partitions":{one.partitions},"offset":%d,'
                f'"shape":{encode(list(one.shape))},"dtype":"{one.dtype.numpy_name}","pcs":{{{named}}}'
            )
        text = kind % (encode_basestring_ascii(one.name), partition, byte, *[pc for pc in row if pc >= 0])
        rows.append(f'{text},"lost":{encode(lost[one.id])}}}' if one.id in lost else f"{text}}}")
    return f"[{','.join(rows)}]".encode()
