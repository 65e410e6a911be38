"""A writer of captures, for fixtures and tests: what formats.md 6.1 says, and no more; version 6, or 4 and 5.

Real captures are the runtime's; these hold what the emulator did, on a clock of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.device import Device
from emulator.timeline import Recorder
from formats import isa
from formats.engines import ENGINES
from formats.neff import Neff
from formats.neff.wire import write_bytes, write_varint

ORIGIN = 5_000_000_000
BASE, SPACING = 0x8005C0000000, 0x10000
SLOWER = 1.25  # device over emulated time
SECTIONS = {"trace": 0, "notify": 1, "trace_dma": 4, "throttle": 5}
PROLOGUE, EPILOGUE = (isa.Nop(), isa.Nop(), isa.SetOrderingMode()), (isa.EventSemaphore(), isa.Nop())


@dataclass
class CoreSpec:
    """One core: its streams as loaded, edits of each (position, words, deleted), rings, memory, records by section."""

    name: str
    core: int
    streams: dict[str, bytes] = field(default_factory=dict)
    edits: dict[str, list[tuple[int, int, bool]]] = field(default_factory=dict)
    rings: list[tuple[int, int, str]] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    records: dict[str, bytes] = field(default_factory=dict)
    clocks: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)  # (offset, step, period) by field


def address_of(core: int, engine: str) -> int:
    return BASE + (core * len(ENGINES) + ENGINES.index(engine)) * SPACING


def begin(core: int, engine: str, pc: int, time_ps: int, waited: int = 0) -> bytes:
    place = (address_of(core, engine) >> 6) + pc & 0x1FFFFF
    return record(place.to_bytes(3, "little") + bytes((0x80 | ENGINES.index(engine) + 1 << 2, 0, 0))
                  + waited.to_bytes(2, "little"), time_ps)  # fmt: skip


def end(core: int, engine: str, pc: int, time_ps: int) -> bytes:
    place = (address_of(core, engine) >> 6) + pc & 0x1FFFFF
    return record(place.to_bytes(3, "little") + bytes((0x81 | ENGINES.index(engine) + 1 << 2,)) + b"\xff" * 4, time_ps)


def signal(number: int, value: int, source: int, time_ps: int, *, kind: int = 1, operation: int = 0xF3) -> bytes:
    return record(bytes((number, kind, operation, 0x83 | source << 2)) + value.to_bytes(4, "little"), time_ps)


def packet(engine: int, ring: int, nbytes: int, checksum: int, start_ps: int, end_ps: int) -> bytes:
    head = bytes((0x80 | engine,))
    return (record(b"\0\0\0" + head + bytes((ring << 4 | 1, 0, 0, 0)), start_ps)
            + record(nbytes.to_bytes(2, "little") + b"\0" + head + bytes((ring << 4 | 5, 0))
                     + checksum.to_bytes(2, "little"), end_ps)
            + record(b"\0\0\0" + head + bytes((ring << 4 | 6, 0, 0, 0)), end_ps + 1000))  # fmt: skip


def record(facts: bytes, time_ps: int) -> bytes:
    assert len(facts) == 8
    return facts + time_ps.to_bytes(8, "little")


def _message(number: int, *parts: bytes) -> bytes:
    return write_bytes(number, b"".join(parts))


def _number(field_: int, value: int) -> bytes:
    return write_varint(field_, value) if value else b""


def capture(cores: Iterable[CoreSpec], name: str = "test.neff", uuid: bytes = bytes(range(16)), *,
            instance: str = "trn2.48xlarge", version: int = 6) -> bytes:  # fmt: skip
    """Return a capture of some cores."""
    area, graphs, sections = bytearray(), [], []
    late = version == 6  # earlier ones keep words and the table of sections with each core
    for core in cores:
        engines, maps, own = [], [], []
        for engine, stream in core.streams.items():
            index = ENGINES.index(engine)
            place = (_number(7, len(area)), _number(8, len(stream))) if late else (write_bytes(3, stream),)
            engines.append(_message(4, _number(1, index), write_varint(2, address_of(core.core, engine)), *place))
            area += stream if late else b""
            edits = [_message(2, _number(1, at), _number(2, words), _number(3, 2 if deleted else 0))
                     for at, words, deleted in core.edits.get(engine, ())]  # fmt: skip
            maps.append(_message(5, _number(1, index), *edits))
        rings = [_message(7, _number(1, engine), _number(2, ring), write_bytes(4, queue))
                 for engine, ring, queue in core.rings]  # fmt: skip
        # Version 4 numbers categories, here in the order that they are given.
        memory = [_message(11, *((write_varint(1, number),) if version == 4 else ()), _number(2, size),
                           *(() if version == 4 else (write_bytes(3, category),)))
                  for number, (category, size) in enumerate(core.memory.items(), 1)]  # fmt: skip
        clocks = [_message(number, _number(1, offset), _number(2, step), _number(3, period))
                  for number, each in core.clocks.items() for offset, step, period in each]  # fmt: skip
        for kind, data in core.records.items():
            instance_ = _number(3, 1) if kind == "trace_dma" else b""
            (sections if late else own).append(
                _message(16 if late else 6, _number(1, SECTIONS[kind]), instance_, _number(5, len(area)),
                         _number(6, len(data)), *((_number(7, core.core),) if late else ())))  # fmt: skip
            area += data
        graphs.append(_message(1, write_bytes(1, core.name), _number(3, core.core), *engines, *maps, *own, *rings,
                               *((_message(10, *clocks),) if clocks else ()), *memory))  # fmt: skip
    meta = b"".join([
        write_bytes(1, name), write_bytes(2, uuid.split(b"\0")[0]), write_varint(3, 10001),
        _message(4, _message(4, *graphs)),
        _message(8, _number(1, 2), _number(2, 30), _number(3, 51), write_bytes(5, "0123abcd")),
        write_bytes(9, instance), _message(11, _number(1, 2), _number(2, 26)),
        *((_message(15, write_bytes(1, uuid), write_varint(2, ORIGIN)), *sections, write_bytes(17, "i-0"))
          if late else ()),
    ])  # fmt: skip
    return bytes((version,)) + len(meta).to_bytes(7, "little") + b"\xa5" * 120 + meta + bytes(area)


def of_a_run(neff: Neff, inputs: Mapping[str, Any]) -> bytes:
    """Return the capture of an emulated run, a quarter slower than it was, with words of a runtime around it."""
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    changes = _Changes()
    recorder = Recorder(device)
    device.observers += [recorder, changes]
    device.run()
    cores = []
    for core in device.cores:
        assert core.loaded is not None
        spec = CoreSpec(core.loaded.subgraph.name, core.index)
        trace: list[bytes] = []
        for engine in ENGINES:
            words = core.loaded.words[engine]
            known = {word.slot for word in words}
            gone = [slot for slot in range(len(core.loaded.subgraph.stream_bytes(engine)) // 64) if slot not in known]
            spec.streams[engine] = b"".join(word.raw for word in (*PROLOGUE, *(w.word for w in words), *EPILOGUE))
            first = len(PROLOGUE)
            spec.edits[engine] = [(0, first, False), *(((first + slot) * 64, 1, True) for slot in gone),
                                  ((first + len(words)) * 64, len(EPILOGUE), False)]  # fmt: skip
        for owner in recorder.owners:
            track = recorder.tracks[owner]
            if owner.core != core.index:
                continue
            if owner.kind == "engine":
                for row in range(len(track)):
                    pc = len(PROLOGUE) + track.position[row]
                    trace += [begin(core.index, owner.name, pc, clock(track.start[row]), waited=row),
                              end(core.index, owner.name, pc, clock(track.completed[row]))]  # fmt: skip
            else:
                queue = device.dma.queue(core.index, owner.name)
                spec.rings += [(64 + engine, queue.ring, owner.name) for engine in range(queue.num_queues)]
                spec.records["trace_dma"] = spec.records.get("trace_dma", b"") + b"".join(
                    packet(engine, queue.ring, track.nbytes[row] // queue.num_queues, 7, clock(track.start[row]),
                           clock(track.completed[row]))
                    for row in range(len(track)) for engine in range(queue.num_queues))  # fmt: skip
        spec.records["trace"] = b"".join(sorted(trace, key=lambda one: one[8:16][::-1]))
        spec.records["notify"] = b"".join(changes.records[core.index])
        spec.memory = {"pe": len(spec.streams["PE"]), "dma rings io": 4096, "spill": 0}
        cores.append(spec)
    return capture(cores, neff.header.name, neff.header.uuid)


def clock(time_ps: int) -> int:
    return ORIGIN + 1_000_000 + int(time_ps * SLOWER)


class _Changes:
    """Notes the changes of semaphores as records."""

    def __init__(self) -> None:
        self.records: dict[int, list[bytes]] = {0: [], 1: []}

    def on_event(self, event: Any) -> None:
        source = 6 if event.kind == "dma" else ENGINES.index(event.engine) + 1
        for change in event.semaphores:
            self.records[change.core].append(signal(change.number, change.new, source, clock(event.time_ps)))
