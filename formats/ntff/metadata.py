"""The protobuf metadata of an NTFF. Source: formats.md 6.1 (inferred on public files; no schema is published)."""

from __future__ import annotations

from collections.abc import Mapping

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.ntff.clocks import Clocks, parse_clocks
from formats.ntff.message import Message
from formats.ntff.pcmap import DELETED, INSERTED, Edit, PcMap

__all__ = ["HEADER", "BufferPlace", "CoreCapture", "DmaRing", "MemoryUse", "Metadata", "Section", "parse_metadata"]

HEADER = 128  # bytes before the metadata: version, the metadata's length, zeros
# By type of the device's notification queue, from 0.
_SECTIONS = ("trace", "notify", "event", "error", "trace_dma", "throttle")
# Version 4 numbers the categories of memory and does not name them. These are known by their sizes: the loaded streams,
# the tensors, rings and standard output of the same kernel under later runtimes, microcode between its neighbours.
_CATEGORIES = {1: "pe", 2: "act", 3: "pool", 7: "dma rings", 10: "dve", 11: "sp", 13: "tensor", 14: "ucode",
               15: "pool stdio"}  # fmt: skip


class BufferPlace(NamedTuple):
    """Where the instruction buffer of one engine is: device address, place in the data area, or the bytes themselves.

    Files of version 4 hold the bytes in the metadata, later ones in the data area.
    """

    engine: str
    address: int
    offset: int
    nbytes: int
    data: bytes | None = None


class DmaRing(NamedTuple):
    """One ring that a queue of the program has: DMA engine, number of the ring on it, name of the queue."""

    engine: int
    ring: int
    queue: str


class MemoryUse(NamedTuple):
    """Device memory by the runtime's own category, in bytes."""

    category: str
    nbytes: int


class CoreCapture(NamedTuple):
    """What was captured of one physical core: streams, maps, rings, memory, and the clocks its records count on."""

    name: str
    core: int
    places: Mapping[str, BufferPlace]
    maps: Mapping[str, PcMap]
    rings: tuple[DmaRing, ...]
    memory: tuple[MemoryUse, ...]
    clocks: Clocks


class Section(NamedTuple):
    """Records of one kind from one core; `instance` and `number` are fields 3 and 4, `offset` is in the data area.

    The kind is the type of the notification queue that the device wrote them to.
    """

    kind: str
    core: int
    instance: int
    number: int
    offset: int
    nbytes: int


class Metadata(NamedTuple):
    """Everything the metadata says that is understood; `unknown` lists the other fields as (path, bytes or number).

    `uuid` may be cut short, since some files end it at its first zero byte. `origin_ps` is the device time from which
    AWS's profiler counts, 0 where the file does not say.
    """

    name: str
    uuid: str
    runtime: str
    driver: str
    collectives: str
    origin_ps: int
    instance_type: str
    instance_id: str
    cores: tuple[CoreCapture, ...]
    sections: tuple[Section, ...]
    unknown: tuple[tuple[str, int | str], ...]


def parse_metadata(data: bytes, where: str) -> Metadata:
    """Return what the metadata says; FormatError where a message or a number is not what it should be."""
    top = Message(data, where, "")
    cores: list[CoreCapture] = []
    sections = [_section(item, item.number(7)) for item in top.messages(16)]
    unknown = list(top.unknown(1, 2, 4, 8, 9, 11, 12, 15, 16, 17))
    for outer in top.messages(4):
        unknown += outer.unknown(4)
        for middle in outer.messages(4):
            unknown += middle.unknown(1)
            for core in middle.messages(1):
                cores.append(_core(core))
                # Versions 4 and 5 keep the table of sections with each core.
                sections += [_section(item, core.number(3)) for item in core.messages(6)]
                unknown += core.unknown(1, 3, 4, 5, 6, 7, 10, 11)
    # Field 2 is the uuid as well, but as text that ends at its first zero byte.
    uuid = next((item.fields.get(1, [b""])[-1] for item in top.messages(15)), top.fields.get(2, [b""])[-1])
    return Metadata(
        top.text(1),
        uuid[:16].hex() if isinstance(uuid, bytes) else "",
        _version(top, 8),
        _version(top, 11),
        _version(top, 12),
        next((item.number(2) for item in top.messages(15)), 0),
        top.text(9),
        top.text(17),
        tuple(cores),
        tuple(sections),
        tuple(unknown),
    )


def _version(message: Message, field: int) -> str:
    """Return "2.30.51 (commit)" from a message of three numbers and a text; the field's text where it is no message."""
    try:
        found = next(message.messages(field), None)
    except FormatError:
        return message.text(field)
    if found is None:
        return ""
    commit = found.text(5)
    return f"{found.number(1)}.{found.number(2)}.{found.number(3)}" + (f" ({commit})" if commit else "")


def _engine(message: Message) -> str:
    number = message.number(1)
    # From 0 here, from 1 in the records.
    if number >= len(ENGINES):
        raise message.fail(1, f"an engine, 0 to {len(ENGINES) - 1}", number)
    return ENGINES[number]


def _core(message: Message) -> CoreCapture:
    places: dict[str, BufferPlace] = {}
    for item in message.messages(4):
        engine = _engine(item)
        # Which field of version 4 has the words is not settled: whole words in any field behind the address are they.
        embedded = [
            value
            for number, values in item.fields.items()
            if number > 2
            for value in values
            if isinstance(value, bytes) and value and len(value) % WORD == 0
        ]
        if embedded:
            places[engine] = BufferPlace(engine, item.number(2), 0, len(embedded[0]), embedded[0])
        else:
            places[engine] = BufferPlace(engine, item.number(2), item.number(7), item.number(8))
    maps = {}
    for item in message.messages(5):
        engine = _engine(item)
        edits = [Edit(edit.number(1), edit.number(2), _kind(edit)) for edit in item.messages(2)]
        maps[engine] = PcMap(engine, tuple(sorted(edits, key=lambda edit: edit.position)))
    return CoreCapture(
        message.text(1),
        message.number(3),
        places,
        maps,
        tuple(DmaRing(item.number(1), item.number(2), item.text(4)) for item in message.messages(7)),
        tuple(MemoryUse(_category(item), item.number(2)) for item in message.messages(11)),
        parse_clocks(message),
    )


def _category(message: Message) -> str:
    number = message.number(1)
    return message.text(3) or _CATEGORIES.get(number, f"category {number}")


def _kind(edit: Message) -> str:
    kind = edit.number(3)
    if kind not in (0, 2):
        raise edit.fail(3, "0 (inserted) or 2 (deleted)", kind)
    return DELETED if kind else INSERTED


def _section(message: Message, core: int) -> Section:
    kind = message.number(1)
    name = _SECTIONS[kind] if kind < len(_SECTIONS) else f"type {kind}"
    return Section(name, core, message.number(3), message.number(4), message.number(5), message.number(6))
