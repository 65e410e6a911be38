"""Exports hold the same times as the summary: read back with Perfetto's own messages, and by its trace processor."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from emulator.timeline.measure import measure
from neurontools.profile import export
from neurontools.profile.export.scene import scene_of
from neurontools.profile.export.tables import tables, write_folder
from neurontools.profile.results import Profile
from neurontools.profile.rows import Timeline
from neurontools.profile.summary import summarise
from tests.profile.trace_processor import query
from tests.timeline.support import case

NAMES = ("tiles", "pair")


@cache
def profiled(name: str) -> tuple[Timeline, Profile]:
    timeline = Timeline(measure(*case(name), memory=True))
    return timeline, summarise(timeline, name)


def busy(found: Profile) -> dict[tuple[int, str], int]:
    """Return the picoseconds that each engine was busy, as the summary has them."""
    return {(one.core, one.engine): round(one.busy_ns * 1000) for one in found.engines}


@pytest.mark.parametrize("name", NAMES)
def test_slices_of_a_track_do_not_overlap(name: str) -> None:
    scene = scene_of(profiled(name)[0])
    for lane in scene.lanes:
        last = 0
        for each in lane.slices:
            assert last <= each.start_ps <= each.end_ps, (lane.name, each)
            last = each.end_ps
    names = {lane.name for lane in scene.lanes}
    assert names >= {"tensor", "vector", "scalar", "critical path", "DMA engine 0", "sync lines"}
    assert any(name.endswith(" waits") for name in names) and any(name.startswith("q") for name in names)


@pytest.mark.parametrize("name", NAMES)
def test_every_flow_has_two_ends(name: str) -> None:
    timeline, _ = profiled(name)
    slices = [each for lane in scene_of(timeline).lanes for each in lane.slices]
    out = sorted(number for each in slices for number in each.flows_out)
    into = sorted(number for each in slices for number in each.flows_in)
    assert out == into == list(range(1, len(out) + 1))
    transfers = sum(len(track) for track in timeline.queues)
    assert len(out) >= transfers + sum(wait.kind == "semaphore" for wait in timeline.waits)


@pytest.mark.parametrize("name", NAMES)
def test_perfetto_is_what_perfetto_reads(name: str, tmp_path: Path) -> None:
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs perfetto")
    timeline, found = profiled(name)
    export.write("perfetto", timeline, tmp_path / "trace")
    trace = messages.Trace.FromString((tmp_path / "trace").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    names = {
        uuid: (tracks[each.parent_uuid].process.process_name, each.name)
        for uuid, each in tracks.items()
        if each.parent_uuid
    }
    exact: dict[tuple[int, str], int] = defaultdict(int)
    lasted: dict[tuple[str, str], int] = defaultdict(int)
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event") or event.type == event.TYPE_COUNTER:
            continue
        group, lane = names[event.track_uuid]
        lasted[group, lane] += packet.timestamp if event.type == event.TYPE_SLICE_END else -packet.timestamp
        for note in event.debug_annotations:
            if note.name == "busy_ps":
                exact[int(group.split("nc")[1][0]), lane] += note.int_value
    assert exact == {key: ps for key, ps in busy(found).items() if ps}
    assert all("(simulated)" in group for group, _ in names.values())
    # The path covers the run; rounding to nanoseconds loses nothing where each link ends where the next begins.
    path = next(ns for (_, lane), ns in lasted.items() if lane == "critical path")
    assert path == round(found.total_time_ns)
    counters = {names[uuid][1] for uuid, each in tracks.items() if each.HasField("counter")}
    assert {"SBUF in use", "pending DMA"} <= counters


def test_the_trace_processor_finds_the_same_times(tmp_path: Path) -> None:
    timeline, found = profiled("tiles")
    export.write("perfetto", timeline, tmp_path / "trace")
    got, path, flows, counters, lost = query(
        tmp_path / "trace",
        "select t.name as lane, sum(extract_arg(s.arg_set_id, 'debug.busy_ps')) as exact, sum(s.dur) as ns, "
        "count(*) as words from slice s join track t on s.track_id = t.id where s.category = 'instruction' "
        "group by t.name",
        "select sum(dur) as ns, min(ts) as first, max(ts + dur) as last from slice where category = 'critical path'",
        "select count(*) as flows from flow",
        "select distinct t.name as name from counter c join track t on c.track_id = t.id order by name",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    engines = {one.engine: one for one in found.engines if one.instruction_count}
    assert {lane: exact for lane, exact, _, _ in got} == {name: ps for (_, name), ps in busy(found).items() if ps}
    for lane, exact, ns, words in got:
        assert words == engines[lane].instruction_count
        assert abs(ns * 1000 - exact) <= 1000 * words  # nanoseconds, rounded at both ends
    assert path == [(round(found.total_time_ns), 0, round(found.total_time_ns))]
    slices = [each for lane in scene_of(timeline).lanes for each in lane.slices]
    assert flows == [(sum(len(each.flows_in) for each in slices),)]
    assert [name for (name,) in counters] == ["PSUM in use", "SBUF in use", "pending DMA"]
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_chrome(name: str) -> None:
    timeline, found = profiled(name)
    trace = json.loads("\n".join(export.chrome_lines(timeline)))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    got: dict[tuple[int, str], int] = defaultdict(int)
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] == "instruction":
            got[event["pid"], names[event["pid"], event["tid"]]] += round(event["dur"] * 1e6)
    assert got == {key: ps for key, ps in busy(found).items() if ps}
    assert trace["otherData"]["is_simulation"] is True


def test_tables_have_the_names_of_the_schema(root: Path) -> None:
    timeline, found = profiled("tiles")
    made = tables(timeline, found)
    assert made["Metadata"][0]["is_simulation"] is True
    assert len(made["Instruction"]) == sum(len(track) for track in timeline.engines)
    assert len(made["DmaPacketAggregated"]) == found.dma.transfer_count
    # Columns that tools/neuron-explorer/profile-schema-reference.rst of the SDK's documentation names, schema 7.4.0.
    schema = json.loads((root / "tests" / "profile" / "schema_names.json").read_text())
    for table, rows in made.items():
        assert all(set(row) <= set(schema[table]) for row in rows), table


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    timeline, found = profiled("tiles")
    names = write_folder("parquet", timeline, found, tmp_path)
    assert "Instruction.parquet" in names
    table = parquet.read_table(tmp_path / "Instruction.parquet").to_pylist()
    assert sum(row["raw_flops"] for row in table) == found.roofline.model_flops
