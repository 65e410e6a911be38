"""The summary of a profile: engines, DMA, memory, roofline, lines, and the critical path."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from emulator.arch import arch_of
from emulator.cost.flops import Flops, flops_of
from emulator.cost.instructions import shown_ps
from formats.named_tuple import NamedTuple
from neurontools.profile.peaks import dma_peak, hbm_peak
from neurontools.profile.public_schema import metadata, summary
from neurontools.profile.results import (
    CriticalPath,
    DmaSummary,
    EngineRow,
    LineRow,
    LinkRow,
    LongestWait,
    MemoryRow,
    OpcodeRow,
    OwnerShare,
    PathLine,
    Profile,
    QueueRow,
    Roofline,
    Share,
    WaitRow,
)
from neurontools.profile.rows import SHOWN, Line, Timeline, Waited

if TYPE_CHECKING:
    from emulator.timeline import Link
    from emulator.timeline.track import EngineTrack

__all__ = ["line_text", "lines", "lines_of", "ns", "percent", "summarise", "union_ps"]

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


def summarise(timeline: Timeline, name: str) -> Profile:
    """Return the profile of a run, without what takes further runs."""
    device, total = timeline.device, ns(timeline.end_ps)
    dma, engines, opcodes = _dma(timeline), [_engine(timeline, track) for track in timeline.engines], _opcodes(timeline)
    roofline = _roofline(timeline, _work(timeline), dma)
    memory = tuple(
        MemoryRow(use.core, use.space, use.peak_bytes, round(use.peak_percent, 2))
        for use in timeline.measured.usage
        if use.peak_bytes
    )
    return Profile(
        name,
        True,
        device.target.name,
        len(device.cores),
        device.outcome,
        total,
        tuple(engines),
        dma,
        roofline,
        memory,
        _path(timeline),
        lines(timeline),
        opcodes,
        metadata(timeline),
        summary(total, engines, dma, roofline, opcodes),
    )


def _engine(timeline: Timeline, track: EngineTrack) -> EngineRow:
    end, count = timeline.end_ps, len(track)
    busy = sum(min(free, end) - start for start, free in zip(track.start[:count], track.free[:count], strict=True))
    waits = [wait for wait in timeline.waits if wait.owner == track.owner]
    waited = sum(track.waited[:count])
    groups: dict[tuple[str, str], list[Waited]] = defaultdict(list)
    for wait in waits:
        source = "" if wait.source is None else wait.source[0].text
        if wait.source is not None and wait.source[0].core == track.owner.core:
            source = wait.source[0].name
        groups[{"order": "in flight"}.get(wait.kind, wait.kind), source].append(wait)
    active = union_ps(_under_way(timeline, track))
    rows = [
        WaitRow(
            kind,
            source,
            len(group),
            ns(sum(w.ps for w in group)),
            percent(sum(w.ps for w in group), end),
            _longest(timeline, group),
        )
        for (kind, source), group in groups.items()
    ]
    idle = end - busy - waited
    return EngineRow(
        track.owner.core,
        SHOWN.get(track.owner.name, track.owner.name),
        track.owner.name,
        count,
        ns(busy),
        ns(waited),
        ns(idle),
        ns(active),
        percent(busy, end),
        percent(waited, end),
        percent(idle, end),
        percent(active, end),
        tuple(sorted(rows, key=lambda row: -row.ns)),
    )


def _under_way(timeline: Timeline, track: EngineTrack) -> Iterable[tuple[int, int]]:
    """Return when each word was under way, as profiles show it.

    Of a trigger on GpSimd they show the word, not the making of descriptors that comes before it.
    """
    if track.owner.name != "Pool":
        return zip(track.start, track.completed, strict=False)
    found = []
    for row, (start, end) in enumerate(zip(track.start, track.completed, strict=False)):
        shown = shown_ps(timeline.causes.word(track.owner, row), track.owner.name, timeline.device.arch)
        took = end - start if shown is None else track.shown_end(row, shown) - start
        found.append((max(start, end - took), end))
    return found


def _longest(timeline: Timeline, waits: list[Waited]) -> LongestWait:
    wait = max(waits, key=lambda each: each.ps)
    return LongestWait(
        line_text(timeline.line(wait.owner, wait.row)),
        wait.detail,
        ns(wait.ps),
        None if wait.source is None else line_text(timeline.line(*wait.source)),
    )


def _dma(timeline: Timeline) -> DmaSummary:
    device, recorder = timeline.device, timeline.recorder
    spans, queues = [], []
    total = hbm_read = hbm_write = pieces = 0
    moving_tracks = [track for track in timeline.queues if not track.collective]
    for track in moving_tracks:
        spans += list(zip(track.start, track.completed, strict=True))
        moved = sum(track.nbytes)
        total += moved
        pieces += sum(track.pieces)
        for nbytes, hbm, flags in zip(track.nbytes, track.hbm_bytes, track.flags, strict=True):
            written = min(nbytes, hbm) if flags & 1 else 0
            hbm_write += written
            hbm_read += hbm - written
        active = union_ps(zip(track.start, track.completed, strict=True))
        queues.append(QueueRow(track.owner.core, track.owner.name, len(track), moved, ns(active), _rate(moved, active)))
    busy: Counter[tuple[str, int, int]] = Counter()
    for resource, taken in recorder.holds.items():
        busy[resource] = union_ps(zip(taken.start, taken.end, strict=True))  # queues take turns
    active = union_ps(spans)
    engines = {resource: spent for resource, spent in busy.items() if resource[0] == "dma"}
    moving = union_ps(
        (s, e) for r in engines for s, e in zip(recorder.holds[r].start, recorder.holds[r].end, strict=True)
    )
    count = sum(len(track) for track in moving_tracks)
    peak = dma_peak(device.target.name, len(device.cores))
    return DmaSummary(
        count,
        total,
        hbm_read,
        hbm_write,
        round(total / count, 1) if count else 0.0,
        round(total / pieces, 1) if pieces else 0.0,
        ns(active),
        percent(active, timeline.end_ps),
        ns(moving),
        _rate(total, moving),
        peak,
        percent(_rate(total, moving), peak),
        percent(sum(engines.values()), timeline.end_ps * 16 * len(device.cores)),
        tuple(queues),
    )


def _rate(nbytes: int, ps: int) -> float:
    """Return GB/s."""
    return round(nbytes * 1000 / ps, 2) if ps else 0.0


class _Work(NamedTuple):
    """The floating-point operations of a run, and how many matmuls made them."""

    flops: Flops
    matmuls: int


def _work(timeline: Timeline) -> _Work:
    flops, matmuls = Flops(0, 0, 0), 0
    made: dict[bytes, Flops | None] = {}
    for track in timeline.engines:
        if track.owner.name != "PE":
            continue
        for row in range(len(track)):
            word = timeline.causes.word(track.owner, row)
            one = made[word.raw] if word.raw in made else made.setdefault(word.raw, flops_of(word))
            if one is not None:
                flops = Flops(*map(sum, zip(flops, one, strict=True)))
                matmuls += 1
    return _Work(flops, matmuls)


def _roofline(timeline: Timeline, work: _Work, dma: DmaSummary) -> Roofline:
    device, flops = timeline.device, work.flops
    arch, cores = arch_of(device.target.name), len(device.cores)
    peak = 2 * arch.partitions.whole**2 * arch.clock_pe.value * cores / 1000  # TFLOP/s of bf16
    bandwidth = hbm_peak(device.target.name) * cores
    moved = dma.hbm_read_bytes + dma.hbm_write_bytes
    seconds = timeline.end_ps / 1e12
    ridge = peak * 1000 / bandwidth
    intensity = flops.model / moved if moved else 0.0
    reached = flops.model / seconds / 1e12 if seconds else 0.0
    roof = min(peak, intensity * bandwidth / 1000)
    busiest = max(
        timeline.engines,
        default=None,
        key=lambda track: sum(free - start for start, free in zip(track.start, track.free, strict=True)),
    )
    return Roofline(
        flops.model,
        flops.transpose,
        flops.weighted,
        work.matmuls,
        round(peak, 2),
        round(reached, 3),
        percent(reached, peak),
        percent(flops.weighted / seconds / 1e12 if seconds else 0, peak),
        moved,
        bandwidth,
        percent(moved / seconds / 1e9 if seconds else 0, bandwidth),
        round(intensity, 3),
        round(ridge, 2),
        "memory" if intensity < ridge else "compute",
        round(roof, 3),
        percent(reached, roof),
        None if busiest is None else SHOWN.get(busiest.owner.name, busiest.owner.name),
    )


def _path(timeline: Timeline) -> CriticalPath:
    path, end = timeline.path, timeline.end_ps
    by_line: dict[Line | None, Counter[str]] = defaultdict(Counter)
    by_owner: Counter[str] = Counter()
    for link in path.links:
        by_line[timeline.link_line(link)][link.kind] += link.duration_ps
        by_owner[link.owner.text] += link.duration_ps
    ranked = sorted(by_line.items(), key=lambda item: -item[1].total())
    return CriticalPath(
        ns(path.end_ps),
        tuple(Share(kind, ns(ps), percent(ps, end)) for kind, ps in path.by_kind().items()),
        tuple(OwnerShare(owner, ns(ps), percent(ps, end)) for owner, ps in by_owner.most_common()),
        tuple(
            PathLine(
                line_text(line),
                ns(kinds.total()),
                percent(kinds.total(), end),
                {kind: ns(ps) for kind, ps in kinds.most_common()},
            )
            for line, kinds in ranked[:_TOP]
        ),
        tuple(_link(timeline, link) for link in path.links),
    )


def _link(timeline: Timeline, link: Link) -> LinkRow:
    return LinkRow(
        ns(link.start_ps),
        ns(link.end_ps),
        link.kind,
        link.owner.text,
        timeline.opcode(link.owner, link.row),
        timeline.recorder.tracks[link.owner].pc[link.row],
        line_text(timeline.link_line(link)),
        link.detail,
    )


def lines(timeline: Timeline) -> tuple[LineRow, ...]:
    """Return what each source line took: engine time, waits, DMA, and its part of the critical path; longest first."""
    return lines_of([(timeline, timeline.path.links)], timeline.end_ps)


def lines_of(runs: Iterable[tuple[Timeline, Iterable[Link]]], end: int) -> tuple[LineRow, ...]:
    """Return `lines` of several runs together, each with its part of a critical path that ends at a time."""
    rows: dict[Line | None, Counter[str]] = defaultdict(Counter)
    names: dict[Line | None, Counter[str]] = defaultdict(Counter)
    for timeline, links in runs:
        for track in timeline.engines:
            count = len(track)
            for row in range(count):
                line = timeline.line(track.owner, row)
                taken = min(track.free[row], timeline.end_ps) - track.start[row]
                rows[line].update(busy=taken, waited=track.waited[row], words=1)
                names[line][f"{SHOWN.get(track.owner.name)} {timeline.opcode(track.owner, row)}"] += taken
        for queue in timeline.queues:
            for row in range(len(queue)):
                line = timeline.line(queue.owner, row)
                taken = queue.completed[row] - queue.start[row]
                rows[line].update(dma=taken, bytes=queue.nbytes[row], transfers=1)
                names[line][timeline.opcode(queue.owner, row)] += taken
        for link in links:
            rows[timeline.link_line(link)]["critical"] += link.duration_ps
    ranked = sorted(rows.items(), key=lambda item: (-item[1]["critical"], -item[1]["busy"] - item[1]["dma"]))
    return tuple(
        LineRow(
            line_text(line),
            line[0] if line and line[1] else None,
            ns(each["critical"]),
            percent(each["critical"], end),
            ns(each["busy"]),
            ns(each["waited"]),
            ns(each["dma"]),
            each["bytes"],
            each["words"],
            each["transfers"],
            names[line].most_common(1)[0][0] if names[line] else "",
        )
        for line, each in ranked
    )


def _opcodes(timeline: Timeline) -> tuple[OpcodeRow, ...]:
    """Return counts and times by engine and opcode, in the words of the schema's OpcodeSummary."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for track in timeline.engines:
        for row, span in enumerate(_under_way(timeline, track)):
            spans[SHOWN.get(track.owner.name, track.owner.name), timeline.opcode(track.owner, row)].append(span)
    found = [
        OpcodeRow(
            engine,
            opcode,
            len(each),
            ns(sum(end - start for start, end in each)),
            ns(union_ps(each)),
            percent(union_ps(each), timeline.end_ps),
        )
        for (engine, opcode), each in spans.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.instruction_time_ns))
