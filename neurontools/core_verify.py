"""Is a core dump whole, and are its instructions those of a NEFF?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.core import NOTES
from formats.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from formats.core import Core
    from formats.core.records import Stream
    from formats.neff import Neff

__all__ = ["EngineCheck", "Verified", "verify"]

_WORD = 64


class EngineCheck(NamedTuple):
    """How many words of an engine were compared, how many differ, and the first that does."""

    core: int
    engine: str
    words: int
    compared: int
    different: int
    first_pc: int | None = None
    in_dump: str | None = None
    in_file: str | None = None


class Verified(NamedTuple):
    """What was wrong, nothing where the list is empty."""

    problems: tuple[str, ...]
    engines: tuple[EngineCheck, ...]
    notes: int
    segments: int


def verify(core: Core, neff: Neff | None) -> Verified:
    """Read every part of a dump, and compare its words with those of a NEFF.

    Raises as loading the NEFF does.
    """
    problems = list(_parts(core))
    engines: list[EngineCheck] = []
    if neff is not None:
        problems += _identity(core, neff)
        engines = list(_engines(core, neff))
        problems += [_told(each) for each in engines if each.different]
    return Verified(tuple(problems), tuple(engines), len(core.notes), len(core.segments))


def _parts(core: Core) -> Iterator[str]:
    """Read all of the dump, and yield what is not right."""
    for kind in NOTES.values():
        core.note(kind.record)
    segments = core.segments
    yield from core.warnings
    behind = 0
    for segment in segments:
        if segment.address < behind:
            yield f"segments overlap at {segment.address:#x}"
        behind = segment.address + segment.size
        if not segment.space:
            yield f"the map names no memory at {segment.address:#x}"
        plane = segments.plane(segment)
        if plane is not None and len(plane) < -(-segment.size // 8):
            yield f"the written bits of {segment.address:#x} are cut off"
    for window in core.windows:
        if window.sparse and window.stored < window.written:
            yield f"{window.space} of core {window.core} keeps {window.stored} of {window.written} written bytes"


def _identity(core: Core, neff: Neff) -> Iterator[str]:
    header, known = neff.header, core.neff
    for name, mine, its in (("uuid", known.uuid, header.uuid.hex()), ("hash", known.hash, header.hash.hex())):
        if mine != its:
            yield f"{name} in the dump is {mine or 'unknown'}, in the file {its}"


def _engines(core: Core, neff: Neff) -> Iterator[EngineCheck]:
    """Compare the stored words with those that loading the file puts there."""
    from emulator.device import Device

    device = Device(core.dump.target or neff.target, max(1, core.dump.cores), core.dump.timing)
    device.load(neff)
    streams = {(stream.core, stream.engine): stream for stream in core.program.streams}
    for own in device.cores:
        for name, engine in own.engines.items():
            stream = streams.pop((own.index, name), None)
            if stream is not None or engine.count:
                yield _engine(core, own, name, engine, stream)
    for number, name in streams:
        yield EngineCheck(number, name, 0, 0, 1, None, "words", "no such engine")
    device.release()


def _engine(core: Core, own: Any, name: str, engine: Any, stream: Stream | None) -> EngineCheck:
    if stream is None or stream.words != engine.count:
        have = 0 if stream is None else stream.words
        return EngineCheck(own.index, name, engine.count, 0, 1, None, f"{have} words", f"{engine.count} words")
    replaced = dict(stream.replaced)
    compared = different = 0
    first: tuple[int, str, str] | None = None
    for index, pc, slot, size, count in stream.runs:
        for i in range(count):
            loaded = engine.words[index + i] if 0 <= index + i < engine.count else None
            try:
                found = core.read("instructions", own.index, slot * _WORD + i * size, size, engine=name)
            except NotFoundError:
                found = None
            compared += 1
            raw = loaded.word.raw if loaded is not None else b""
            its = _original(own, name, loaded)
            mine = found.data if found is not None and not found.missing else b""
            theirs = replaced.get(pc + i, mine.hex())
            if mine == raw and theirs == its and loaded is not None and loaded.pc == pc + i:
                continue
            different += 1
            if first is None:
                first = pc + i, (theirs if mine == raw else mine.hex()) or "nothing", its if mine == raw else raw.hex()
    return EngineCheck(own.index, name, engine.count, compared, different, *(first or (None, None, None)))


def _original(own: Any, name: str, loaded: Any) -> str:
    """Return the file's word, in hexadecimal."""
    if loaded is None or own.loaded is None:
        return ""
    try:
        return str(own.loaded.subgraph.streams[name][loaded.pc].raw.hex())
    except FormatError:
        return ""


def _told(each: EngineCheck) -> str:
    where = f"nc{each.core} {each.engine}"
    if each.first_pc is None:
        return f"{where}: the dump has {each.in_dump}, the file {each.in_file}"
    return f"{where}: {each.different} of {each.compared} words differ, the first at pc {each.first_pc}"
