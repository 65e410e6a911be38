"""A run on several ranks as a trace that Perfetto and Chrome open: a process a rank, one more for the links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurontools.command.output import write_whole

if TYPE_CHECKING:
    from emulator.machine.ranks.overlap import Activity
    from emulator.runtime.ranks import RankedResult

__all__ = ["trace_events", "write_trace"]

_US = 1_000_000  # picoseconds


def trace_events(found: RankedResult, watched: list[Activity]) -> list[dict[str, Any]]:
    """Return the events of a run: tracks of engines, DMA queues and streams for each rank, and tracks of links."""
    events: list[dict[str, Any]] = []
    tracks: dict[tuple[int, str], int] = {}

    def add(process: int, track: str, name: str, begin: int, end: int, **args: Any) -> None:
        key = process, track
        if key not in tracks:
            tracks[key] = len(tracks) + 1
            events.append(
                {"ph": "M", "name": "thread_name", "pid": process, "tid": tracks[key], "args": {"name": track}}
            )
        events.append({"ph": "X", "name": name, "pid": process, "tid": tracks[key], "ts": begin / _US,
                       "dur": (end - begin) / _US, **({"args": args} if args else {})})  # fmt: skip

    for rank, activity in enumerate(watched):
        events.append({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}})
        for engine, pc, begin, end, name in activity.words:
            add(rank, engine, name, begin, end, pc=pc)
        for mine in activity.moves:
            add(rank, mine.queue, "transfer", mine.begin_ps, mine.end_ps, bytes=mine.nbytes)
    for met in found.collectives:
        for rank, ended in met.ended_ps.items():
            called = met.begun_ps[rank]
            track = f"stream {met.stream}"
            add(rank, track, met.name, called, ended, algorithm=met.algorithm, ranks=len(met.group))
            add(rank, f"{track} trigger", "trigger", called, min(ended, called + found.trigger_ps))
    links = len(watched)
    events.append({"ph": "M", "name": "process_name", "pid": links, "args": {"name": "links"}})
    for move in found.moves:
        for target in move.targets:
            if target != move.rank:
                add(links, f"rank {move.rank} > rank {target}", f"{move.name} {move.phase}", move.begin_ps, move.end_ps,
                    bytes=move.nbytes, stream=move.stream)  # fmt: skip
    return events


def write_trace(path: Path, found: RankedResult, watched: list[Activity]) -> None:
    """Write the trace of a run; it appears whole or not at all."""
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": trace_events(found, watched)})
    with write_whole(path) as beside:
        beside.write_text(text, encoding="utf-8")
