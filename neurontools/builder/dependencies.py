"""Which operations of a trace have to stay in front of which: the order that any rearrangement has to keep."""

from __future__ import annotations

from formats.isa import EngineState, ReduceCommand
from formats.regions import Shape, shape_of
from neurontools.builder.conflicts import Conflicts, record_of
from neurontools.builder.indirect import whole
from neurontools.builder.trace import (
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    MatmulOp,
    Op,
    Space,
    Trace,
    View,
)

__all__ = ["accesses_of", "hidden_state", "predecessors", "stands"]

_Key = tuple[tuple[tuple[int, int], ...], int]


def stands(op: Op) -> bool:
    """Return whether nothing may pass an operation: loops, core barriers, and what this module does not know."""
    return not isinstance(op, ComputeOp | MatmulOp | DmaOp | IndirectDmaOp | DmaComputeOp)


def hidden_state(op: Op) -> str | None:
    """Return the engine whose accumulators or random state an operation touches besides its operands, or None."""
    if not isinstance(op, ComputeOp):
        return None
    cls = op.instruction
    if cls.STATE is EngineState.OPTIONAL:
        field = cls.FIELDS["reduce_command"]
        return None if op.fields.get("reduce_command", field.default) == ReduceCommand.IDLE else op.engine
    return None if cls.STATE is EngineState.NONE else op.engine


def accesses_of(op: Op) -> list[tuple[View, bool]]:
    """Return every view that an operation touches, with whether it writes there."""
    if isinstance(op, ComputeOp):
        roles = op.instruction.OPERANDS
        return [(view, roles[name].role != "read") for name, view in op.operands.items()]
    if isinstance(op, MatmulOp):
        return [(op.stationary, False), (op.moving, False), (op.dst, True)]
    if isinstance(op, DmaOp):
        return [(op.src, False), (op.dst, True)]
    if isinstance(op, IndirectDmaOp):
        src, dst = (op.src, whole(op.dst)) if op.scatter else (whole(op.src), op.dst)
        return [(op.index, False), (src, False), (dst, True)]
    if isinstance(op, DmaComputeOp):
        return [*((view, False) for view in op.srcs), (op.dst, True)]
    return []


def predecessors(trace: Trace) -> list[tuple[int, ...]]:
    """Return, per operation, the numbers of those before it that have to stay before it; what follows is left out.

    Two accesses to common bytes of which one writes keep their order, tiles at addresses of the kernel by where they
    lie; so do operations with hidden state on one engine, and what `Trace.after` says. What `stands` passes nothing:
    the caller keeps to the stretches between such operations.
    """
    regions: dict[object, Conflicts] = {}
    shapes: dict[_Key, Shape] = {}
    state: dict[str, int] = {}
    found = []
    for number, op in enumerate(trace.ops):
        before: set[int] = set()
        for view, write in accesses_of(op):
            allocation = view.allocation
            key = view.dims, view.dtype.size
            shape = shapes.get(key)
            if shape is None:
                shape = shapes[key] = shape_of(*key)
            partition, byte = allocation.address or (0, 0)
            owner: object = allocation.id if allocation.address is None else allocation.space
            if allocation.space is Space.HBM:
                first, partitions, byte = 0, 1, 0
            else:
                first, partitions = partition + view.partition, view.partitions
            region = regions.get(owner)
            if region is None:
                region = regions[owner] = Conflicts()
            region.access(record_of(first, first + partitions, byte + view.offset, shape, write, number), before)
        before.update(trace.after.get(number, ()))
        engine = hidden_state(op)
        if engine is not None:
            if engine in state:
                before.add(state[engine])
            state[engine] = number
        found.append(tuple(sorted(before)))
    return found
