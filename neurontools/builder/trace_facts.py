"""What the builder asks of a whole trace before it emits anything."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, itemgetter

from formats.named_tuple import NamedTuple
from neurontools.builder.activation_sets import ActivationLoop
from neurontools.builder.trace import (
    Allocation,
    CollectiveOp,
    ComputeOp,
    DmaComputeOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    SendRecvOp,
    Space,
    Trace,
    View,
)

__all__ = ["Facts", "facts_of", "with_shared"]

_COPIES = IndirectDmaOp, DmaComputeOp
_HBM = Space.HBM
_ALLOCATION = itemgetter(View._fields.index("allocation"))
_ENGINE = attrgetter("engine")


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
    views, _, computing, copies, others = trace.what_is_touched()
    functions = [str(op.fields["function"]) for op in computing if "function" in op.fields]
    used = {one.id for one in {*map(_ALLOCATION, views)} if one.space is _HBM}
    written = {op.dst.allocation.id for op in copies}
    landings: list[View] = []
    for op in others:
        if isinstance(op, _COPIES):
            written.add(op.dst.allocation.id)
        elif isinstance(op, CollectiveOp):
            written.add(op.dst.allocation.id)
            if op.counts is not None:
                written.add(op.counts.allocation.id)
        elif isinstance(op, SendRecvOp):
            landings.append(op.dst)
    loops = _loops(trace) if LoopOp in map(type, others) else []
    engines = frozenset(map(_ENGINE, computing))
    return Facts(functions, loops, frozenset(used), frozenset(written), landings, engines)


def _loops(trace: Trace) -> list[ActivationLoop]:
    loops: list[ActivationLoop] = []
    open_loops: list[int] = []
    count = 0  # of activations so far
    for number, op in enumerate(trace.ops):
        if isinstance(op, ComputeOp):
            count += "function" in op.fields
        elif isinstance(op, LoopOp):
            open_loops.append(len(loops))
            loops.append(ActivationLoop(number, count, 0))
        elif isinstance(op, LoopEndOp):
            place = open_loops.pop()
            loops[place] = loops[place]._replace(stop=count)
    return [loop for loop in loops if loop.start < loop.stop]


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
