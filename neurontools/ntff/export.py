"""A capture for other viewers: Perfetto, Chrome's trace viewer, or a table of executions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurontools.ntff.capture import chosen_cores, source_text, subgraph_of
from neurontools.profile.export.scene import Counter, Lane, Scene, Slice
from neurontools.profile.rows import SHOWN

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.ntff import Ntff

__all__ = ["FORMATS", "export", "rows", "scene"]

FORMATS = ("perfetto", "chrome", "csv")
_COLUMNS = ("core", "engine", "pc", "compiler_pc", "opcode", "operands", "start_ns", "duration_ns", "source")


def rows(ntff: Ntff, neff: Neff | None, core: int | None) -> Iterator[dict[str, Any]]:
    """Yield every execution, in the order of its begin, counted from the profiler's zero: earlier ones are negative."""
    for capture in chosen_cores(ntff, core):
        subgraph = subgraph_of(neff, capture)
        buffers = {buffer.engine: buffer for buffer in ntff.buffers(capture.core)}
        origin = _origin(ntff)
        for each in ntff.executed(capture.core):
            buffer = buffers[each.engine]
            compiler_pc, word = buffer.compiler_pc(each.pc), buffer.words[each.pc]
            yield {
                "core": capture.core,
                "engine": SHOWN[each.engine],
                "pc": each.pc,
                "compiler_pc": compiler_pc,
                "opcode": word.name,
                "operands": word.operands,
                "start_ps": each.start_ps - origin,
                "end_ps": None if each.end_ps is None else each.end_ps - origin,
                "source": source_text(subgraph, each.engine, compiler_pc),
            }


def _origin(ntff: Ntff) -> int:
    """Return the time that counts as zero: the profiler's own, else the first begin."""
    if ntff.metadata.origin_ps:
        return ntff.metadata.origin_ps
    return min((each.start_ps for one in ntff.cores for each in ntff.executed(one.core)), default=0)


def scene(ntff: Ntff, neff: Neff | None, core: int | None) -> Scene:
    """Return the tracks of a capture: engines, DMA rings, semaphores."""
    lanes: list[Lane] = []
    counters: list[Counter] = []
    origin = _origin(ntff)
    for row in rows(ntff, neff, core):
        if row["end_ps"] is not None and row["start_ps"] >= 0:
            args = {"operands": row["operands"], "pc": row["pc"], "start_ps": row["start_ps"],
                    "busy_ps": row["end_ps"] - row["start_ps"]}  # fmt: skip
            args |= {key: row[key] for key in ("compiler_pc", "source") if row[key] is not None}
            kind = "runtime" if row["compiler_pc"] is None else "instruction"
            _place(lanes, f"nc{row['core']}", row["engine"], Slice(row["start_ps"], row["end_ps"], row["opcode"], kind,
                                                                   args))  # fmt: skip
    for capture in chosen_cores(ntff, core):
        group = f"nc{capture.core}"
        for packet in ntff.packets(capture.core):
            if packet.end_ps is not None and packet.start_ps >= origin:
                name = f"E{packet.engine} {ntff.queue_name(capture.core, packet.engine, packet.ring)}"
                _place(lanes, group, name, Slice(packet.start_ps - origin, packet.end_ps - origin,
                                                 f"{packet.nbytes:,} bytes", "dma", {"bytes": packet.nbytes}))
        levels: dict[int, Counter] = {}
        for change in ntff.signals(capture.core):
            if change.kind == "semaphore" and change.time_ps >= origin:
                level = levels.setdefault(change.number, Counter(group, f"S[{change.number}]", "value", [], []))
                level.times_ps.append(change.time_ps - origin)
                level.values.append(change.value)
        counters += [levels[number] for number in sorted(levels)]
    return Scene(ntff.name, ntff.target.name, lanes, counters, simulated=False)


def _place(lanes: list[Lane], group: str, name: str, made: Slice) -> None:
    """Put a slice into the first lane of its name that is free by then: slices of one lane do not overlap."""
    for lane in lanes:
        if lane.group == group and lane.name == name and lane.slices[-1].end_ps <= made.start_ps:
            lane.slices.append(made)
            return
    lanes.append(Lane(group, name, [made]))


def export(form: str, ntff: Ntff, neff: Neff | None, core: int | None, path: Path) -> int:
    """Write a capture in one of `FORMATS` and return the number of executions in it."""
    if form == "csv":
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(_COLUMNS)
        count = 0
        for row in rows(ntff, neff, core):
            end = row["end_ps"]
            times = {"start_ns": row["start_ps"] / 1000,
                     "duration_ns": "" if end is None else (end - row["start_ps"]) / 1000}  # fmt: skip
            table.writerow([times.get(name, row.get(name, "")) for name in _COLUMNS])
            count += 1
        path.write_text(text.getvalue(), encoding="utf-8")
        return count
    from neurontools.profile.export import chrome, perfetto

    made = scene(ntff, neff, core)
    if form == "perfetto":
        path.write_bytes(perfetto.encode(made))
    else:
        path.write_text("".join(line + "\n" for line in chrome.lines(made)), encoding="utf-8")
    return sum(each.category in ("instruction", "runtime") for lane in made.lanes for each in lane.slices)
