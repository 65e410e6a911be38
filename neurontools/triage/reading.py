"""Read one rank's failure from the files that it left: our core dumps whole, AWS's by name and log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.nrt.lookup import status_of
from formats.nrt.names import NO_CLUSTER, FileName, parse_directory, parse_file
from formats.nrt.status_facts import STATUS_FACTS
from formats.nrt.story import read_story
from neurontools.triage import store
from neurontools.triage.rank import CONSEQUENCES, Rank

if TYPE_CHECKING:
    from formats.core import Core
    from formats.core.records import Source, WaitState

__all__ = ["ranks_of", "read_rank"]

_LOG_BYTES, _CORE_BYTES, _MANIFEST_BYTES = 1 << 20, 16 << 20, 4 << 20
_MOST_FILES = 512  # of one rank; it leaves a few per core
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_WORLD_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


def ranks_of(directory: str) -> Iterator[list[store.DumpFile]]:
    """Yield the files of each rank of a dump directory: those of one instance and process."""
    groups: dict[tuple[str, int], list[store.DumpFile]] = {}
    for file in store.files(directory):
        parsed = parse_file(file.name)
        if parsed is not None:
            groups.setdefault((parsed.instance, parsed.pid), []).append(file)
    for key in sorted(groups):
        yield sorted(groups[key])[:_MOST_FILES]


def read_rank(directory: str, files: Iterable[store.DumpFile]) -> Rank:
    """Return what the files of one rank tell; damage becomes a warning."""
    named = [(parsed, file) for file in files if (parsed := parse_file(file.name)) is not None]
    known = parse_directory(directory.rstrip("/").rpartition("/")[2])
    first = named[0][0]
    rank = Rank(directory, NO_CLUSTER if known is None else known.cluster, first.instance, first.pid)
    if known is not None and known.time is not None:
        rank.when, rank.when_from = known.time.timestamp(), "directory"
    for kind, reader in _READERS.items():
        seen: set[object] = set()
        for parsed, file in named:
            if parsed.kind == kind and file.identity not in seen:
                seen.add(file.identity)  # the cores of a rank share one file
                try:
                    reader(rank, file.path)
                except (OSError, FormatError) as error:
                    rank.warnings.append(" ".join(str(error).split()))
    rank.cores = [_core_name(parsed) for parsed, _file in named if parsed.kind in ("core", "cc-core")]
    rank.log_id = max(parsed.log_id for parsed, _file in named)
    rank.path = rank.path or named[0][1].path
    rank.consequence = rank.status in CONSEQUENCES
    return rank


def _core_name(parsed: FileName) -> str:
    return f"nd{parsed.device} {'nc' if parsed.kind == 'core' else 'cc-core '}{parsed.core}"


def _from_manifest(rank: Rank, path: str) -> None:
    try:
        document = json.loads(store.read(path, _MANIFEST_BYTES))
        arguments, environment = document["arguments"], document["environment"]
        variables: Mapping[str, object] = dict(environment["variables"])
        rank.host = str(environment["hostname"])
        _set_status(rank, str(arguments.get("error-code", "")))
        rank.neff = str(arguments.get("neff-name", ""))
        cluster = str(arguments.get("cluster-id", "")) or NO_CLUSTER
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError("not a manifest of neuron-dump", path=path) from None
    if cluster != NO_CLUSTER:
        rank.cluster = cluster
    rank.rank = _number(variables, _RANK_VARIABLES)
    rank.world = _number(variables, _WORLD_VARIABLES)


def _number(variables: Mapping[str, object], names: Iterable[str]) -> int | None:
    """Return the number in the first variable that is set; None where it holds none."""
    text = next((str(value) for name in names if (value := variables.get(name))), "")
    with suppress(ValueError):
        return int(text)
    return None


def _from_core(rank: Rank, path: str) -> None:
    from formats.core import open_core  # deferred: start-up

    if store.read(path, 4) != b"\x7fELF":
        return  # AWS's own format is not published: the name is what it tells
    core = open_core(store.read(path, _CORE_BYTES) if store.is_url(path) else path)
    emulated = core.dump.device == "emulated"
    rank.path = path
    if emulated:
        rank.knowledge = "core"
    if core.status.name:
        rank.status, rank.status_name = core.status.code, core.status.name
    rank.neff = rank.neff or core.neff.name
    if rank.when_from in ("", "directory"):
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(core.dump.created)
            rank.when = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            rank.when_from = "core"
    rank.outcome = core.outcome or rank.outcome
    fault = core.fault
    if fault is not None:
        rank.kind, rank.message, rank.pc = fault.kind, fault.message, fault.pc
        rank.engine, rank.opcode, rank.line = fault.engine, fault.opcode, _line(fault.source)
        rank.limit, rank.found = fault.expected or "", fault.got or ""
    elif core.hang is not None:
        _from_waits(rank, core)
    if emulated:  # what a real device does not show is no damage
        rank.warnings += core.warnings[:5]


def _from_waits(rank: Rank, core: Core) -> None:
    from emulator.diagnosis.causes import Cause  # deferred: start-up
    from emulator.diagnosis.notes import diagnosed  # deferred: start-up

    waits = core.waits
    rank.kind, rank.cycle = waits.reason, bool(waits.cycles)
    # What explains the others: an engine in a cycle, else one whose wait nothing can end, else the oldest wait.
    ranked = sorted(diagnosed(core), key=lambda each: (
        each[1].cause is not Cause.DEADLOCK, not each[1].cause.root, each[0].since_ps, each[0].core, each[0].engine
    ))  # fmt: skip
    if not ranked:
        return
    chosen, diagnosis = ranked[0]
    rank.engine, rank.opcode, rank.pc = chosen.engine, chosen.opcode, chosen.pc
    rank.line, rank.awaited = _line(chosen.source), chosen.condition
    rank.cause, rank.hint = diagnosis.cause.value, diagnosis.hint
    rank.lost = diagnosis.cause in (Cause.NEVER_SIGNALLED, Cause.NEVER_MET)
    rank.found = str(chosen.present)
    if rank.cycle:
        sides = [next((w for w in waits.waits if (w.core, w.engine) == node), None) for node in waits.cycles[0]]
        rank.other = "; ".join(_side(wait) for wait in sides if wait is not None)
    rank.message = f"waits for {chosen.condition}: {diagnosis.sentence}"


def _side(wait: WaitState) -> str:
    line = _line(wait.source)
    return f"nc{wait.core} {wait.engine} pc {wait.pc}{f' ({line})' if line else ''} waits for {wait.condition}"


def _line(source: Source | None) -> str:
    """Return file and line; of the file the last component, since ranks may have it in different places."""
    if source is None or not source.file:
        return ""
    name = source.file.rpartition("/")[2]
    return name if source.line is None else f"{name}:{source.line}"


def _from_log(rank: Rank, path: str) -> None:
    story = read_story(store.read(path, _LOG_BYTES).decode("utf-8", "replace").splitlines())
    first = story.first
    if story.first_error is not None:
        rank.when, rank.when_from = story.first_error.timestamp(), "log"
    rank.hardware = next((e.fact.name for e in story.events if e.fact.family == "hardware"), rank.hardware)
    if rank.knowledge == "core":
        return
    for block in story.blocks:
        _set_status(rank, block.status or "")
    if first is not None:
        rank.knowledge = "log"
        rank.kind, rank.message = first.fact.name, first.text[:300]
        if rank.status is None:
            _set_status(rank, first.fact.code)
        rank.pc = int(first.values.get("instruction", rank.pc))
    if rank.status is None:
        fatal = (event.fact for event in story.events if event.fact.family == "status" and event.fact.fatal)
        _set_status(rank, next((fact.code for fact in fatal), ""))


def _set_status(rank: Rank, text: str) -> None:
    status = status_of(text) if text else None
    if status is not None and status in STATUS_FACTS:
        rank.set_status(status)


# In this order: a core dump knows better than a manifest, and of a core dump's failure the log adds the time only.
_READERS: dict[str, Callable[[Rank, str], None]] = {
    "manifest": _from_manifest, "core": _from_core, "log": _from_log,
}  # fmt: skip
