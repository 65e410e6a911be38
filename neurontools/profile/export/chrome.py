"""The JSON trace format of Chrome's viewer: complete events, flow events, counters; timestamps in microseconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from neurontools.profile.export.scene import Scene

__all__ = ["lines"]


def lines(scene: Scene) -> Iterator[str]:
    """Yield the lines of one JSON document, an event a line."""
    other = {"is_simulation": scene.simulated, "name": scene.name, "target": scene.target, "tool": "neurontools"}
    yield f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(other)}, "traceEvents": ['
    last = None
    for event in _events(scene):
        if last is not None:
            yield json.dumps(last) + ","
        last = event
    yield ("" if last is None else json.dumps(last)) + "]}"


def _events(scene: Scene) -> Iterator[dict[str, Any]]:
    groups = {name: number for number, name in enumerate(scene.groups)}
    for name, number in groups.items():
        yield {"ph": "M", "pid": number, "name": "process_name", "args": {"name": name}}
    for number, lane in enumerate(scene.lanes, 1):
        base = {"pid": groups[lane.group], "tid": number}
        yield {**base, "ph": "M", "name": "thread_name", "args": {"name": lane.name}}
        yield {**base, "ph": "M", "name": "thread_sort_index", "args": {"sort_index": number}}
        for each in lane.slices:
            at = each.start_ps / 1e6
            yield {
                **base,
                "ph": "X",
                "ts": at,
                "dur": (each.end_ps - each.start_ps) / 1e6,
                "name": each.name,
                "cat": each.category,
                "args": each.args,
            }
            for flow in each.flows_out:
                yield {**base, "ph": "s", "id": flow, "ts": at, "name": "signal", "cat": "flow"}
            for flow in each.flows_in:
                yield {**base, "ph": "f", "bp": "e", "id": flow, "ts": at, "name": "signal", "cat": "flow"}
    for counter in scene.counters:
        for time, value in zip(counter.times_ps, counter.values, strict=True):
            yield {
                "ph": "C",
                "pid": groups[counter.group],
                "ts": time / 1e6,
                "name": counter.name,
                "args": {counter.unit: value},
            }
