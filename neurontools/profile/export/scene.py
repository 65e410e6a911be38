"""What a trace viewer shows: named tracks with slices, arrows between slices, counters over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from formats.neuron_core import QUADRANT
from neurontools.profile.rows import SHOWN
from neurontools.profile.summary import line_text

if TYPE_CHECKING:
    from emulator.timeline import EngineTrack, Owner, QueueTrack
    from neurontools.profile.rows import Timeline

    Row = tuple[Owner, int]

__all__ = ["Counter", "Lane", "Scene", "Slice", "scene_of"]


@dataclass
class Slice:
    """One bar; times in picoseconds. `flows_out` and `flows_in` are numbers of arrows that begin and end here."""

    start_ps: int
    end_ps: int
    name: str
    category: str
    args: dict[str, Any] = field(default_factory=dict)
    flows_out: list[int] = field(default_factory=list)
    flows_in: list[int] = field(default_factory=list)


@dataclass
class Lane:
    """One track of a group; its slices follow each other without overlap."""

    group: str
    name: str
    slices: list[Slice] = field(default_factory=list)


@dataclass
class Counter:
    """A value over time: from each time on."""

    group: str
    name: str
    unit: str
    times_ps: list[int]
    values: list[float]


@dataclass
class Scene:
    """Everything of one profile; groups are cores, in order."""

    name: str
    target: str
    lanes: list[Lane]
    counters: list[Counter]
    simulated: bool = True

    @property
    def groups(self) -> list[str]:
        """Return the names of the groups, in order of appearance."""
        return list(dict.fromkeys([*(lane.group for lane in self.lanes), *(each.group for each in self.counters)]))


def scene_of(timeline: Timeline, name: str = "profile") -> Scene:
    """Return the tracks of a run: engines, their waits and lines, queues, DMA engines, critical path, memory."""
    words: dict[Row, Slice] = {}
    lanes: list[Lane] = []
    for track in timeline.engines:
        lanes += _engine(timeline, track, words)
    for queue in timeline.queues:
        lanes += _queue(timeline, queue, words)
    lanes += _resources(timeline)
    lanes.append(_critical(timeline))
    _arrows(timeline, words)
    return Scene(
        name,
        timeline.device.target.name,
        [lane for lane in lanes if lane.slices],
        [*_memory(timeline), *_pending(timeline)],
    )


def _group(core: int) -> str:
    return f"nc{core} (simulated)"


def _engine(timeline: Timeline, track: EngineTrack, words: dict[Row, Slice]) -> tuple[Lane, ...]:
    owner, end = track.owner, timeline.end_ps
    name = SHOWN.get(owner.name, owner.name)
    lane = Lane(_group(owner.core), name)
    by_line = Lane(lane.group, f"{name} lines")
    last: object = None
    for row in range(len(track)):
        word, line = timeline.causes.word(owner, row), timeline.line(owner, row)
        start, free = track.start[row], min(track.free[row], end)
        made = Slice(
            start,
            free,
            word.name,
            "instruction",
            {
                "operands": word.operands,
                "pc": track.pc[row],
                "line": line_text(line),
                "start_ps": start,
                "busy_ps": free - start,
                "completed_ps": track.completed[row],
                "waited_ps": track.waited[row],
            },
        )
        words[owner, row] = made
        lane.slices.append(made)
        if line is None:
            last = None
        elif line == last:
            by_line.slices[-1].end_ps = free
        else:
            by_line.slices.append(Slice(start, free, line_text(line), "line", {"file": line[0], "line": line[1]}))
            last = line
    waits = Lane(lane.group, f"{name} waits")
    for wait in timeline.waits:
        if wait.owner == owner:
            start = track.start[wait.row]
            source = "" if wait.source is None else wait.source[0].text
            waits.slices.append(
                Slice(
                    start - wait.ps,
                    start,
                    f"{wait.detail or wait.kind} {source}".strip(),
                    "wait",
                    {"pc": track.pc[wait.row], "line": line_text(timeline.line(owner, wait.row))},
                )
            )
    return lane, waits, by_line


def _queue(timeline: Timeline, track: QueueTrack, words: dict[Row, Slice]) -> list[Lane]:
    """Return lanes of one name: transfers of a queue overlap, those of a lane do not."""
    owner = track.owner
    lanes: list[Lane] = []
    for row in sorted(range(len(track)), key=lambda row: track.start[row]):
        start, end = track.start[row], track.completed[row]
        made = Slice(
            start,
            end,
            f"{'write' if track.flags[row] & 1 else 'read'} {track.nbytes[row]:,} bytes",
            "dma",
            {
                "bytes": track.nbytes[row],
                "descriptors": track.pieces[row],
                "pc": track.pc[row],
                "line": line_text(timeline.line(owner, row)),
                "triggered_ps": track.triggered[row],
                "start_ps": start,
                "duration_ps": end - start,
            },
        )
        words[owner, row] = made
        lane = next((lane for lane in lanes if lane.slices[-1].end_ps <= start), None)
        if lane is None:
            lane = Lane(_group(owner.core), owner.name)
            lanes.append(lane)
        lane.slices.append(made)
    return lanes


def _resources(timeline: Timeline) -> Iterator[Lane]:
    """Return what occupied the DMA engines and the device memory."""
    for resource, taken in sorted(timeline.recorder.holds.items()):
        kind, first, second = resource
        group, name = (_group(first), f"DMA engine {second}") if kind == "dma" else (_group(0), f"{kind} {first}")
        lane = Lane(group, name)
        free = 0
        for index in range(len(taken)):
            start, end = max(taken.start[index], free), taken.end[index]
            if end <= start:
                continue
            source = timeline.causes.transfer(taken.transfer[index])
            what = "transfer" if source is None else source[0].name
            lane.slices.append(Slice(start, end, what, "dma engine", {"transfer": taken.transfer[index]}))
            free = end
        yield lane


def _critical(timeline: Timeline) -> Lane:
    lane = Lane(_group(0), "critical path")
    for link in timeline.path.links:
        line = line_text(timeline.link_line(link))
        lane.slices.append(
            Slice(
                link.start_ps,
                link.end_ps,
                f"{link.kind} {link.owner.text}",
                "critical path",
                {
                    "opcode": timeline.opcode(link.owner, link.row),
                    "line": line,
                    "detail": link.detail,
                    "duration_ps": link.duration_ps,
                },
            )
        )
    return lane


def _arrows(timeline: Timeline, words: dict[Row, Slice]) -> None:
    """Draw what signalled to what waited, and what triggered to what moved."""
    numbers = count(1)
    for wait in timeline.waits:
        target, source = words.get((wait.owner, wait.row)), wait.source
        if target is not None and source in words:
            number = next(numbers)
            words[source].flows_out.append(number)
            target.flows_in.append(number)
    for track in timeline.queues:
        for row in range(len(track)):
            source = timeline.causes.trigger(track.owner, row)
            if source in words:
                number = next(numbers)
                words[source].flows_out.append(number)
                words[track.owner, row].flows_in.append(number)


def _memory(timeline: Timeline) -> Iterator[Counter]:
    from emulator.timeline.memory_use import BLOCK  # deferred: start-up

    for use in timeline.measured.usage:
        total = use.blocks.sum(axis=0) * BLOCK * QUADRANT
        yield Counter(_group(use.core), f"{use.space} in use", "bytes", use.times_ps.tolist(), total.tolist())


def _pending(timeline: Timeline) -> Iterator[Counter]:
    """Return how many transfers are on the way, by core."""
    changes: dict[int, dict[int, int]] = {}
    for track in timeline.queues:
        mine = changes.setdefault(track.owner.core, {})
        for column, sign in ((track.triggered, 1), (track.completed, -1)):
            for time in column:
                mine[time] = mine.get(time, 0) + sign
    for core, mine in sorted(changes.items()):
        value, values = 0, []
        for time in sorted(mine):
            value += mine[time]
            values.append(float(value))
        yield Counter(_group(core), "pending DMA", "transfers", sorted(mine), values)
