"""Integer tensors that something may read before it is written: the loader puts 4s there (`emulator.fresh`)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import groupby

from formats.dtypes import Dtype
from neurontools.builder.allocate import Life
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import Allocation, ComputeOp, Space, Trace, View

__all__ = ["fresh_map"]

_INTEGERS = frozenset(one for one in Dtype if one.is_int)
_HBM = Space.HBM


def fresh_map(trace: Trace, tiles: Tiles, names: Mapping[int, str], used: frozenset[int]) -> bytes | None:
    """Return member `fresh.json`, None where there is nothing to say.

    `names` are the variables of tensors in HBM, `used` those that the file has.
    """
    listed: list[dict[str, object]] = []
    outputs = {one.id for one in trace.outputs}
    for one in trace.allocations:
        if (one.dtype in _INTEGERS and one.space is _HBM and one.data is None and one.kind != "input"
                and one.id not in outputs and one.id in used):  # fmt: skip
            listed.append({"variable": names[one.id], "dtype": one.dtype.numpy_name})
    open_ones = [life for life in tiles.lives if life.allocation.dtype in _INTEGERS and not _written_whole(trace, life)]
    older = _on_older_bytes(tiles, open_ones)
    for tile in (life.allocation for life in open_ones):
        if tile.id not in older:
            partition, byte = tiles.places[tile.id]
            listed.append({"space": tile.space.name, "partition": partition, "partitions": tile.partitions,
                           "offset": byte, "nbytes": tile.partition_bytes, "dtype": tile.dtype.numpy_name})  # fmt: skip
    return json.dumps(listed, separators=(",", ":")).encode() if listed else None


def _written_whole(trace: Trace, life: Life) -> bool:
    """Return whether the first operation on a tile writes every byte of it and reads none."""
    op = trace.ops[life.first]
    roles = op.instruction.OPERANDS if isinstance(op, ComputeOp) else {}
    # a word that keeps part of its output, or a transfer that leaves out rows, has not written all of it
    if any(roles[name].role == "readwrite" for name in getattr(op, "operands", ())) or getattr(op, "skip", False):
        return False
    touched = [(view, writes) for view, writes in accesses_of(op) if view.allocation is life.allocation]
    return any(writes and _covers(view) for view, writes in touched) and all(writes for _, writes in touched)


def _covers(view: View) -> bool:
    one: Allocation = view.allocation
    if (view.partition, view.partitions, view.offset) != (0, one.partitions, 0):
        return False
    dims = sorted(((step, count) for step, count in view.dims if count > 1), key=lambda dim: dim[0])
    run = 1
    for step, count in dims:
        if step != run:
            return False
        run *= count
    return run * view.dtype.size == one.partition_bytes


def _on_older_bytes(tiles: Tiles, open_ones: Sequence[Life]) -> set[int]:
    """Return the allocation ids of those that share bytes with a tile whose life began before theirs."""
    asked = {life.allocation.id for life in open_ones}
    found: set[int] = set()
    if not asked:
        return found
    used = {Space.SBUF: _Used(), Space.PSUM: _Used()}
    for _, together in groupby(sorted(tiles.lives, key=_first), key=_first):
        begun = [life.allocation for life in together]
        # Tiles that begin at one operation are not older than each other: all of them ask before any of them counts.
        for tile in begun:
            if tile.id in asked and used[tile.space].meets(*_bytes_of(tiles, tile)):
                found.add(tile.id)
        for tile in begun:
            used[tile.space].add(*_bytes_of(tiles, tile))
    return found


def _first(life: Life) -> int:
    return life.first


def _bytes_of(tiles: Tiles, tile: Allocation) -> tuple[int, int, int]:
    """Return the first byte, the byte behind the last, and the partitions as a mask."""
    partition, byte = tiles.places[tile.id]
    return byte, byte + tile.partition_bytes, ((1 << tile.partitions) - 1) << partition


class _Used:
    """Bytes of one memory that some tile had: stretches of bytes, each with the mask of its partitions."""

    def __init__(self) -> None:
        # Stretch i goes from starts[i] to starts[i + 1]; the first begins at 0 and nothing is behind the last.
        self.starts, self.masks = [0], [0]

    def meets(self, low: int, high: int, mask: int) -> bool:
        """Return whether a byte of the rectangle was used."""
        at = bisect_right(self.starts, low) - 1
        while at < len(self.starts) and self.starts[at] < high:
            if self.masks[at] & mask:
                return True
            at += 1
        return False

    def add(self, low: int, high: int, mask: int) -> None:
        """Count a rectangle as used; neighbours that have become alike are one stretch again."""
        begin, end = self._cut(low), self._cut(high)
        starts, masks = self.starts, self.masks
        kept_starts, kept_masks = [], []
        before = masks[begin - 1] if begin else None
        for start, old in zip(starts[begin:end], masks[begin:end], strict=True):
            new = old | mask
            if new != before:
                kept_starts.append(start)
                kept_masks.append(new)
                before = new
        if end < len(starts) and masks[end] == before:
            end += 1
        starts[begin:end], masks[begin:end] = kept_starts, kept_masks

    def _cut(self, byte: int) -> int:
        """Return the number of the stretch that begins at a byte, made where there is none."""
        at = bisect_right(self.starts, byte) - 1
        if self.starts[at] == byte:
            return at
        self.starts.insert(at + 1, byte)
        self.masks.insert(at + 1, self.masks[at])
        return at + 1
