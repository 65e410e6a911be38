"""The summary of a profile: engines, DMA, memory, roofline, lines, and the critical path."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from emulator.cost.instructions import shown_ps
from neurontools.profile.peaks import dma_peak, hbm_peak
from neurontools.profile.rows import SHOWN, Line, Timeline, flops_of

__all__ = ["line_text", "lines", "summarise", "union_ps"]

_TOP = 20


def union_ps(spans: Iterable[tuple[int, int]]) -> int:
    """Return the time that at least one of the spans (start, end) covers."""
    total = last = 0
    for start, end in sorted(spans):
        if end > last:
            total += end - max(start, last)
            last = end
    return total


def line_text(line: Line | None) -> str:
    """Return a source line as the profile names it: its file without folders."""
    if line is None:
        return "unknown"
    return f"{line[0].rsplit('/', 1)[-1]}:{line[1]}" if line[1] else line[0]


def ns(ps: float) -> float:
    """Return nanoseconds."""
    return round(ps / 1000, 3)


def percent(part: float, whole: float) -> float:
    """Return a share in percent."""
    return round(100 * part / whole, 2) if whole else 0.0


def summarise(timeline: Timeline, name: str) -> dict[str, Any]:
    """Return the summary of a run as plain data; times in nanoseconds."""
    device = timeline.device
    work = _work(timeline)
    return {
        "name": name,
        "is_simulation": True,
        "target": device.target.name,
        "cores": len(device.cores),
        "outcome": device.outcome,
        "total_time_ns": ns(timeline.end_ps),
        "engines": [_engine(timeline, track) for track in timeline.engines],
        "dma": _dma(timeline),
        "roofline": _roofline(timeline, work),
        "memory": [{"core": use.core, "space": use.space, "peak_bytes": use.peak_bytes,
                    "peak_percent": round(use.peak_percent, 2)} for use in timeline.measured.usage if use.peak_bytes],
        "critical_path": _path(timeline),
        "lines": lines(timeline),
        "opcodes": _opcodes(timeline),
    }


def _engine(timeline: Timeline, track: Any) -> dict[str, Any]:
    end, count = timeline.end_ps, len(track)
    busy = sum(min(free, end) - start for start, free in zip(track.start[:count], track.free[:count], strict=True))
    waits = [wait for wait in timeline.waits if wait.owner == track.owner]
    waited = sum(track.waited[:count])
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for wait in waits:
        source = "" if wait.source is None else wait.source[0].text
        if wait.source is not None and wait.source[0].core == track.owner.core:
            source = wait.source[0].name
        groups[{"order": "in flight"}.get(wait.kind, wait.kind), source].append(wait)
    active = union_ps(_under_way(timeline, track))
    return {
        "core": track.owner.core,
        "engine": SHOWN.get(track.owner.name, track.owner.name),
        "name": track.owner.name,
        "instruction_count": count,
        "busy_ns": ns(busy),
        "wait_ns": ns(waited),
        "idle_ns": ns(end - busy - waited),
        "active_ns": ns(active),
        "busy_percent": percent(busy, end),
        "wait_percent": percent(waited, end),
        "idle_percent": percent(end - busy - waited, end),
        "active_percent": percent(active, end),
        "waits": sorted(({"reason": kind, "source": source, "count": len(group), "ns": ns(sum(w.ps for w in group)),
                          "percent": percent(sum(w.ps for w in group), end), "longest": _longest(timeline, group)}
                         for (kind, source), group in groups.items()), key=lambda one: -one["ns"]),
    }


def _under_way(timeline: Timeline, track: Any) -> Iterable[tuple[int, int]]:
    """Return when each word was under way, as profiles show it.

    Of a trigger on GpSimd they show the word, not the making of descriptors that comes before it.
    """
    if track.owner.name != "Pool":
        return zip(track.start, track.completed, strict=False)
    found = []
    for row, (start, end) in enumerate(zip(track.start, track.completed, strict=False)):
        shown = shown_ps(timeline.causes.word(track.owner, row), track.owner.name, timeline.device.arch)
        found.append((start if shown is None else max(start, end - shown), end))
    return found


def _longest(timeline: Timeline, waits: list[Any]) -> dict[str, Any]:
    wait = max(waits, key=lambda each: each.ps)
    return {"line": line_text(timeline.line(wait.owner, wait.row)), "semaphore": wait.detail, "ns": ns(wait.ps),
            "source_line": None if wait.source is None else line_text(timeline.line(*wait.source))}


def _dma(timeline: Timeline) -> dict[str, Any]:
    device, recorder = timeline.device, timeline.recorder
    spans, queues = [], []
    total = hbm_read = hbm_write = pieces = 0
    for track in timeline.queues:
        spans += list(zip(track.start, track.completed, strict=True))
        moved = sum(track.nbytes)
        total += moved
        pieces += sum(track.pieces)
        for nbytes, hbm, flags in zip(track.nbytes, track.hbm_bytes, track.flags, strict=True):
            written = min(nbytes, hbm) if flags & 1 else 0
            hbm_write += written
            hbm_read += hbm - written
        active = union_ps(zip(track.start, track.completed, strict=True))
        queues.append({"core": track.owner.core, "queue": track.owner.name, "transfer_count": len(track),
                       "bytes": moved, "active_ns": ns(active), "gb_per_s": _rate(moved, active)})
    busy: Counter[tuple[str, int, int]] = Counter()
    for resource, taken in recorder.holds.items():
        busy[resource] = union_ps(zip(taken.start, taken.end, strict=True))     # queues take turns
    active = union_ps(spans)
    engines = {resource: spent for resource, spent in busy.items() if resource[0] == "dma"}
    moving = union_ps((s, e) for r in engines for s, e in zip(recorder.holds[r].start, recorder.holds[r].end,
                                                              strict=True))
    count = sum(len(track) for track in timeline.queues)
    peak = dma_peak(device.target.name, len(device.cores))
    return {
        "transfer_count": count,
        "bytes": total,
        "hbm_read_bytes": hbm_read,
        "hbm_write_bytes": hbm_write,
        "average_transfer_bytes": round(total / count, 1) if count else 0.0,
        "average_descriptor_bytes": round(total / pieces, 1) if pieces else 0.0,
        "active_ns": ns(active),
        "active_percent": percent(active, timeline.end_ps),
        "moving_ns": ns(moving),
        "gb_per_s": _rate(total, moving),
        "peak_gb_per_s": peak,
        "efficiency_percent": percent(_rate(total, moving), peak),
        "engine_busy_percent": percent(sum(engines.values()), timeline.end_ps * 16 * len(device.cores)),
        "queues": queues,
    }


def _rate(nbytes: int, ps: int) -> float:
    """Return GB/s."""
    return round(nbytes * 1000 / ps, 2) if ps else 0.0


def _work(timeline: Timeline) -> dict[str, int]:
    found = {"model": 0, "transpose": 0, "weighted": 0, "matmuls": 0}
    made: dict[bytes, Any] = {}
    for track in timeline.engines:
        if track.owner.name != "PE":
            continue
        for row in range(len(track)):
            word = timeline.causes.word(track.owner, row)
            flops = made[word.raw] if word.raw in made else made.setdefault(word.raw, flops_of(word))
            if flops is not None:
                for key, value in zip(("model", "transpose", "weighted"), flops, strict=True):
                    found[key] += value
                found["matmuls"] += 1
    return found


def _roofline(timeline: Timeline, work: dict[str, int]) -> dict[str, Any]:
    from emulator.arch import arch_of

    device, dma = timeline.device, _dma(timeline)
    arch, cores = arch_of(device.target.name), len(device.cores)
    peak = 2 * arch.partitions.whole**2 * arch.clock_pe.value * cores / 1000     # TFLOP/s of bf16
    bandwidth = hbm_peak(device.target.name) * cores
    moved = dma["hbm_read_bytes"] + dma["hbm_write_bytes"]
    seconds = timeline.end_ps / 1e12
    ridge = peak * 1000 / bandwidth
    intensity = work["model"] / moved if moved else 0.0
    reached = work["model"] / seconds / 1e12 if seconds else 0.0
    roof = min(peak, intensity * bandwidth / 1000)
    busiest = max(timeline.engines, default=None,
                  key=lambda track: sum(free - start for start, free in zip(track.start, track.free, strict=True)))
    return {
        "model_flops": work["model"],
        "transpose_flops": work["transpose"],
        "hardware_flops": work["weighted"],
        "matmul_count": work["matmuls"],
        "peak_tflops": round(peak, 2),
        "achieved_tflops": round(reached, 3),
        "mfu_percent": percent(reached, peak),
        "hfu_percent": percent(work["weighted"] / seconds / 1e12 if seconds else 0, peak),
        "hbm_bytes": moved,
        "hbm_peak_gb_per_s": bandwidth,
        "mbu_percent": percent(moved / seconds / 1e9 if seconds else 0, bandwidth),
        "arithmetic_intensity": round(intensity, 3),
        "ridge": round(ridge, 2),
        "bound_by": "memory" if intensity < ridge else "compute",
        "roof_tflops": round(roof, 3),
        "roof_percent": percent(reached, roof),
        "busiest_engine": None if busiest is None else SHOWN.get(busiest.owner.name, busiest.owner.name),
    }


def _path(timeline: Timeline) -> dict[str, Any]:
    path, end = timeline.path, timeline.end_ps
    by_line: dict[Line | None, Counter[str]] = defaultdict(Counter)
    by_owner: Counter[str] = Counter()
    for link in path.links:
        by_line[timeline.link_line(link)][link.kind] += link.duration_ps
        by_owner[link.owner.text] += link.duration_ps
    ranked = sorted(by_line.items(), key=lambda item: -item[1].total())
    return {
        "total_ns": ns(path.end_ps),
        "kinds": [{"kind": kind, "ns": ns(ps), "percent": percent(ps, end)} for kind, ps in path.by_kind().items()],
        "owners": [{"owner": owner, "ns": ns(ps), "percent": percent(ps, end)} for owner, ps in by_owner.most_common()],
        "lines": [{"line": line_text(line), "ns": ns(kinds.total()), "percent": percent(kinds.total(), end),
                   "kinds": {kind: ns(ps) for kind, ps in kinds.most_common()}} for line, kinds in ranked[:_TOP]],
        "links": [_link(timeline, link) for link in path.links],
    }


def _link(timeline: Timeline, link: Any) -> dict[str, Any]:
    return {"start_ns": ns(link.start_ps), "end_ns": ns(link.end_ps), "kind": link.kind, "owner": link.owner.text,
            "opcode": timeline.opcode(link.owner, link.row), "pc": timeline.recorder.tracks[link.owner].pc[link.row],
            "line": line_text(timeline.link_line(link)), "detail": link.detail}


def lines(timeline: Timeline) -> list[dict[str, Any]]:
    """Return what each source line took: engine time, waits, DMA, and its part of the critical path; longest first."""
    end = timeline.end_ps
    rows: dict[Line | None, Counter[str]] = defaultdict(Counter)
    names: dict[Line | None, Counter[str]] = defaultdict(Counter)
    for track in timeline.engines:
        count = len(track)
        for row in range(count):
            line = timeline.line(track.owner, row)
            taken = min(track.free[row], end) - track.start[row]
            rows[line].update(busy=taken, waited=track.waited[row], words=1)
            names[line][f"{SHOWN.get(track.owner.name)} {timeline.opcode(track.owner, row)}"] += taken
    for track in timeline.queues:
        for row in range(len(track)):
            line = timeline.line(track.owner, row)
            taken = track.completed[row] - track.start[row]
            rows[line].update(dma=taken, bytes=track.nbytes[row], transfers=1)
            names[line]["DMA"] += taken
    for link in timeline.path.links:
        rows[timeline.link_line(link)]["critical"] += link.duration_ps
    ranked = sorted(rows.items(), key=lambda item: (-item[1]["critical"], -item[1]["busy"] - item[1]["dma"]))
    return [{"line": line_text(line), "file": line[0] if line and line[1] else None,
             "critical_ns": ns(each["critical"]), "critical_percent": percent(each["critical"], end),
             "busy_ns": ns(each["busy"]), "wait_ns": ns(each["waited"]), "dma_ns": ns(each["dma"]),
             "dma_bytes": each["bytes"],
             "instruction_count": each["words"], "transfer_count": each["transfers"],
             "what": names[line].most_common(1)[0][0] if names[line] else ""} for line, each in ranked]


def _opcodes(timeline: Timeline) -> list[dict[str, Any]]:
    """Return counts and times by engine and opcode, in the words of the schema's OpcodeSummary."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for track in timeline.engines:
        for row, span in enumerate(_under_way(timeline, track)):
            spans[SHOWN.get(track.owner.name, track.owner.name), timeline.opcode(track.owner, row)].append(span)
    found = [{"engine": engine, "opcode": opcode, "instruction_count": len(each),
              "instruction_time_ns": ns(sum(end - start for start, end in each)), "active_time_ns": ns(union_ps(each)),
              "active_time_percent": percent(union_ps(each), timeline.end_ps)}
             for (engine, opcode), each in spans.items()]
    return sorted(found, key=lambda one: -one["instruction_time_ns"])
