"""Help for the front end's tests: run a body under a tracer, and check that every operation fits its declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from formats import isa
from formats.targets import resolve_target
from neurontools.builder.trace import (
    BarrierOp,
    ComputeOp,
    DmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    SendRecvOp,
    Space,
    Trace,
    View,
)
from neurontools.nki.launch import Traced, trace_kernel
from neurontools.nki.tracer import Tracer, tracing


def trace_body(body: Callable[[], Any], target: str = "trn2", program_id: int = 0, grid: tuple[int, ...] = ()) -> Trace:
    """Return the trace of a function without arguments."""
    t = Tracer(resolve_target(target), program_id, grid)
    with tracing(t):
        body()
    check_trace(t.trace)
    return t.trace


def trace(kernel: Any, *args: Any, target: str = "trn2", lnc: int | None = None) -> list[Traced]:
    """Return the checked traces of a kernel."""
    programs = trace_kernel(kernel, args, target=target, lnc=lnc)
    for one in programs:
        check_trace(one.trace)
    return programs


def compute_ops(trace: Trace) -> list[ComputeOp]:
    """Return the operations of compute engines, in order."""
    return [op for op in trace.ops if isinstance(op, ComputeOp)]


def names(trace: Trace) -> list[str]:
    """Return a word for each operation, in order."""
    return [op.instruction.__name__ if isinstance(op, ComputeOp) else type(op).__name__ for op in trace.ops]


def check_trace(trace: Trace) -> None:
    """Check every operation against the instruction's declaration and every view against its allocation."""
    for op in trace.ops:
        views: list[View] = []
        if isinstance(op, ComputeOp):
            assert issubclass(op.instruction, isa.Instruction)
            assert op.engine in op.instruction.ENGINES, op
            assert set(op.operands) <= set(op.instruction.OPERANDS), op
            assert set(op.fields) <= set(op.instruction.FIELDS), op
            views = list(op.operands.values())
            for key, view in op.operands.items():
                assert view.allocation.space is not Space.HBM, op
                if key.endswith("_pointer"):
                    assert view.dims == ((1, 1),), op
        elif isinstance(op, DmaOp):
            views = [op.dst, op.src]
            assert op.dst.elements == op.src.elements, op
            assert op.engine in (None, "SP", "Activation", "Pool"), op
        elif isinstance(op, MatmulOp):
            views = [op.dst, op.stationary, op.moving]
        elif isinstance(op, SendRecvOp):
            views = [op.src, op.dst]
        else:
            assert isinstance(op, BarrierOp | LoopOp | LoopEndOp), op
        for view in views:
            assert view.allocation is trace.allocations[view.allocation.id]
            low, high = view.offset, view.offset + view.dtype.size
            for step, count in view.dims:
                high += step * (count - 1) * view.dtype.size
            assert 0 <= low < high <= view.allocation.partition_bytes, (op, view)
            assert view.partition >= 0 and view.partition + view.partitions <= view.allocation.partitions, (op, view)
        file, line = op.source
        assert line > 0 and "neurontools/nki" not in file, op


def elements(tensor: Any, storage: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what a tensor's shape, strides and offset select of its storage, given row major."""
    flat = storage.reshape(-1)
    return np.lib.stride_tricks.as_strided(
        flat[tensor.offset :], tensor.shape, tuple(stride * flat.itemsize for stride in tensor.strides)
    )
