"""What the builder asks of a whole trace before it emits anything."""

from __future__ import annotations

from collections.abc import Sequence

from formats.named_tuple import NamedTuple
from neurontools.builder.activation_sets import ActivationLoop
from neurontools.builder.trace import (
    Allocation,
    CollectiveOp,
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    SendRecvOp,
    Space,
    Trace,
    View,
    views_of,
)

__all__ = ["Facts", "facts_of", "with_shared"]

_COPIES = IndirectDmaOp, DmaComputeOp
_HBM = Space.HBM


class Facts(NamedTuple):
    """Facts of a trace, each in program order.

    `functions` has the function of every activation; `loops` the loops with activations, outer ones first. HBM
    allocations go by id: `used` by any operation, `written` by transfers, since nothing else writes any. `landings` are
    where exchanged tiles arrive; `engines` those that compute.
    """

    functions: list[str]
    loops: list[ActivationLoop]
    used: frozenset[int]
    written: frozenset[int]
    landings: list[View]
    engines: frozenset[str]


def facts_of(trace: Trace) -> Facts:
    """Return the facts of a trace."""
    functions: list[str] = []
    landings: list[View] = []
    used, written, engines = set(), set(), set()
    loops: list[ActivationLoop] = []
    open_loops: list[int] = []
    for number, op in enumerate(trace.ops):
        if type(op) is ComputeOp:
            engines.add(op.engine)
            if "function" in op.fields:
                functions.append(str(op.fields["function"]))
            continue
        if type(op) is MatmulOp:
            continue
        if type(op) is DmaOp:
            written.add(op.dst.allocation.id)
            for view in (op.src, op.dst):
                if view.allocation.space is _HBM:
                    used.add(view.allocation.id)
            continue
        if isinstance(op, _COPIES):
            written.add(op.dst.allocation.id)
        elif isinstance(op, CollectiveOp):
            written.add(op.dst.allocation.id)
            if op.counts is not None:
                written.add(op.counts.allocation.id)
        elif isinstance(op, SendRecvOp):
            landings.append(op.dst)
        elif isinstance(op, LoopOp):
            open_loops.append(len(loops))
            loops.append(ActivationLoop(number, len(functions), 0))
        elif isinstance(op, LoopEndOp):
            place = open_loops.pop()
            loops[place] = loops[place]._replace(stop=len(functions))
        for view in views_of(op):
            if view.allocation.space is _HBM:
                used.add(view.allocation.id)
    loops = [loop for loop in loops if loop.start < loop.stop]
    return Facts(functions, loops, frozenset(used), frozenset(written), landings, frozenset(engines))


def with_shared(facts: Sequence[Facts], common: Sequence[Sequence[Allocation]]) -> list[Facts]:
    """Return the facts of programs that share tensors: what one of them writes is written for all."""
    if len(facts) == 1:
        return list(facts)
    found = [set(one.written) for one in facts]
    for ones in common:
        if any(one.id in written for one, written in zip(ones, found, strict=True)):
            for one, written in zip(ones, found, strict=True):
                written.add(one.id)
    return [one._replace(written=frozenset(written)) for one, written in zip(facts, found, strict=True)]
