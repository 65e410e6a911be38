"""Traces as JSON objects, for what has to carry a kernel to another process: a graph that calls it.

    {"target": "trn2", "program": 0, "programs": 1, "allocations": [...], "views": [...], "places": [...],
     "ops": [["dma", 4, {"dst": 0, "src": 1, "engine": null, "transpose": false}, null]], "inputs": [0], "outputs": [1],
     "after": [[3, [1]]], "sites": [...], "visits": [...]}

Operations name views and places by their numbers; `neurontools.builder.loaded_trace` reads them. The format is ours.
"""

from __future__ import annotations

import base64
import operator
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from formats.isa import AluOp, ReduceCommand, ReduceDims
from formats.neff.visits import plain_rows
from neurontools.builder.trace import (
    Allocation,
    BarrierOp,
    CollectiveOp,
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    SendRecvOp,
    Source,
    Trace,
    View,
    visit_of,
)

__all__ = ["ENUMS", "OPS", "save_trace"]

ENUMS: dict[str, type[IntEnum]] = {one.__name__: one for one in (AluOp, ReduceCommand, ReduceDims)}
# What each operation holds besides its place and name: the kind of every value.
OPS: dict[str, tuple[type[Any], dict[str, str]]] = {
    "compute": (ComputeOp, {"instruction": "class", "engine": "engine", "operands": "operands", "fields": "fields"}),
    "dma": (DmaOp, {"dst": "view", "src": "view", "engine": "engine?", "transpose": "truth"}),
    "indirect": (IndirectDmaOp, {"dst": "view", "src": "view", "index": "view", "step": "number", "rows": "number",
                                 "engine": "engine?", "scatter": "truth", "skip": "truth", "accumulate": "truth",
                                 "order": "numbers?"}),
    "combine": (DmaComputeOp, {"dst": "view", "srcs": "views"}),
    "matmul": (MatmulOp, {"dst": "view", "stationary": "view", "moving": "view", "accumulate": "truth?",
                          "is_transpose": "truth"}),
    "barrier": (BarrierOp, {"engine": "engine", "data": "view?"}),
    "collective": (CollectiveOp, {"kind": "number", "dst": "view", "src": "view", "groups": "view", "rows": "number",
                                  "columns": "number", "reduce": "number", "engine": "engine", "stream": "number",
                                  "channel": "number", "turn": "number", "axis": "number", "counts": "view?",
                                  "keeps_counts": "truth", "has_places": "truth"}),
    "exchange": (SendRecvOp, {"src": "view", "dst": "view", "peer": "number", "pipe": "number"}),
    "loop": (LoopOp, {"condition": "view", "counting": "truth"}),
    "loop end": (LoopEndOp, {}),
}  # fmt: skip
_WORD_OF = {cls: (word, kinds) for word, (cls, kinds) in OPS.items()}


def save_trace(trace: Trace) -> dict[str, Any]:
    """Return a trace as values that JSON holds."""
    views: dict[View, int] = {}
    places: dict[tuple[str, int, int], int] = {}

    def number(view: View) -> int:
        return views.setdefault(view, len(views))

    def place(source: Source) -> int:
        return places.setdefault((*source, visit_of(source)), len(places))

    ops = [_op_text(op, number, place) for op in trace.ops]
    sites, rows = ([], []) if trace.visits is None else plain_rows(trace.visits.sites, trace.visits.rows)
    return {
        "target": trace.target.name,
        "program": trace.program_id,
        "programs": trace.num_programs,
        "allocations": [_allocation_text(one) for one in trace.allocations],
        "views": [[view.allocation.id, int(view.dtype), *view[2:5], view.dims] for view in views],
        "places": list(places),
        "ops": ops,
        "inputs": [one.id for one in trace.inputs],
        "outputs": [one.id for one in trace.outputs],
        "after": [[one, sorted(others)] for one, others in sorted(trace.after.items())],
        "sites": sites,
        "visits": rows,
    }


def _allocation_text(one: Allocation) -> list[Any]:
    data = None
    if one.data is not None:
        held = np.ascontiguousarray(one.data)
        data = [held.dtype.name, held.shape, base64.b64encode(held.tobytes()).decode()]
    return [one.space.value, one.name, int(one.dtype), one.shape, one.kind, one.address, one.born, data]


def _op_text(op: Op, view: Callable[[View], int], place: Callable[[Source], int]) -> list[Any]:
    word, kinds = _WORD_OF[type(op)]
    held: dict[str, Any] = {}
    for name, kind in kinds.items():
        value = getattr(op, name)
        if value is None or kind.rstrip("?") in ("truth", "number", "numbers", "engine"):
            held[name] = value
        elif kind == "class":
            held[name] = value.NAME
        elif kind == "operands":
            held[name] = {key: view(one) for key, one in value.items()}
        elif kind == "fields":
            held[name] = {key: _field_text(one) for key, one in value.items()}
        else:
            held[name] = [view(one) for one in value] if kind == "views" else view(value)
    return [word, place(op.source), held, op.name]


def _field_text(value: Any) -> Any:
    if type(value).__name__ in ENUMS:
        return [type(value).__name__, int(value)]
    if isinstance(value, (tuple, list)):
        return ["numbers", [operator.index(one) for one in value]]
    return value
