"""The protobuf trace of Perfetto: track descriptors, slices, flows and counters. Source: perfetto's trace protos.

Perfetto counts whole nanoseconds; exact picoseconds are in the annotations `start_ps`, `busy_ps` and `duration_ps`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neurontools.profile.export.scene import Scene, Slice

__all__ = ["encode"]

_PACKET = 1                                                 # Trace
_TIMESTAMP, _SEQUENCE, _EVENT, _FLAGS, _TRACK = 8, 10, 11, 13, 60          # TracePacket
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER, _ORDERING, _RANK = 1, 2, 3, 5, 8, 11, 12     # TrackDescriptor
_PID, _PROCESS_NAME = 1, 6                                  # ProcessDescriptor
_UNIT_NAME = 6                                              # CounterDescriptor
_ANNOTATION, _TYPE, _TRACK_UUID, _CATEGORY, _EVENT_NAME = 4, 9, 11, 22, 23      # TrackEvent
_DOUBLE_VALUE, _FLOW, _FLOW_END = 44, 47, 48
_BEGIN, _END, _COUNT = 1, 2, 4                              # TrackEvent.Type
_BOOL, _INT, _STRING, _LABEL = 2, 4, 6, 10                  # DebugAnnotation
_EXPLICIT = 3                                               # TrackDescriptor.ChildTracksOrdering
_CLEARED = 1                                                # TracePacket.SequenceFlags: incremental state cleared


def varint(value: int) -> bytes:
    """Return an unsigned or, in two's complement of 64 bits, negative number as protobuf writes it."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """Return a varint field."""
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes) -> bytes:
    """Return a field of bytes, a string, or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """Return a string field."""
    return data(field, value.encode())


def fixed(field: int, value: int) -> bytes:
    """Return a fixed64 field."""
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def double(field: int, value: float) -> bytes:
    """Return a double field."""
    import struct

    return varint(field << 3 | 1) + struct.pack("<d", value)


def encode(scene: Scene) -> bytes:
    """Return a trace that Perfetto opens."""
    return b"".join(data(_PACKET, packet) for packet in _packets(scene))


def _packets(scene: Scene) -> Iterator[bytes]:
    groups = {name: pid for pid, name in enumerate(scene.groups, 1)}
    for name, pid in groups.items():
        process = number(_PID, pid) + text(_PROCESS_NAME, f"{scene.target} {name}")
        yield _packet(0, number(_FLAGS, _CLEARED) + data(_TRACK, number(_UUID, pid) + data(_PROCESS, process)
                                                         + number(_ORDERING, _EXPLICIT)))
    uuid = 1000
    for rank, lane in enumerate(scene.lanes):
        uuid += 1
        yield _packet(0, data(_TRACK, number(_UUID, uuid) + text(_NAME, lane.name)
                              + number(_PARENT, groups[lane.group]) + number(_RANK, rank)))
        for each in lane.slices:
            yield from _slice(uuid, each)
    for counter in scene.counters:
        uuid += 1
        yield _packet(0, data(_TRACK, number(_UUID, uuid) + text(_NAME, counter.name)
                              + number(_PARENT, groups[counter.group])
                              + data(_COUNTER, text(_UNIT_NAME, counter.unit))))
        for time, value in zip(counter.times_ps, counter.values, strict=True):
            yield _packet(time, data(_EVENT, number(_TYPE, _COUNT) + number(_TRACK_UUID, uuid)
                                     + double(_DOUBLE_VALUE, value)))


def _slice(uuid: int, each: Slice) -> Iterator[bytes]:
    track = number(_TRACK_UUID, uuid)
    flows = b"".join(fixed(_FLOW, flow) for flow in each.flows_out)
    flows += b"".join(fixed(_FLOW_END, flow) for flow in each.flows_in)
    notes = b"".join(data(_ANNOTATION, _annotation(name, value)) for name, value in each.args.items())
    yield _packet(each.start_ps, data(_EVENT, number(_TYPE, _BEGIN) + track + text(_CATEGORY, each.category)
                                      + text(_EVENT_NAME, each.name) + flows + notes))
    yield _packet(each.end_ps, data(_EVENT, number(_TYPE, _END) + track))


def _annotation(name: str, value: Any) -> bytes:
    label = text(_LABEL, name)
    if isinstance(value, bool):
        return label + number(_BOOL, value)
    return label + (number(_INT, value) if isinstance(value, int) else text(_STRING, str(value)))


def _packet(time_ps: int, content: bytes) -> bytes:
    return number(_TIMESTAMP, round(time_ps / 1000)) + number(_SEQUENCE, 1) + content
