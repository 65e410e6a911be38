"""`neurontools core info`: the first look at a core dump."""

from __future__ import annotations

from typing import Annotated

from formats.core import Core
from formats.core.records import DeviceNote, DumpNote, FaultNote, NeffNote, StatusNote, Window
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.core.headline import headline
from neurontools.text.table import bytes_text, count, duration, table


class EngineRow(NamedTuple):
    """Where one engine stood."""

    core: Annotated[int, "Physical core."]
    engine: str
    state: str
    pc: Annotated[int, "Compiler pc of the oldest word that has not completed."]
    words: Annotated[int, "Loaded words."]


class EnvironmentRow(NamedTuple):
    """Where it ran."""

    hostname: str
    system: str
    packages: Annotated[int, "How many packages were installed."]
    variables: Annotated[dict[str, str], "Environment variables NEURON_*, NKI_* and NCCL_*."]


class CoreInfo(NamedTuple):
    """What a core dump is of; no memory is looked at."""

    dump: DumpNote
    status: StatusNote
    headline: Annotated[str, "What happened, in one line."]
    fault: FaultNote | None
    waiting: Annotated[int, "Engines that wait."]
    neff: NeffNote
    engines: tuple[EngineRow, ...]
    environment: EnvironmentRow
    memories: tuple[Window, ...]
    findings: Annotated[int, "What the checks and the device found odd."]
    events: Annotated[int, "Events since the beginning; the dump keeps the newest."]
    log_lines: int
    file_bytes: int
    device: Annotated[DeviceNote | None, "What the driver shows of a real device."]


def look(core: Core) -> CoreInfo:
    """Return what a core dump is of."""
    from emulator.diagnosis.notes import engines_of  # deferred: start-up

    environment = core.environment
    return CoreInfo(
        core.dump,
        core.status,
        headline(core),
        core.fault,
        len(core.waits.waits),
        core.neff,
        tuple(EngineRow(e.core, e.engine, e.state, e.pc, e.words) for e in engines_of(core)),
        EnvironmentRow(
            environment.hostname, environment.system, len(environment.packages), dict(environment.variables)
        ),
        tuple(window for window in core.windows if window.space != "instructions"),
        len(core.findings),
        core.journal_tail.total,
        len(core.log_tail),
        core.size,
        core.note(DeviceNote),
    )


def view(name: str, found: CoreInfo) -> list[str]:
    """Return the text of `core info`."""
    dump, status, neff, environment = found.dump, found.status, found.neff, found.environment
    stored = sum(memory.stored for memory in found.memories)
    written = sum(memory.written for memory in found.memories)
    rows = {
        "what": found.headline,
        "status": f"{status.name} ({status.code})" + (f" in {status.location}" if status.location else ""),
        "time": f"{duration(dump.time_ps)} of device time, {count(dump.completions, 'instruction')}",
        "NEFF": f"{neff.name or '-'}, uuid {neff.uuid or '-'}",
        "from": neff.path or "-",
        "taken": f"{dump.created or '-'} by {dump.tool} {dump.tool_version}, process {dump.pid}",
        "host": f"{environment.hostname or '-'}, {environment.system or '-'}",
        "memory": f"{bytes_text(stored)} here of {bytes_text(written)} written",
        "events": f"{count(found.events, 'event')}, {count(found.log_lines, 'line')} of log, "
        f"{count(found.findings, 'finding')}",
        "size": f"{found.file_bytes:,} bytes",
    }
    chip = f"{dump.target} ({dump.generation})"
    head = f"{name}: {dump.level} core dump, {chip}, {count(dump.cores, 'core')}: {dump.outcome or 'unknown'}"
    lines = [head, "", *(f"  {key.ljust(6)}  {value}" for key, value in rows.items()), ""]
    device = found.device
    if device is not None:
        attributes = [*device.attributes.items(), *device.core_attributes.items()]
        return [*lines, f"  nd{device.device} nc{device.core}", *(f"  {key} {value}" for key, value in attributes)]
    states = [[f"nc{e.core}", e.engine, e.state, e.pc, e.words] for e in found.engines]
    return [*lines, *(f"  {line}" for line in table(("core", "engine", "state", "pc", "of"), states))]


def info(file: CoreFile, json: Json = False) -> None:
    """Show what a core dump is of: chip, outcome, status, NEFF, size.

    Memories stay on disk, so that this takes the same time for a dump of any size.
    """
    with report("core info", json, file=file) as out:
        core = open_core_file(file)
        out.result = found = look(core)
        out.warn(*core.warnings)
        out.lines = lambda: view(file.name, found)


app = command_app(info, CoreInfo)
