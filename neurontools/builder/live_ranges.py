"""Tiles that a program fills again and again, taken apart where it does, so that their bytes are free in between.

What a tile holds when an operation overwrites all of it is never read: from there on it may lie elsewhere. The builder
asks for this only where tiles find no room otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from formats.regions import shape_of
from neurontools.builder.allocate import Life
from neurontools.builder.trace import (
    Allocation,
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    Trace,
    View,
    views_of,
)

__all__ = ["MOVED", "changed", "covers", "overwrites", "split_live_ranges"]

# Operations that can be given other allocations.
MOVED = ComputeOp, MatmulOp, DmaOp, IndirectDmaOp, DmaComputeOp


def split_live_ranges(trace: Trace, lives: Sequence[Life]) -> Trace | None:
    """Return the trace with an allocation per stretch between full overwrites of a tile; None where there is none.

    Tiles at addresses of the kernel, those that live across the edge of a loop, and those that a core barrier
    touches stay whole. `lives` are those of the trace as it stands.
    """
    edges = [number for number, op in enumerate(trace.ops) if isinstance(op, LoopOp | LoopEndOp)]
    uses: dict[int, list[int]] = defaultdict(list)
    whole = {life.allocation.id for life in lives if life.allocation.address is not None or _crosses(life, edges)}
    for number, op in enumerate(trace.ops):
        tiles = dict.fromkeys(view.allocation.id for view in views_of(op))
        for tile in tiles:
            uses[tile].append(number)
        if not isinstance(op, MOVED):
            whole.update(tiles)
    changes: dict[int, dict[int, Allocation]] = defaultdict(dict)  # by operation and allocation: what stands there
    made: list[Allocation] = []
    number = 1 + max((one.id for one in trace.allocations), default=0)
    for life in lives:
        old, now = life.allocation, life.allocation
        if old.id in whole:
            continue
        for place in uses[old.id]:
            # the first write begins the life that there is already
            if place > life.first and overwrites(trace.ops[place], old):
                now = Allocation(number, old.space, old.name, old.dtype, old.shape, old.kind, born=place)
                number += 1
                made.append(now)
            if now is not old:
                changes[place][old.id] = now
    if not made:
        return None
    other = Trace(trace.target, trace.program_id, trace.num_programs)
    other.visits, other.spills = trace.visits, trace.spills
    other.allocations = [*trace.allocations, *made]
    other.inputs, other.outputs, other.results, other.after = trace.inputs, trace.outputs, trace.results, trace.after
    other.ops = [changed(op, changes[at]) if at in changes else op for at, op in enumerate(trace.ops)]
    return other


def _crosses(life: Life, edges: Iterable[int]) -> bool:
    return any(life.first <= edge <= life.last for edge in edges)


def overwrites(op: Op, tile: Allocation) -> bool:
    """Return whether an operation certainly writes every byte of a tile, and reads none of it."""
    if isinstance(op, ComputeOp):
        roles = op.instruction.OPERANDS
        mine = [(name, view) for name, view in op.operands.items() if view.allocation is tile]
        # An accumulate field left open follows what the tile held before.
        return (
            op.instruction.OVERWRITES
            and op.fields.get("accumulate", 1) is not None
            and len(mine) == 1
            and roles[mine[0][0]].role == "write"
            and covers(mine[0][1])
        )
    if isinstance(op, DmaOp):
        return op.src.allocation is not tile and covers(op.dst)
    if isinstance(op, IndirectDmaOp):
        others = op.src.allocation is not tile and op.index.allocation is not tile
        return others and not (op.scatter or op.skip or op.accumulate) and covers(op.dst)
    if isinstance(op, MatmulOp):
        inputs = op.stationary.allocation is not tile and op.moving.allocation is not tile
        return inputs and op.accumulate is False and covers(op.dst)
    return False


def covers(view: View) -> bool:
    """Return whether a view is all of its tile."""
    one, shape = view.allocation, shape_of(view.dims, view.dtype.size)
    return view.partitions == one.partitions and view.offset == 0 and shape[:3] == (0, *[one.partition_bytes] * 2)


def changed(op: Op, now: dict[int, Allocation]) -> Op:
    """Return an operation on other allocations."""

    def at(view: View) -> View:
        other = now.get(view.allocation.id)
        return view if other is None else view._replace(allocation=other)

    if isinstance(op, ComputeOp):
        operands = {name: at(view) for name, view in op.operands.items()}
        return ComputeOp(op.instruction, op.engine, operands, op.fields, op.source, op.name)
    if isinstance(op, MatmulOp):
        views = at(op.dst), at(op.stationary), at(op.moving)
        return MatmulOp(*views, op.accumulate, op.is_transpose, op.source, op.name)
    if isinstance(op, DmaOp):
        return DmaOp(at(op.dst), at(op.src), op.engine, op.transpose, op.source, op.name)
    if isinstance(op, IndirectDmaOp):
        return IndirectDmaOp(
            at(op.dst), at(op.src), at(op.index), op.step, op.rows, op.engine, op.source, op.name, scatter=op.scatter,
            skip=op.skip, accumulate=op.accumulate, order=op.order,
        )  # fmt: skip
    assert isinstance(op, DmaComputeOp)
    return DmaComputeOp(at(op.dst), tuple(at(view) for view in op.srcs), op.source, op.name)
