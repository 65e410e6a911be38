"""The protobuf metadata of an NTFF. Source: formats.md 6.1 (inferred on public files; no schema is published)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from formats.errors import FormatError
from formats.neff import ENGINES
from formats.neff.wire import Value, read_fields
from formats.ntff.pcmap import DELETED, INSERTED, Edit, PcMap

__all__ = ["CoreCapture", "DmaRing", "MemoryUse", "Metadata", "Place", "Section", "parse_metadata"]

_WORD = 64
_SECTIONS = ("trace", "notify", "event", "error", "trace_dma", "throttle")


class Place(NamedTuple):
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
    """What was captured of one physical core: streams, maps, rings, memory."""

    name: str
    core: int
    places: Mapping[str, Place]
    maps: Mapping[str, PcMap]
    rings: tuple[DmaRing, ...]
    memory: tuple[MemoryUse, ...]


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

    `origin_ps` is the device time from which AWS's profiler counts, 0 where the file does not tell.
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


class _Message:
    """The fields of one message, by number; what is asked for is what is known."""

    def __init__(self, data: Value, where: str, path: str) -> None:
        if isinstance(data, int):
            raise FormatError("capture metadata is damaged", path=where, field=path, expected="a message", got=data)
        self.where, self.path = where, path
        self.fields: dict[int, list[Value]] = {}
        try:
            for number, value in read_fields(data, where):
                self.fields.setdefault(number, []).append(value)
        except FormatError as error:
            raise FormatError("capture metadata is damaged", path=where, field=path or "metadata",
                              expected=error.expected, got=error.got) from None

    def number(self, field: int, default: int = 0) -> int:
        value = self.fields.get(field, [default])[-1]
        if not isinstance(value, int):
            raise self.fail(field, "a number", f"{len(value)} bytes")
        return value

    def text(self, field: int) -> str:
        value = self.fields.get(field, [b""])[-1]
        if isinstance(value, int):
            raise self.fail(field, "text", value)
        text = value.decode("utf-8", "replace")
        return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")

    def messages(self, field: int) -> Iterator[_Message]:
        for value in self.fields.get(field, ()):
            yield _Message(value, self.where, f"{self.path}.{field}".lstrip("."))

    def fail(self, field: int, expected: str, got: object) -> FormatError:
        return FormatError("capture metadata is damaged", path=self.where, field=f"{self.path}.{field}".lstrip("."),
                           expected=expected, got=got)

    def unknown(self, *known: int) -> Iterator[tuple[str, int | str]]:
        for number, values in self.fields.items():
            if number not in known:
                for value in values:
                    path = f"{self.path}.{number}".lstrip(".")
                    yield path, value if isinstance(value, int) else f"{len(value)} bytes"


def parse_metadata(data: bytes, where: str) -> Metadata:
    """Return what the metadata says; FormatError where a message or a number cannot be what it should be."""
    top = _Message(data, where, "")
    cores: list[CoreCapture] = []
    unknown = list(top.unknown(1, 2, 4, 8, 9, 11, 12, 15, 16, 17))
    for outer in top.messages(4):
        unknown += outer.unknown(4)
        for middle in outer.messages(4):
            unknown += middle.unknown(1)
            for core in middle.messages(1):
                cores.append(_core(core))
                unknown += core.unknown(1, 3, 4, 5, 7, 11)
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
        tuple(_section(item) for item in top.messages(16)),
        tuple(unknown),
    )


def _version(message: _Message, field: int) -> str:
    """Return "2.30.51 (commit)" of a message of three numbers and a text; the text itself where it is none."""
    try:
        found = next(message.messages(field), None)
    except FormatError:
        return message.text(field)
    if found is None:
        return ""
    commit = found.text(5)
    return f"{found.number(1)}.{found.number(2)}.{found.number(3)}" + (f" ({commit})" if commit else "")


def _engine(message: _Message) -> str:
    number = message.number(1)
    if number >= len(ENGINES):
        raise message.fail(1, f"an engine, 0 to {len(ENGINES) - 1}", number)
    return ENGINES[number]


def _core(message: _Message) -> CoreCapture:
    places: dict[str, Place] = {}
    for item in message.messages(4):
        engine = _engine(item)
        embedded = [value for number, values in item.fields.items() if number > 2 for value in values
                    if isinstance(value, bytes) and value and len(value) % _WORD == 0]
        if embedded:
            places[engine] = Place(engine, item.number(2), 0, len(embedded[0]), embedded[0])
        else:
            places[engine] = Place(engine, item.number(2), item.number(7), item.number(8))
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
        tuple(MemoryUse(item.text(3), item.number(2)) for item in message.messages(11)),
    )


def _kind(edit: _Message) -> str:
    kind = edit.number(3)
    if kind not in (0, 2):
        raise edit.fail(3, "0 (inserted) or 2 (deleted)", kind)
    return DELETED if kind else INSERTED


def _section(message: _Message) -> Section:
    kind = message.number(1)
    name = _SECTIONS[kind] if kind < len(_SECTIONS) else f"type {kind}"
    return Section(name, message.number(7), message.number(3), message.number(4), message.number(5), message.number(6))
