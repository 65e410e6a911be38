"""Write a capture of version 6: metadata, instruction buffers, trace records; what the reader knows, and no more.

Every clock is the one of picoseconds that captures of trn2 have. Fields of no known meaning are left out, bytes of
records whose meaning is not known are zero. Layouts: formats.md 6.1, `formats.ntff.records.LAYOUT`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from formats.neff.wire import write_bytes, write_varint
from formats.ntff.metadata import HEADER, DmaRing
from formats.ntff.pcmap import DELETED, Edit
from formats.ntff.records import ADDRESS, DMA_SOURCE, OPERATIONS, PER_INSTANCE

__all__ = ["CoreContents", "Origin", "begin_record", "end_record", "packet_records", "signal_record", "write_ntff"]

_VERSION = 6
_SECTIONS = {"trace": 0, "notify": 1, "trace_dma": 4}
_CYCLES_PER_US = 1200  # what waits are counted in
_CODES = {name: code for code, name in OPERATIONS.items()}
_MOST_TIME = (1 << 64) - 1


class Origin(NamedTuple):
    """Where a capture comes from: the program, the instance, and who wrote it, as three numbers and a text."""

    name: str
    uuid: bytes
    instance_type: str
    instance_id: str
    version: tuple[int, int, int]
    writer: str


class CoreContents(NamedTuple):
    """One core: loaded streams as (device address, bytes), edits, rings, device memory, records by kind of section.

    Records of DMA packets are given by the instance that their engines belong to.
    """

    name: str
    core: int
    streams: Mapping[str, tuple[int, bytes]]
    edits: Mapping[str, Iterable[Edit]]
    rings: Iterable[DmaRing]
    memory: Mapping[str, int]
    records: Mapping[tuple[str, int], bytes]


def _record(facts: bytes, time_ps: int) -> bytes:
    return facts + min(max(0, time_ps), _MOST_TIME).to_bytes(8, "little")


def _word(engine: str, address: int, ended: bool) -> bytes:
    place = address >> 6 & ADDRESS
    return place.to_bytes(3, "little") + bytes((0x80 | (ENGINES.index(engine) + 1) << 2 | ended,))


def begin_record(engine: str, address: int, time_ps: int, waited_ps: int = 0) -> bytes:
    """Return the record of a word at a device address that begins; waits have sixteen bits of cycles of 1.2 GHz."""
    waited = min(0xFFFF, max(0, waited_ps) * _CYCLES_PER_US // 1_000_000)
    return _record(_word(engine, address, False) + b"\0\0" + waited.to_bytes(2, "little"), time_ps)


def end_record(engine: str, address: int, time_ps: int) -> bytes:
    """Return the record of a word that ends."""
    return _record(_word(engine, address, True) + b"\0\0\0\0", time_ps)


def signal_record(kind: str, number: int, operation: str, value: int, cause: str | None, time_ps: int) -> bytes:
    """Return the record of a semaphore or event that changed; `cause` is an engine, None for DMA and other cores."""
    source = DMA_SOURCE if cause is None else ENGINES.index(cause) + 1
    head = bytes((number & 0xFF, kind == "semaphore", 0xF0 | _CODES[operation], 0x83 | source << 2))
    return _record(head + (value & 0xFFFFFFFF).to_bytes(4, "little"), time_ps)


def packet_records(engine: int, ring: int, nbytes: int, start_ps: int, end_ps: int) -> bytes:
    """Return the two records of a packet of at most 64 KiB."""
    head = bytes((0x80 | engine % PER_INSTANCE,))
    begun = _record(b"\0\0\0" + head + bytes((ring << 4 | 1, 0, 0, 0)), start_ps)
    size = (nbytes & 0xFFFF).to_bytes(2, "little")
    return begun + _record(size + b"\0" + head + bytes((ring << 4 | 5, 0, 0, 0)), end_ps)


def _message(number: int, *parts: bytes) -> bytes:
    return write_bytes(number, b"".join(parts))


def _number(field: int, value: int) -> bytes:
    """Return a number as protobuf's third version writes it: not at all where it is 0."""
    return write_varint(field, value) if value else b""


def write_ntff(origin: Origin, cores: Iterable[CoreContents]) -> bytes:
    """Return the capture of some cores."""
    area = bytearray()
    graphs: list[bytes] = []
    sections: list[bytes] = []
    clock = _number(2, 1) + _number(3, 1)
    for core in cores:
        engines: list[bytes] = []
        maps: list[bytes] = []
        for engine, (address, stream) in core.streams.items():
            number = _number(1, ENGINES.index(engine))
            place = _number(2, address) + _number(7, len(area)) + _number(8, len(stream))
            engines.append(_message(4, number, place))
            area += stream
            edits = (
                _message(2, _number(1, one.position), _number(2, one.words), _number(3, 2 * (one.kind == DELETED)))
                for one in core.edits.get(engine, ())
            )
            maps.append(_message(5, number, *edits))
        rings = (_message(7, _number(1, one.engine), _number(2, one.ring), write_bytes(4, one.queue))
                 for one in core.rings)  # fmt: skip
        clocks = _message(10, *(_message(field, clock) for field in (1, 2, 3, 4, 5, 6)))
        memory = (_message(11, _number(2, nbytes), write_bytes(3, name)) for name, nbytes in core.memory.items())
        graphs.append(_message(1, write_bytes(1, core.name), _number(3, core.core), *engines, *maps, *rings, clocks,
                               *memory))  # fmt: skip
        for (kind, instance), data in core.records.items():
            sections.append(_message(16, _number(1, _SECTIONS[kind]), _number(3, instance), _number(5, len(area)),
                                     _number(6, len(data)), _number(7, core.core)))  # fmt: skip
            area += data
    version = (_number(field, value) for field, value in enumerate(origin.version, 1))
    meta = b"".join([
        # Field 2 is a text in AWS's files: it ends where the uuid has its first zero. Field 15 has all of it.
        write_bytes(1, origin.name), write_bytes(2, origin.uuid.split(b"\0")[0]),
        _message(4, _message(4, *graphs)), _message(8, *version, write_bytes(5, origin.writer)),
        write_bytes(9, origin.instance_type), _message(15, write_bytes(1, origin.uuid)), *sections,
        write_bytes(17, origin.instance_id),
    ])  # fmt: skip
    return bytes((_VERSION,)) + len(meta).to_bytes(7, "little") + bytes(HEADER - 8) + meta + bytes(area)
