"""Write what a device is now as a core dump."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.dump import memory, state
from emulator.dump.program import StoredWords, instruction_base, program_note, word_text
from emulator.dump.tail import EventTail, journal_note
from emulator.memory import FRESH
from formats.core import environment as environments
from formats.core.elf import PF_R, PF_W, PF_X
from formats.core.records import (
    Allocation,
    DumpNote,
    EnvironmentNote,
    LogNote,
    MapNote,
    NeffNote,
    StatusNote,
    TensorsNote,
    Window,
)
from formats.core.writer import CoreWriter
from formats.neuron_core import WORD
from formats.nrt.status import NrtStatus

if TYPE_CHECKING:
    from emulator.checks.finding import Finding
    from emulator.device import Device
    from emulator.journal import Journal
    from formats.neff import Neff

__all__ = ["LEVELS", "write_core"]

LEVELS = ("light", "full")
_EVENTS = {False: 64, True: 1024}
_LOG_LINES = 2000


def write_core(
    device: Device,
    path: str | os.PathLike[str],
    *,
    level: str = "light",
    neff: Neff | None = None,
    journal: Journal | EventTail | None = None,
    log_tail: Sequence[str] = (),
    environment: EnvironmentNote | None = None,
    error_location: str = "nrt_execute",
    created: str | None = None,
    findings: Iterable[Finding] = (),
    folders: Iterable[Path] = (),
    reason: str = "snapshot",
    neff_path: str = "",
    pid: int | None = None,
) -> int:
    """Write a dump of a device and return its size in bytes; the file is whole or absent.

    `level` "light" keeps no memories but what the fault and the present words name, and the words around where engines
    stand; "full" keeps all that was written and every word. `neff` is the file that runs, by default the one that was
    loaded. `folders` is where source files are looked for. `created` (ISO 8601) and `pid` are those of this moment and
    process unless given, for files that are the same each time. Raises FormatError where the file cannot be written,
    ValueError for another level.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is none of {', '.join(LEVELS)}")
    full = level == "full"
    if neff is None and device.model is not None:
        neff = device.model.neff
    # the folder of the file itself is one that the caller has chosen by running it
    places = [*folders, *([Path(neff.path).parent] if neff is not None and neff.path else [])]
    pieces = list(memory.full_pieces(device) if full else memory.light_pieces(device))
    program, words = program_note(device, full, places)
    writer = CoreWriter(path)
    for note in (_dump_note(device, level, created, pid), _status(device, error_location)):
        writer.note(note)
    if device.fault is not None:
        writer.note(state.fault_note(device, device.fault))
    writer.note(state.waits(device, reason if device.fault is None else "fault"))
    writer.note(_neff_note(device, neff, neff_path))
    writer.note(state.engines(device))
    writer.note(state.counters(device))
    writer.note(state.queues(device, full))
    writer.note(state.rings(device, full))
    writer.note(MapNote(_windows(device, pieces, words, full), FRESH))
    writer.note(TensorsNote(tuple(state.tensors(device)), tuple(_allocations(device, pieces))))
    writer.note(program)
    writer.note(environments.collect() if environment is None else environment)
    found = state.findings(device, findings)
    if found.findings:
        writer.note(found)
    events = journal_note(journal, _EVENTS[full], lambda core, engine, pc: word_text(device, core, engine, pc))
    if events is not None:
        writer.note(events)
    if log_tail:
        writer.note(LogNote(tuple(line.rstrip("\n") for line in log_tail[-_LOG_LINES:])))
    for each in words:
        writer.segment(each.address, each.data, flags=PF_R | PF_X)
    for piece in pieces:
        writer.segment(piece.address, piece.data, flags=PF_R | PF_W, written=piece.written)
    return writer.close()


def _dump_note(device: Device, level: str, created: str | None, pid: int | None) -> DumpNote:
    try:
        own = version("neurontools")
    except PackageNotFoundError:  # run from a folder that was never installed
        own = ""
    return DumpNote(
        level=level,
        created=datetime.now(UTC).isoformat(timespec="seconds") if created is None else created,
        tool="neurontools",
        tool_version=own,
        target=device.target.name,
        generation=device.target.generation,
        cores=len(device.cores),
        outcome=device.outcome,
        time_ps=device.now_ps,
        completions=device.steps,
        pid=os.getpid() if pid is None else pid,
        seed=device.seed,
        timing=device.timing,
    )


def _status(device: Device, location: str) -> StatusNote:
    if device.fault is not None:
        found = device.fault.status
    else:
        found = NrtStatus.NRT_SUCCESS if device.hang is None else device.hang.status
    return StatusNote(int(found), found.name, location)


def _neff_note(device: Device, neff: Neff | None, path: str) -> NeffNote:
    if neff is None:
        return NeffNote()
    header = neff.header
    major, minor = header.neff_version
    return NeffNote(
        header.name,
        header.uuid.hex(),
        header.hash.hex(),
        path or neff.path or "",
        neff.size,
        f"{major}.{minor}",
        header.features,
        any(core.extended for core in device.cores),
        tuple(subgraph.name for subgraph in neff.subgraphs),
    )


def _windows(
    device: Device, pieces: list[memory.Piece], words: Sequence[StoredWords], full: bool
) -> tuple[Window, ...]:
    found = list(memory.chip_windows(device, pieces, full))
    kept = sum(piece.data.size for piece in pieces if piece.space == "HBM")
    for number, (base, size) in enumerate(device.addresses.hbm):
        here = [a for a in device.hbm.allocations.values() if base <= a.address < base + size]
        if here:
            written = sum(allocation.written_bytes for allocation in here)
            stored = kept if len(here) == len(device.hbm.allocations) else sum(
                memory.stored_bytes(pieces, allocation) for allocation in here
            )  # fmt: skip
            found.append(Window("HBM", number, "", base, size, 1, size, written, stored, full))
    for core in device.cores:
        for name, engine in core.engines.items():
            if engine.count:
                base = instruction_base(core.index, name)
                last = engine.words[-1]
                size = last.slot * WORD + len(last.word.raw)
                # Words that the loader dropped leave gaps.
                loaded = sum(len(each.word.raw) for each in engine.words)
                stored = sum(len(w.data) for w in words if base <= w.address < base + size)
                found.append(Window("instructions", core.index, name, base, size, 1, size, loaded, stored, full))
    return tuple(found)


def _allocations(device: Device, pieces: list[memory.Piece]) -> Iterable[Allocation]:
    for address in sorted(device.hbm.allocations):
        item = device.hbm.allocations[address]
        yield Allocation(item.name, address, item.nbytes, item.written_bytes, memory.stored_bytes(pieces, item))
