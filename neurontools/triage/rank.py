"""One rank's failure, from the files that it left: our core dumps whole, AWS's by name and log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.nrt.lookup import status_of
from formats.nrt.names import NO_CLUSTER, FileName, parse_directory, parse_file
from formats.nrt.status import NrtStatus
from formats.nrt.status_facts import STATUS_FACTS
from formats.nrt.story import read_story
from neurontools.triage import store

if TYPE_CHECKING:
    from formats.core import Core
    from formats.core.records import Source, WaitState

__all__ = ["CONSEQUENCES", "Rank", "ranks_of", "read_rank"]

_LOG_BYTES, _CORE_BYTES, _MANIFEST_BYTES = 1 << 20, 16 << 20, 4 << 20
# Statuses that follow from another rank's failure, or from one before it.
CONSEQUENCES = frozenset(
    (
        NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES,
        NrtStatus.NRT_NETWORK_PROXY_FAILURE,
        NrtStatus.NRT_EXEC_UNIT_UNRECOVERABLE,
    )
)


@dataclass
class Rank:
    """What one process left behind.

    `source` of the knowledge is "core" (our dump), "log" (a log's tail) or "name" (nothing but file names); `when` is
    seconds since 1970 or None, `when_from` where that comes from.  `other` is the other side of a wait.
    """

    directory: str
    cluster: str
    instance: str
    pid: int
    log_id: int = 0
    cores: list[str] = field(default_factory=list)
    knowledge: str = "name"
    status: int | None = None
    status_name: str = ""
    outcome: str = ""
    kind: str = ""
    message: str = ""
    engine: str = ""
    opcode: str = ""
    awaited: str = ""
    line: str = ""
    other: str = ""
    limit: str = ""
    found: str = ""
    pc: int = -1
    cycle: bool = False
    lost: bool = False  # it waits for something that nothing signals any more
    when: float | None = None
    when_from: str = ""
    neff: str = ""
    host: str = ""
    world: int | None = None
    rank: int | None = None
    hardware: str = ""
    path: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return how a report calls it."""
        number = "" if self.rank is None else f"rank {self.rank}, "
        return f"{number}{self.instance} pid {self.pid}"

    @property
    def consequence(self) -> bool:
        """Tell whether it failed because of another failure, as far as its status says."""
        return self.status in CONSEQUENCES

    @property
    def signature(self) -> tuple[str, ...]:
        """Return what failures of one cause share: status, engine, opcode, awaited, source line, message."""
        text = "" if self.knowledge == "core" else self.kind
        return (self.status_name or "unknown", self.engine, self.opcode, self.awaited, self.line, text)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "consequence": self.consequence}


def ranks_of(directory: str) -> Iterator[list[store.Entry]]:
    """Yield the files of each rank of a dump directory: those of one instance and process."""
    groups: dict[tuple[str, int], list[store.Entry]] = {}
    for entry in store.files(directory):
        parsed = parse_file(entry.name)
        if parsed is not None:
            groups.setdefault((parsed.instance, parsed.pid), []).append(entry)
    for key in sorted(groups):
        yield sorted(groups[key])[:512]


def read_rank(directory: str, entries: Iterable[store.Entry]) -> Rank:
    """Return what the files of one rank tell; damage becomes a warning."""
    named = [(parsed, entry) for entry in entries if (parsed := parse_file(entry.name)) is not None]
    known = parse_directory(directory.rstrip("/").rpartition("/")[2])
    first = named[0][0]
    cluster = NO_CLUSTER if known is None else known.cluster
    rank = Rank(directory, cluster, first.instance, first.pid)
    if known is not None and known.time is not None:
        rank.when, rank.when_from = known.time.timestamp(), "directory"
    for kind, reader in (("manifest", _from_manifest), ("core", _from_core), ("log", _from_log)):
        seen: set[object] = set()
        for parsed, entry in named:
            if parsed.kind == kind and entry.identity not in seen:
                seen.add(entry.identity)
                try:
                    reader(rank, parsed, entry)
                except (OSError, FormatError) as error:
                    rank.warnings.append(" ".join(str(error).split()))
    rank.cores = [_core_name(parsed) for parsed, _entry in named if parsed.kind in ("core", "cc-core")]
    rank.log_id = max((parsed.log_id for parsed, _entry in named), default=0)
    if not rank.path:
        rank.path = named[0][1].path
    return rank


def _core_name(parsed: FileName) -> str:
    return f"nd{parsed.device} {'nc' if parsed.kind == 'core' else 'cc-core '}{parsed.core}"


def _from_manifest(rank: Rank, parsed: FileName, entry: store.Entry) -> None:
    try:
        document = json.loads(store.read(entry.path, _MANIFEST_BYTES))
        arguments, environment = document["arguments"], document["environment"]
        variables, rank.host = environment["variables"], str(environment["hostname"])
        _set_status(rank, str(arguments.get("error-code", "")))
        rank.neff = str(arguments.get("neff-name", ""))
        cluster = str(arguments.get("cluster-id", "")) or NO_CLUSTER
        if cluster != NO_CLUSTER:
            rank.cluster = cluster
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError("not a manifest of neuron-dump", path=entry.path) from None
    _from_variables(rank, variables)


def _from_variables(rank: Rank, variables: Any) -> None:
    with suppress(ValueError, KeyError, TypeError):
        rank.rank = int(variables.get("RANK") or variables.get("OMPI_COMM_WORLD_RANK") or variables["SLURM_PROCID"])
    with suppress(ValueError, KeyError, TypeError):
        size = variables.get("WORLD_SIZE") or variables.get("OMPI_COMM_WORLD_SIZE") or variables["SLURM_NTASKS"]
        rank.world = int(size)


def _from_core(rank: Rank, parsed: FileName, entry: store.Entry) -> None:
    from formats.core import open_core

    head = store.read(entry.path, 4)
    if head != b"\x7fELF":
        return  # AWS's own format is not published: the name is what it tells
    core = open_core(store.read(entry.path, _CORE_BYTES) if store.is_url(entry.path) else entry.path)
    rank.knowledge = "core" if core.dump.device == "emulated" else rank.knowledge
    rank.path = entry.path
    if core.status.name:
        rank.status, rank.status_name = core.status.code, core.status.name
    if not rank.neff:
        rank.neff = core.neff.name
    if rank.when_from in ("", "directory"):
        with suppress(ValueError):
            moment = datetime.fromisoformat(core.dump.created)
            rank.when = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            rank.when_from = "core"
    rank.outcome = core.outcome or rank.outcome
    if core.fault is not None:
        fault = core.fault
        rank.kind, rank.message, rank.pc = fault.kind, fault.message, fault.pc
        rank.engine, rank.opcode, rank.line = fault.engine, fault.opcode, _line(fault.source)
        rank.limit, rank.found = fault.expected or "", fault.got or ""
    elif core.hang is not None:
        _from_waits(rank, core)
    if core.dump.device == "emulated":  # what a real device does not show is no damage
        rank.warnings += core.warnings[:5]


def _from_waits(rank: Rank, core: Core) -> None:
    waits = core.waits
    rank.kind, rank.cycle = waits.reason, bool(waits.cycles)
    chosen = _culprit(core)
    if chosen is None:
        return
    rank.engine, rank.opcode, rank.pc = chosen.engine, chosen.opcode, chosen.pc
    rank.line, rank.awaited = _line(chosen.source), chosen.condition
    rank.lost = chosen.pending == 0
    rank.found = str(chosen.present)
    if rank.cycle:
        sides = [next((w for w in waits.waits if (w.core, w.engine) == node), None) for node in waits.cycles[0]]
        rank.other = "; ".join(_side(wait) for wait in sides if wait is not None)
    rank.message = f"waits for {chosen.condition}, is {chosen.present}"


def _side(wait: WaitState) -> str:
    line = _line(wait.source)
    return f"nc{wait.core} {wait.engine} pc {wait.pc}{f' ({line})' if line else ''} waits for {wait.condition}"


def _culprit(core: Core) -> WaitState | None:
    """Return the wait that explains the others: in a cycle, else one that nothing can end, else the oldest."""
    waits = core.waits.waits
    nodes = {tuple(node) for cycle in core.waits.cycles for node in cycle}
    cyclic = [wait for wait in waits if (wait.core, wait.engine) in nodes]
    lost = [wait for wait in waits if wait.pending == 0]
    return min(cyclic or lost or waits, key=lambda wait: (wait.since_ps, wait.core, wait.engine), default=None)


def _line(source: Source | None) -> str:
    """Return file and line; of the file the last component, since ranks may have it in different places."""
    if source is None or not source.file:
        return ""
    name = source.file.rpartition("/")[2]
    return name if source.line is None else f"{name}:{source.line}"


def _from_log(rank: Rank, parsed: FileName, entry: store.Entry) -> None:
    story = read_story(store.read(entry.path, _LOG_BYTES).decode("utf-8", "replace").splitlines())
    first = story.first
    if story.first_error is not None:
        rank.when, rank.when_from = story.first_error.timestamp(), "log"
    hardware = [event.fact.name for event in story.events if event.fact.family == "hardware"]
    rank.hardware = hardware[0] if hardware else rank.hardware
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
        for event in story.events:
            if event.fact.family == "status" and event.fact.fatal:
                _set_status(rank, event.fact.code)
                break


def _set_status(rank: Rank, text: str) -> None:
    status = status_of(text) if text else None
    if status is not None and status in STATUS_FACTS and (status or rank.status is None):
        rank.status, rank.status_name = int(status), status.name
