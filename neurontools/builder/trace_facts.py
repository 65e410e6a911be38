"""What the builder asks of a whole trace before it emits anything."""

from __future__ import annotations

from neurontools.trace import (
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    Space,
    Trace,
    views_of,
)

__all__ = ["functions_of", "hbm_used", "hbm_written", "loop_edges"]

_COPIES = DmaOp, IndirectDmaOp, DmaComputeOp


def functions_of(trace: Trace) -> list[str]:
    """Return the function of every activation, in program order."""
    return [str(op.fields["function"]) for op in trace.ops if isinstance(op, ComputeOp) and "function" in op.fields]


def loop_edges(trace: Trace) -> frozenset[int]:
    """Return the numbers of the first activation in each loop and of the first behind it, in program order."""
    edges, count = set(), 0
    for op in trace.ops:
        if isinstance(op, ComputeOp):
            count += "function" in op.fields
        elif isinstance(op, LoopOp | LoopEndOp):
            edges.add(count)
    return frozenset(edges)


def hbm_used(trace: Trace) -> frozenset[int]:
    """Return the ids of the HBM allocations that any operation touches."""
    return frozenset(
        view.allocation.id for op in trace.ops for view in views_of(op) if view.allocation.space is Space.HBM
    )


def hbm_written(trace: Trace) -> frozenset[int]:
    """Return the ids of the allocations that transfers write; of HBM nothing else writes any."""
    return frozenset(op.dst.allocation.id for op in trace.ops if isinstance(op, _COPIES))
