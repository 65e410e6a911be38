"""Integer tensors that something may read before it is written: the loader puts 4s there (`emulator.fresh`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from formats.dtypes import Dtype
from neurontools.builder.allocate import Life
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.tiles import Tiles
from neurontools.trace import Allocation, ComputeOp, Space, Trace, View

__all__ = ["fresh_map"]

_INTEGERS = frozenset({Dtype.INT8, Dtype.UINT8, Dtype.INT16, Dtype.UINT16, Dtype.INT32, Dtype.UINT32})


def fresh_map(trace: Trace, tiles: Tiles, names: Mapping[int, str], used: frozenset[int]) -> bytes | None:
    """Return member `fresh.json`, None where there is nothing to say.

    `names` are the variables of tensors in HBM, `used` those that the file has.
    """
    listed: list[dict[str, object]] = []
    outputs = {one.id for one in trace.outputs}
    for one in trace.allocations:
        if (one.dtype in _INTEGERS and one.space is Space.HBM and one.data is None and one.kind != "input"
                and one.id not in outputs and one.id in used):  # fmt: skip
            listed.append({"variable": names[one.id], "dtype": one.dtype.numpy_name})
    open_ones = [life for life in tiles.lives if life.allocation.dtype in _INTEGERS and not _written_whole(trace, life)]
    for life in open_ones:
        tile = life.allocation
        if not any(_meet(tiles, other, life) for other in tiles.lives):
            partition, byte = tiles.places[tile.id]
            listed.append({"space": tile.space.name, "partition": partition, "partitions": tile.partitions,
                           "offset": byte, "nbytes": tile.partition_bytes, "dtype": tile.dtype.numpy_name})  # fmt: skip
    return json.dumps(listed, separators=(",", ":")).encode() if listed else None


def _written_whole(trace: Trace, life: Life) -> bool:
    """Tell whether the first operation on a tile writes every byte of it and reads none."""
    op = trace.ops[life.first]
    roles = op.instruction.OPERANDS if isinstance(op, ComputeOp) else {}
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


def _meet(tiles: Tiles, earlier: Life, later: Life) -> bool:
    """Tell whether a tile that lived before shares bytes with another."""
    a, b = earlier.allocation, later.allocation
    if earlier.first >= later.first or a.space is not b.space:
        return False
    (row, byte), (other_row, other_byte) = tiles.places[a.id], tiles.places[b.id]
    return (row < other_row + b.partitions and other_row < row + a.partitions
            and byte < other_byte + b.partition_bytes and other_byte < byte + a.partition_bytes)  # fmt: skip
