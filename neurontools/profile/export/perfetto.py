"""The protobuf trace of Perfetto: track descriptors, slices, flows and counters. Source: perfetto's trace protos.

Perfetto counts whole nanoseconds; exact picoseconds are in the annotations `start_ps`, `busy_ps` and `duration_ps`.
"""

from __future__ import annotations

from typing import Any

from formats.messages import message_types
from neurontools.profile.export.scene import Scene

__all__ = ["encode"]

_TRACE = """
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  uint64 timestamp = 8; uint32 trusted_packet_sequence_id = 10; uint32 sequence_flags = 13;
  TrackEvent track_event = 11; TrackDescriptor track_descriptor = 60;
}
message TrackDescriptor {
  uint64 uuid = 1; string name = 2; ProcessDescriptor process = 3; uint64 parent_uuid = 5;
  CounterDescriptor counter = 8; int32 child_ordering = 11; int32 sibling_order_rank = 12;
}
message ProcessDescriptor { int32 pid = 1; string process_name = 6; }
message CounterDescriptor { string unit_name = 6; }
message TrackEvent {
  repeated DebugAnnotation debug_annotations = 4; int32 type = 9; uint64 track_uuid = 11;
  repeated string categories = 22; string name = 23; double double_counter_value = 44;
  repeated fixed64 flow_ids = 47; repeated fixed64 terminating_flow_ids = 48;
}
message DebugAnnotation { bool bool_value = 2; int64 int_value = 4; string string_value = 6; string name = 10; }
"""
_BEGIN, _END, _COUNT = 1, 2, 4  # TrackEvent.Type
_EXPLICIT = 3  # TrackDescriptor.ChildTracksOrdering
_CLEARED = 1  # TracePacket.SequenceFlags: incremental state cleared


def encode(scene: Scene) -> bytes:
    """Return a trace that Perfetto opens."""
    trace = message_types("neurontools.perfetto", _TRACE)["Trace"]()

    def packet(time_ps: int, **content: Any) -> None:
        trace.packet.add(timestamp=round(time_ps / 1000), trusted_packet_sequence_id=1, **content)

    groups = {name: pid for pid, name in enumerate(scene.groups, 1)}
    for name, pid in groups.items():
        process = {"pid": pid, "process_name": f"{scene.target} {name}"}
        packet(
            0, sequence_flags=_CLEARED, track_descriptor={"uuid": pid, "process": process, "child_ordering": _EXPLICIT}
        )
    uuid = 1000
    for rank, lane in enumerate(scene.lanes):
        uuid += 1
        packet(
            0,
            track_descriptor={
                "uuid": uuid,
                "name": lane.name,
                "parent_uuid": groups[lane.group],
                "sibling_order_rank": rank,
            },
        )
        for each in lane.slices:
            notes = [_annotation(name, value) for name, value in each.args.items()]
            packet(
                each.start_ps,
                track_event={
                    "type": _BEGIN,
                    "track_uuid": uuid,
                    "categories": [each.category],
                    "name": each.name,
                    "flow_ids": each.flows_out,
                    "terminating_flow_ids": each.flows_in,
                    "debug_annotations": notes,
                },
            )
            packet(each.end_ps, track_event={"type": _END, "track_uuid": uuid})
    for counter in scene.counters:
        uuid += 1
        packet(
            0,
            track_descriptor={
                "uuid": uuid,
                "name": counter.name,
                "parent_uuid": groups[counter.group],
                "counter": {"unit_name": counter.unit},
            },
        )
        for time, value in zip(counter.times_ps, counter.values, strict=True):
            packet(time, track_event={"type": _COUNT, "track_uuid": uuid, "double_counter_value": value})
    return bytes(trace.SerializeToString())


def _annotation(name: str, value: Any) -> dict[str, Any]:
    # An integer that a damaged capture makes up may have more than 64 bits.
    fits = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    kind = "bool" if isinstance(value, bool) else "int" if fits else "string"
    return {"name": name, f"{kind}_value": str(value) if kind == "string" else value}
