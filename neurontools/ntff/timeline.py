"""What engines and DMA did in a capture, and in the emulator's run of the same NEFF.

Both sides are measured alike: only the compiler's words count; an engine is active while a word other than
EVENT_SEMAPHORE runs, which is the profiler's own measure; the program lasts from the first word's begin to the last
word's end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from formats.isa import EventSemaphore
from neurontools.profile.summary import union_ps

if TYPE_CHECKING:
    from emulator.timeline.measure import Measured
    from formats.neff import Neff
    from formats.ntff import Ntff

__all__ = ["captured", "compared", "emulated"]

_ES = EventSemaphore.OPCODE
_PS = 1000


def captured(ntff: Ntff, core: int | None) -> dict[str, Any]:
    """Return time by engine and queue of a capture, in nanoseconds."""
    from neurontools.ntff.capture import chosen_cores

    cores = []
    for capture in chosen_cores(ntff, core):
        spans: dict[str, list[tuple[int, int]]] = {}
        counts: dict[str, int] = {}
        begin = end = None
        buffers = {buffer.engine: buffer for buffer in ntff.buffers(capture.core)}
        for each in ntff.executed(capture.core):
            buffer = buffers[each.engine]
            if each.end_ps is None or buffer.compiler_pc(each.pc) is None:
                continue
            counts[each.engine] = counts.get(each.engine, 0) + 1
            begin = each.start_ps if begin is None else min(begin, each.start_ps)
            end = each.end_ps if end is None else max(end, each.end_ps)
            if buffer.data[each.pc * 64] != _ES:
                spans.setdefault(each.engine, []).append((each.start_ps, each.end_ps))
        cores.append(_core(capture.core, capture.name, begin or 0, end or 0, buffers, counts, spans,
                           _packets(ntff, capture.core)))  # fmt: skip
    return _whole(cores)


def _packets(ntff: Ntff, core: int) -> list[dict[str, Any]]:
    queues: dict[str, list[Any]] = {}
    for packet in ntff.packets(core):
        queues.setdefault(ntff.queue_name(core, packet.engine, packet.ring), []).append(packet)
    return [
        {"queue": name, "packets": len(packets), "bytes": sum(packet.nbytes for packet in packets),
         "active_ns": ns(union_ps((p.start_ps, p.end_ps) for p in packets if p.end_ps is not None))}
        for name, packets in queues.items()
    ]  # fmt: skip


def _core(
    number: int, name: str, begin: int, end: int, engines: Iterable[str], counts: dict[str, int],
    spans: dict[str, list[tuple[int, int]]], queues: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    length = end - begin
    rows = []
    for engine in engines:
        active = union_ps(spans.get(engine, ()))
        percent = round(100 * active / length, 2) if length else 0.0
        rows.append({"engine": engine, "words": counts.get(engine, 0), "active_ns": ns(active),
                     "active_percent": percent})  # fmt: skip
    return {"core": number, "name": name, "begin_ps": begin, "end_ps": end, "program_ns": ns(length),
            "engines": rows, "queues": queues}  # fmt: skip


def _whole(cores: list[dict[str, Any]]) -> dict[str, Any]:
    ran = [one for one in cores if one["end_ps"]]
    length = max((one["end_ps"] for one in ran), default=0) - min((one["begin_ps"] for one in ran), default=0)
    return {"program_ns": ns(length), "cores": cores}


def emulated(measured: Measured) -> dict[str, Any]:
    """Return the same of a run of the emulator."""
    from formats.neff import ENGINES

    device, recorder = measured.device, measured.recorder
    cores = []
    for core in device.cores:
        spans: dict[str, list[tuple[int, int]]] = {}
        counts: dict[str, int] = {}
        ends = [0]
        for owner in recorder.owners:
            if owner.core != core.index or owner.kind != "engine":
                continue
            track, words = recorder.tracks[owner], core.engines[owner.name].words
            rows = range(len(track))
            counts[owner.name] = len(rows)
            ends += [track.completed[row] for row in rows[-1:]]
            spans[owner.name] = [(track.start[row], track.completed[row]) for row in rows
                                 if words[track.position[row]].word.raw[0] != _ES]  # fmt: skip
        queues = []
        for owner in recorder.owners:
            if owner.core == core.index and owner.kind == "queue":
                track = recorder.tracks[owner]
                busy = union_ps(zip(track.start, track.completed, strict=False))
                queues.append({"queue": owner.name, "packets": sum(track.pieces[:len(track)]),
                               "bytes": sum(track.nbytes[:len(track)]), "active_ns": ns(busy)})  # fmt: skip
        name = core.loaded.subgraph.name if core.loaded is not None else f"nc{core.index}"
        cores.append(_core(core.index, name, 0, max(ends), ENGINES, counts, spans, queues))
    return {**_whole(cores), "outcome": device.outcome}


def compared(capture: dict[str, Any], neff: Neff, inputs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the emulator's run of a NEFF beside a capture: ratios are emulated time over captured time.

    Engines that did next to nothing in the capture have no ratio: None.
    """
    from emulator.timeline.measure import data_decides, measure

    with_data = inputs is not None or data_decides(neff)
    mine = emulated(measure(neff, inputs or {}, data=with_data))
    real = {one["name"]: one for one in capture["cores"]}
    engines = []
    for one in mine["cores"]:
        if one["name"] not in real:
            continue
        theirs = {row["engine"]: row for row in real[one["name"]]["engines"]}
        for row in one["engines"]:
            other = theirs.get(row["engine"])
            if other is not None:
                engines.append({"core": one["name"], "engine": row["engine"], "captured_ns": other["active_ns"],
                                "emulated_ns": row["active_ns"],
                                "ratio": ratio(row["active_ns"], other["active_ns"])})  # fmt: skip
    return {
        "outcome": mine["outcome"],
        "captured_ns": capture["program_ns"],
        "emulated_ns": mine["program_ns"],
        "ratio": ratio(mine["program_ns"], capture["program_ns"]),
        "engines": engines,
        "cores": mine["cores"],
    }


def ratio(mine: float, real: float) -> float | None:
    """Return emulated over captured time, None where there is nothing to compare with."""
    return round(mine / real, 3) if real else None


def ns(ps: float) -> float:
    """Return nanoseconds."""
    return round(ps / _PS, 3)
