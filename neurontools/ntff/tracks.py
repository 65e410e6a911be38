"""A capture for other viewers: Perfetto, Chrome's trace viewer, or a table of executions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from neurontools.ntff.capture import chosen_cores, source_text, subgraph_of
from neurontools.profile.export.scene import Counter, Lane, Scene, Slice
from neurontools.profile.rows import SHOWN

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.ntff import Ntff

__all__ = ["FORMATS", "Execution", "executions", "scene", "write"]

FORMATS = ("perfetto", "chrome", "csv")
_COLUMNS = ("core", "engine", "pc", "compiler_pc", "opcode", "operands", "start_ns", "duration_ns", "source")


class Execution(NamedTuple):
    """One execution of a word; times count from the profiler's zero, so earlier ones are negative."""

    core: int
    engine: str
    pc: int
    compiler_pc: int | None
    opcode: str
    operands: str
    start_ps: int
    end_ps: int | None
    source: str | None


def executions(ntff: Ntff, neff: Neff | None, core: int | None) -> Iterator[Execution]:
    """Yield every execution, in the order of its begin."""
    origin = _origin(ntff)
    for capture in chosen_cores(ntff, core):
        subgraph = subgraph_of(neff, capture)
        buffers = {buffer.engine: buffer for buffer in ntff.buffers(capture.core)}
        for each in ntff.executed(capture.core):
            buffer = buffers[each.engine]
            compiler_pc, word = buffer.compiler_pc(each.pc), buffer.words[each.pc]
            yield Execution(
                capture.core,
                SHOWN[each.engine],
                each.pc,
                compiler_pc,
                word.name,
                word.operands,
                each.start_ps - origin,
                None if each.end_ps is None else each.end_ps - origin,
                source_text(subgraph, each.engine, compiler_pc),
            )


def _origin(ntff: Ntff) -> int:
    """Return the time that counts as zero: the profiler's own, else the first begin."""
    if ntff.metadata.origin_ps:
        return ntff.metadata.origin_ps
    return min((each.start_ps for one in ntff.cores for each in ntff.executed(one.core)), default=0)


def scene(ntff: Ntff, neff: Neff | None, core: int | None) -> Scene:
    """Return the tracks of a capture: engines, DMA rings, semaphores."""
    lanes = _Lanes()
    counters: list[Counter] = []
    origin = _origin(ntff)
    for each in executions(ntff, neff, core):
        if each.end_ps is not None and 0 <= each.start_ps <= each.end_ps:
            args: dict[str, object] = {"operands": each.operands, "pc": each.pc, "start_ps": each.start_ps,
                                       "busy_ps": each.end_ps - each.start_ps}  # fmt: skip
            if each.compiler_pc is not None:
                args["compiler_pc"] = each.compiler_pc
            if each.source is not None:
                args["source"] = each.source
            kind = "runtime" if each.compiler_pc is None else "instruction"
            made = Slice(each.start_ps, each.end_ps, each.opcode, kind, args)
            lanes.place(f"nc{each.core}", each.engine, made)
    for capture in chosen_cores(ntff, core):
        group = f"nc{capture.core}"
        for packet in ntff.packets(capture.core):
            if packet.end_ps is not None and origin <= packet.start_ps <= packet.end_ps:
                name = f"E{packet.engine} {ntff.queue_name(capture.core, packet.engine, packet.ring)}"
                lanes.place(
                    group,
                    name,
                    Slice(
                        packet.start_ps - origin,
                        packet.end_ps - origin,
                        f"{packet.nbytes:,} bytes",
                        "dma",
                        {"bytes": packet.nbytes},
                    ),
                )
        levels: dict[int, Counter] = {}
        for change in ntff.signals(capture.core):
            if change.kind == "semaphore" and change.time_ps >= origin:
                level = levels.setdefault(change.number, Counter(group, f"S[{change.number}]", "value", [], []))
                level.times_ps.append(change.time_ps - origin)
                level.values.append(change.value)
        counters += [levels[number] for number in sorted(levels)]
    return Scene(ntff.name, ntff.target.name, lanes.lanes, counters, simulated=False)


class _Lanes:
    """Slices in lanes, of which each holds none that overlap; the slices of one name come in order of their begin."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self._free: dict[tuple[str, str], list[int]] = {}
        self._busy: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def place(self, group: str, name: str, made: Slice) -> None:
        """Put a slice into the first lane of its name that is free by then."""
        free = self._free.setdefault((group, name), [])
        busy = self._busy.setdefault((group, name), [])
        while busy and busy[0][0] <= made.start_ps:
            heappush(free, heappop(busy)[1])
        if free:
            number = heappop(free)
            self.lanes[number].slices.append(made)
        else:
            number = len(self.lanes)
            self.lanes.append(Lane(group, name, [made]))
        heappush(busy, (made.end_ps, number))


def write(form: str, ntff: Ntff, neff: Neff | None, core: int | None, path: Path) -> int:
    """Write a capture in one of `FORMATS` and return the number of executions in it."""
    if form == "csv":
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(_COLUMNS)
        count = 0
        for each in executions(ntff, neff, core):
            took = "" if each.end_ps is None else (each.end_ps - each.start_ps) / 1000
            table.writerow([*each[:6], each.start_ps / 1000, took, each.source])
            count += 1
        path.write_text(text.getvalue(), encoding="utf-8")
        return count
    from neurontools.profile.export import chrome, perfetto  # deferred: start-up

    made = scene(ntff, neff, core)
    if form == "perfetto":
        path.write_bytes(perfetto.encode(made))
    else:
        path.write_text("".join(line + "\n" for line in chrome.lines(made)), encoding="utf-8")
    return sum(each.category in ("instruction", "runtime") for lane in made.lanes for each in lane.slices)
