"""`neurontools ntff info`: the first look at a profile capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.ntff.arguments import NtffFile
from neurontools.text.table import bold, count, ranges, table

if TYPE_CHECKING:
    from formats.ntff import CoreCapture, Ntff


class BufferRow(NamedTuple):
    """The instruction buffer of one engine: the compiler's words, less those deleted, and those inserted."""

    engine: str
    address: int
    words: int
    inserted: int
    deleted: int
    compiler_words: int


class MemoryRow(NamedTuple):
    """Device memory of one category."""

    category: str
    bytes: int


class CoreRow(NamedTuple):
    """One core that was captured."""

    core: int
    name: str
    engines: list[BufferRow]
    memory: list[MemoryRow]
    executions: Annotated[int, "of loaded words, in the capture"]
    of_program: Annotated[int, "of them, of the compiler's words"]
    outside: Annotated[int, "records of words that no buffer holds: the runtime's before the program"]


class RingRow(NamedTuple):
    """One ring of a queue, and the DMA engines that serve it."""

    core: int
    queue: str
    ring: int
    dma_engines: list[int]


class SectionRow(NamedTuple):
    """Trace records of one kind."""

    kind: str
    core: int
    instance: int
    records: int


class LayoutRow(NamedTuple):
    """One field of a trace record, and how it is known."""

    section: str
    place: str
    meaning: str
    provenance: str
    cite: str


class CaptureInfo(NamedTuple):
    """The result of `ntff info`."""

    version: int
    name: str
    uuid: str
    runtime: str
    driver: str
    collectives: str
    origin_ps: int
    instance_type: str
    instance_id: str
    target: str
    cores: list[CoreRow]
    rings: list[RingRow]
    sections: list[SectionRow]
    established: Annotated[list[LayoutRow], "what is known of trace records"]
    unknown_fields: Annotated[int, "fields of the metadata that are not understood"]
    cut_bytes: Annotated[int, "bytes behind the last whole record of a section, and the last whole word of a buffer"]


def describe(ntff: Ntff) -> CaptureInfo:
    """Return what a capture holds."""
    from formats.ntff import LAYOUT  # deferred: start-up
    from formats.ntff.records import RECORD  # deferred: start-up

    meta = ntff.metadata
    rings: dict[tuple[int, str, int], list[int]] = {}
    for core in ntff.cores:
        for one in core.rings:
            rings.setdefault((core.core, one.queue, one.ring), []).append(one.engine)
    return CaptureInfo(
        ntff.version,
        ntff.name,
        ntff.uuid,
        meta.runtime,
        meta.driver,
        meta.collectives,
        meta.origin_ps,
        meta.instance_type,
        meta.instance_id,
        ntff.target.name,
        [_core(ntff, one) for one in ntff.cores],
        [RingRow(*key, engines) for key, engines in rings.items()],
        [SectionRow(one.kind, one.core, one.instance, one.nbytes // RECORD) for one in ntff.sections if one.nbytes],
        [LayoutRow(*one) for one in LAYOUT],
        len(meta.unknown),
        sum(one.nbytes % RECORD for one in ntff.sections)
        + sum(len(one.data) % WORD for core in ntff.cores for one in ntff.buffers(core.core)),
    )


def _core(ntff: Ntff, core: CoreCapture) -> CoreRow:
    engines = []
    for buffer in ntff.buffers(core.core):
        words, inserted, deleted = len(buffer.data) // WORD, buffer.map.inserted, buffer.map.deleted
        compiled = words - inserted + deleted
        engines.append(BufferRow(buffer.engine, buffer.address, words, inserted, deleted, compiled))
    maps = {buffer.engine: buffer.map for buffer in ntff.buffers(core.core)}
    ran = ntff.executed(core.core)
    of_program = sum(maps[one.engine].compiler_pc(one.pc) is not None for one in ran)
    memory = [MemoryRow(one.category, one.nbytes) for one in core.memory]
    return CoreRow(core.core, core.name, engines, memory, len(ran), of_program, ntff.outside(core.core))


def view(name: str, found: CaptureInfo) -> list[str]:
    """Return a capture's description for people."""
    lines = [
        bold(f"{name}: profile capture, version {found.version}"),
        f"of        {found.name} (uuid {found.uuid})",
        f"on        {found.instance_type or 'unknown instance'} ({found.target})",
        f"runtime   {found.runtime or 'unknown'}",
        *(f"{title:<10}{text}" for title, text in (("driver", found.driver), ("coll.", found.collectives)) if text),
    ]
    for core in found.cores:
        lines += ["", bold(f"core {core.core}, {core.name}")]
        lines += table(
            ("engine", "loaded at", "words", "compiler's", "inserted", "left out"),
            [(one.engine, f"{one.address:#x}", one.words, one.compiler_words, one.inserted, one.deleted)
             for one in core.engines],
        )  # fmt: skip
        if core.executions:
            elsewhere = f"; {count(core.outside, 'record')} of words elsewhere" if core.outside else ""
            lines += ["", f"{count(core.executions, 'execution')}, {core.of_program:,} of the compiler's{elsewhere}"]
        memory = sorted((one for one in core.memory if one.bytes), key=lambda one: -one.bytes)
        if memory:
            lines += ["", *table(("memory", "bytes"), memory)]
    if found.rings:
        rings = [(one.core, one.queue, one.ring, ranges(sorted(one.dma_engines))) for one in found.rings]
        lines += ["", *table(("core", "queue", "ring", "DMA engines"), rings)]
    if found.sections:
        sections = [(one.core, one.kind, one.records) for one in found.sections]
        lines += ["", *table(("core", "records of", "number"), sections)]
    odd = [
        f"{count(found.unknown_fields, 'field')} of the metadata not understood" if found.unknown_fields else "",
        f"{count(found.cut_bytes, 'byte')} of cut records or words left out" if found.cut_bytes else "",
    ]
    return [*lines, *(["", "; ".join(filter(None, odd))] if any(odd) else [])]


def layout_view(found: CaptureInfo) -> list[str]:
    """Return what is known of trace records for people."""
    rows = [(one.section, one.place, one.meaning, one.provenance) for one in found.established]
    return [*table(("records", "bytes", "meaning", "known"), rows), "", f"from {found.established[0].cite}"]


def info(
    file: NtffFile,
    layout: Annotated[
        bool, typer.Option("--layout", help="List the fields of trace records that are understood, and how known.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what a capture holds: chip, streams, memory, records.

    Loaded words are the compiler's, without those that the runtime left out, and with those that it put before and
    after them.
    """
    from neurontools.ntff.capture import open_pair  # deferred: start-up

    with report("ntff info", json, file=file, layout=layout or None) as out:
        ntff, _, _ = open_pair(file, None)
        found = describe(ntff)
        out.result = found
        out.lines = lambda: layout_view(found) if layout else view(file.name, found)


app = command_app(info, result=CaptureInfo)
