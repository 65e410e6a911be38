"""`neurontools core verify`: is the dump whole, and did the engines have the words of the NEFF."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.core import NOTES, Core
from formats.core.records import Stream
from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import count

if TYPE_CHECKING:
    from emulator.core import Core as EmulatedCore
    from emulator.loaded import LoadedWord
    from formats.neff import Neff


class EngineCheck(NamedTuple):
    """How many words of an engine were compared, how many differ, and the first that does."""

    core: Annotated[int, "Physical core."]
    engine: str
    words: Annotated[int, "Words that loading the NEFF gives the engine."]
    compared: Annotated[int, "Words in the dump."]
    different: int
    first_pc: Annotated[int | None, "Of the first word that differs; null where the number of words does."] = None
    in_dump: Annotated[str | None, "What the dump has there."] = None
    in_file: Annotated[str | None, "What the file has there."] = None


class Verified(NamedTuple):
    """What is wrong with a dump."""

    ok: bool
    problems: tuple[str, ...]
    engines: Annotated[tuple[EngineCheck, ...], "Of a comparison with a NEFF."]
    notes: int
    segments: int


def verified(core: Core, neff: Neff | None) -> Verified:
    """Read every part of a dump, and compare its words with those of a NEFF.

    Raises as loading the NEFF does.
    """
    problems = list(_parts(core))
    engines: list[EngineCheck] = []
    if neff is not None:
        problems += _identity(core, neff)
        engines = list(_engines(core, neff))
        problems += [_told(each) for each in engines if each.different]
        if core.level == "full":
            problems += [f"nc{each.core} {each.engine}: {each.compared} of {each.words} words are in a full dump"
                         for each in engines if each.compared < each.words and not each.different]  # fmt: skip
    return Verified(not problems, tuple(problems), tuple(engines), len(core.notes), len(core.segments))


def _parts(core: Core) -> Iterator[str]:
    """Read all of the dump, and yield what is not right."""
    for kind in NOTES.values():
        core.note(kind.record)
    segments = core.segments
    yield from core.warnings
    yield from core.altered()
    for segment in segments:
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
    from emulator.device import Device  # deferred: start-up

    device = Device(core.dump.target or neff.target, max(1, core.dump.cores), core.dump.timing)
    device.load(neff)
    streams = {(stream.core, stream.engine): stream for stream in core.program.streams}
    for own in device.cores:
        for name, engine in own.engines.items():
            stream = streams.pop((own.index, name), None)
            if stream is not None or engine.count:
                yield _engine(core, own, name, stream)
    for number, name in streams:
        yield EngineCheck(number, name, 0, 0, 1, None, "words", "no such engine")
    device.release()


def _engine(core: Core, own: EmulatedCore, name: str, stream: Stream | None) -> EngineCheck:
    engine = own.engines[name]
    if stream is None or stream.words != engine.count:
        have = 0 if stream is None else stream.words
        return EngineCheck(own.index, name, engine.count, 0, 1, None, f"{have} words", f"{engine.count} words")
    replaced = dict(stream.replaced)
    compared = different = 0
    first: tuple[int, str, str] | None = None
    for index, pc, slot, size, number in stream.runs:
        for i in range(number):
            loaded = engine.words[index + i] if 0 <= index + i < engine.count else None
            raw = loaded.word.raw if loaded is not None else b""
            original = _original(own, name, loaded)
            mine = _stored(core, own.index, name, slot * WORD + i * size, size)
            theirs = replaced.get(pc + i, mine.hex())
            compared += 1
            if mine == raw and theirs == original and loaded is not None and loaded.pc == pc + i:
                continue
            different += 1
            if first is None:
                sides = (theirs, original) if mine == raw else (mine.hex(), raw.hex())
                first = pc + i, sides[0] or "nothing", sides[1]
    return EngineCheck(own.index, name, engine.count, compared, different, *(first or (None, None, None)))


def _stored(core: Core, number: int, engine: str, address: int, size: int) -> bytes:
    """Return the bytes of a word in the dump, none where it does not hold them."""
    try:
        found = core.read("instructions", number, address, size, engine=engine)
    except NotFoundError:
        return b""
    return b"" if found.missing else found.data


def _original(own: EmulatedCore, name: str, loaded: LoadedWord | None) -> str:
    """Return the file's word in hexadecimal, "" where it has none."""
    if loaded is None or own.loaded is None:
        return ""
    try:
        return own.loaded.subgraph.streams[name][loaded.pc].raw.hex()
    except FormatError:
        return ""


def _told(each: EngineCheck) -> str:
    where = f"nc{each.core} {each.engine}"
    if each.first_pc is None:
        return f"{where}: the dump has {each.in_dump}, the file {each.in_file}"
    return f"{where}: {each.different} of {each.compared} words differ, the first at pc {each.first_pc}"


def view(name: str, found: Verified) -> list[str]:
    """Return the text of `core verify`."""
    head = f"{name}: {count(found.notes, 'note')}, {count(found.segments, 'segment')}"
    if found.engines:
        head += f", {count(sum(each.compared for each in found.engines), 'word')} compared with the NEFF"
    lines = [f"{head}: {'whole' if found.ok else count(len(found.problems), 'problem')}"]
    lines += [f"  {problem}" for problem in found.problems]
    for each in found.engines:
        if each.different and each.first_pc is not None:
            lines += [f"  nc{each.core} {each.engine} pc {each.first_pc}", f"    in the dump  {each.in_dump}",
                      f"    in the file  {each.in_file}"]  # fmt: skip
    return lines


def verify(
    file: CoreFile,
    neff: Annotated[
        Path | None,
        typer.Option("--neff", metavar="FILE", help="The NEFF that ran: its words must be those in the dump."),
    ] = None,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Check a core dump, and its instructions against a NEFF.

    Without `--neff` every part must be there and readable. With it the identity must be the file's, each instruction in
    the dump must be, byte for byte, what loading the file puts there, and each word that the loader replaced as in the
    file.
    """
    with report("core verify", json, file=file, neff=neff) as out:
        core = open_core_file(file)
        out.result = found = verified(core, None if neff is None else open_neff_file(neff))
        out.warn(*core.warnings)
        out.lines = lambda: view(file.name, found)
        if not found.ok:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(verify, Verified)
