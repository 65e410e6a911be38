"""A profile of several ranks for other viewers: the tracks of every rank and stream, and those of the links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from neurontools.profile.export import chrome, tables
from neurontools.profile.export.scene import Counter, Lane, Scene, Slice, scene_of

if TYPE_CHECKING:
    from neurontools.profile.ranked.results import RanksProfile
    from neurontools.profile.ranked.summary import RankTimelines

__all__ = ["chrome_lines", "csv_lines", "ranks_scene", "write", "write_folder"]

_LINKS, _PATH = "links (simulated)", "all ranks (simulated)"


def ranks_scene(timelines: RankTimelines, name: str) -> Scene:
    """Return the tracks of a run: of each rank engines, queues, streams; of each link what went over it."""
    lanes: list[Lane] = [_critical(timelines)]
    counters: list[Counter] = []
    target = ""
    arrows = 0
    for rank, timeline in timelines.ranks.items():
        scene = scene_of(timeline, name)
        target = scene.target
        top = 0
        for lane in scene.lanes:
            lane.group = f"rank {rank} {lane.group}"
            for each in lane.slices:  # every scene counts its arrows from 1
                each.flows_out = [number + arrows for number in each.flows_out]
                each.flows_in = [number + arrows for number in each.flows_in]
                top = max([top, *each.flows_out, *each.flows_in])
        arrows = max(arrows, top)
        for counter in scene.counters:
            counter.group = f"rank {rank} {counter.group}"
        lanes += [*scene.lanes, *_streams(timelines, rank)]
        counters += scene.counters
    lanes += _links(timelines)
    return Scene(name, target, [lane for lane in lanes if lane.slices], counters)


def _critical(timelines: RankTimelines) -> Lane:
    lane = Lane(_PATH, "critical path over all ranks")
    for rank, link in timelines.path:
        lane.slices.append(Slice(
            link.start_ps, link.end_ps, f"rank {rank} {link.kind} {link.owner.text}", "critical path",
            {"rank": rank, "detail": link.detail, "duration_ps": link.duration_ps},
        ))  # fmt: skip
    return lane


def _streams(timelines: RankTimelines, rank: int) -> Iterator[Lane]:
    """Return the streams of collectives of a rank: each call as a bar, the time until the last partner came below."""
    result = timelines.result
    lanes: dict[tuple[str, str], Lane] = {}
    for number, met in enumerate(result.collectives):
        if rank not in met.ended_ps:
            continue
        begun, ended = met.begun_ps[rank], met.ended_ps[rank]
        overlap = timelines.overlaps[number, rank]
        group, track = f"rank {rank} nc{met.core} (simulated)", f"stream {met.stream}"
        name = track
        free = lanes.get((group, name))
        if free is not None and free.slices[-1].end_ps > begun:  # channels of one stream go on side by side
            name = f"{track}, {len(met.group)} ranks"
        lane = lanes.setdefault((group, name), Lane(group, name))
        lane.slices.append(Slice(begun, ended, met.name, "collective", {
            "algorithm": met.algorithm, "ranks": ", ".join(map(str, met.group)), "line": met.source,
            "hidden_ps": overlap.hidden_ps, "exposed_ps": overlap.exposed_ps, "duration_ps": ended - begun,
        }))  # fmt: skip
        last = max(met.begun_ps.values())
        if last > begun:
            latest = min(each for each, at in met.begun_ps.items() if at == last)
            waits = lanes.setdefault((group, f"{name} waits"), Lane(group, f"{name} waits"))
            waits.slices.append(Slice(begun, min(last, ended), f"rank {latest}", "wait", {"collective": met.name}))
    yield from lanes.values()


def _links(timelines: RankTimelines) -> Iterator[Lane]:
    """Return what went from rank to rank: as many lanes of one name as transfers overlap."""
    lanes: dict[tuple[int, int], list[Lane]] = {}
    for move in sorted(timelines.result.moves, key=lambda move: move.begin_ps):
        for target in move.targets:
            if target == move.rank:
                continue
            mine = lanes.setdefault((move.rank, target), [])
            lane = next((lane for lane in mine if lane.slices[-1].end_ps <= move.begin_ps), None)
            if lane is None:
                lane = Lane(_LINKS, f"rank {move.rank} > rank {target}")
                mine.append(lane)
            lane.slices.append(Slice(move.begin_ps, move.end_ps, f"{move.name} {move.phase}", "link",
                                     {"bytes": move.nbytes, "stream": move.stream}))  # fmt: skip
    for _, mine in sorted(lanes.items()):
        yield from mine


def chrome_lines(timelines: RankTimelines, name: str) -> Iterator[str]:
    """Return the lines of a JSON trace."""
    return chrome.lines(ranks_scene(timelines, name))


def csv_lines(timelines: RankTimelines) -> Iterator[str]:
    """Return the Instruction table of the public schema, with the rank in front."""
    return tables.csv_lines([{"rank": rank, **row} for rank, timeline in timelines.ranks.items()
                             for row in tables.instructions(timeline)])  # fmt: skip


def write(form: str, timelines: RankTimelines, name: str, path: Path) -> None:
    """Write a profile in a format of one file: perfetto, chrome or csv."""
    if form == "perfetto":
        from neurontools.profile.export import perfetto  # deferred: start-up

        path.write_bytes(perfetto.encode(ranks_scene(timelines, name)))
        return
    lines = chrome_lines(timelines, name) if form == "chrome" else csv_lines(timelines)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(line + "\n" for line in lines)


def write_folder(form: str, timelines: RankTimelines, result: RanksProfile, folder: Path) -> list[str]:
    """Write the tables of each rank in a folder of its own, and those of all; return the names of what was written."""
    from neurontools.profile.summary import summarise  # deferred: start-up

    made = []
    for rank, timeline in timelines.ranks.items():
        (folder / f"rank-{rank}").mkdir()
        tables.write_folder(form, timeline, summarise(timeline, result.name), folder / f"rank-{rank}")
        made.append(f"rank-{rank}")
    for name, rows in (("Ranks", result.ranks), ("Collectives", result.collectives), ("Links", result.links)):
        found = [_flat(row._asdict()) for row in rows]
        if not found:
            continue
        heads = dict.fromkeys(head for row in found for head in row)
        found = [{head: row.get(head, 0.0) for head in heads} for row in found]  # of an absent rank no engine was busy
        path = folder / f"{name}.{form}"
        if form == "csv":
            path.write_text("\n".join(tables.csv_lines(found)) + "\n", encoding="utf-8")
        else:
            tables.write_parquet(found, path)
        made.append(path.name)
    return made


def _flat(row: dict[str, object]) -> dict[str, object]:
    """Return a row whose values are numbers and texts: engines become columns, groups lists of numbers as text."""
    found: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({f"{engine}_{name}": part for engine, part in value.items()})
        else:
            found[name] = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return found
