"""A compiled graph that ran: what each operation cost, which casts cost what accuracy, where the time goes."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.running.rows import SourceRow

if TYPE_CHECKING:
    from emulator.timeline import Owner
    from formats.neff.operations import Operations
    from neurontools.debugger import Session
    from neurontools.profile.rows import Timeline

__all__ = ["CastCost", "CompileReport", "CriticalShare", "OperationCost", "StoredValue", "cast_costs", "report_of"]


class OperationCost(NamedTuple):
    """One operation of the graph: its instructions, what they moved, and how long they took."""

    name: str
    opcode: str
    type: str
    source: SourceRow
    words: Annotated[dict[str, int], "instructions that ran, by engine; loops count every turn"]
    transfers: int
    bytes: Annotated[int, "that its transfers wrote"]
    busy_ns: Annotated[float, "sum over engines"]
    begin_ns: float
    end_ns: float
    critical_ns: Annotated[float, "on the critical path"]


class CastCost(NamedTuple):
    """An operation whose operands --auto-cast rounded, and what that changed of its result."""

    name: str
    opcode: str
    source: SourceRow
    target: Annotated[str, "the type of the operands"]
    max_abs: Annotated[float | None, "largest difference to the result from operands that are not rounded"]
    relative: Annotated[float | None, "the same, as a share of the largest element"]


class StoredValue(NamedTuple):
    """A value between operations that went through device memory: SBUF held it no longer, or not at all."""

    name: str
    tensor: str
    bytes: int
    source: SourceRow


class CriticalShare(NamedTuple):
    """The part of the critical path that an operation has; without a name, what belongs to none."""

    name: str | None
    ns: float
    percent: float
    kinds: Annotated[dict[str, float], "nanoseconds by kind of link"]


class CompileReport(NamedTuple):
    """What a compiled graph costs."""

    program: str
    target: str
    total_ns: float
    operations: tuple[OperationCost, ...]
    without: Annotated[int, "operations that became no instructions"]
    casts: tuple[CastCost, ...]
    stored: Annotated[tuple[StoredValue, ...], "values that went through device memory, the largest first"]
    stored_bytes: int
    sbuf_bytes: Annotated[int, "highest byte of a partition that tiles use"]
    psum_bytes: Annotated[int, "the same of PSUM"]
    critical: tuple[CriticalShare, ...]


def report_of(timeline: Timeline, name: str, casts: tuple[CastCost, ...] = ()) -> CompileReport:
    """Return the report of a run; NotFoundError for a program without a graph.

    Words know their operation's name only: one that is called from several places has all of them at the first.
    """
    device = timeline.device
    loaded = device.cores[0].loaded
    graph = None if loaded is None else loaded.subgraph
    operations = None if graph is None else graph.operations
    if graph is None or operations is None:
        raise NotFoundError(f"{name} carries no graph; `neurontools compile model` puts it in")
    costs = _costs(timeline)
    rows = []
    for operation in operations.rows:
        found = costs.pop(operation.name, None)
        if found is not None:
            kind = ", ".join(one.text for one in operation.results)
            source = SourceRow(operation.file, operation.line, operation.name)
            rows.append(OperationCost(operation.key, operation.opcode, kind, source, *found.values()))
    variables = graph.variables
    stored = _stored(operations, {name for name, one in variables.items() if one.kind in ("virtual", "tmp-buf")})
    tiles = _tiles(timeline)
    return CompileReport(
        name, graph.neff.target.name, timeline.end_ps / 1000, tuple(rows), len(operations.rows) - len(rows), casts,
        stored, sum(one.bytes for one in stored), tiles["SBUF"], tiles["PSUM"], _critical(timeline),
    )  # fmt: skip


def _tiles(timeline: Timeline) -> dict[str, int]:
    """Return the byte behind the highest one that tiles use, by memory."""
    found = {"SBUF": 0, "PSUM": 0}
    for tile in timeline.device.cores[0].tiles:
        found[tile.space] = max(found[tile.space], tile.offset + tile.partition_bytes)
    return found


class _Cost:
    __slots__ = ("begin", "busy", "bytes", "critical", "end", "transfers", "words")

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.transfers = self.bytes = self.busy = self.critical = self.end = 0
        self.begin = 1 << 62

    def span(self, begin: int, end: int) -> None:
        """Note a time that it took part in."""
        self.begin, self.end = min(self.begin, begin), max(self.end, end)

    def values(self) -> tuple[dict[str, int], int, int, float, float, float, float]:
        """Return the numbers in the order of `OperationCost`."""
        return (dict(self.words), self.transfers, self.bytes, self.busy / 1000, self.begin / 1000, self.end / 1000,
                self.critical / 1000)  # fmt: skip


def _operation(timeline: Timeline, owner: Owner, row: int) -> str | None:
    source = timeline.place(owner, row)
    return None if source is None else source.operation


def _costs(timeline: Timeline) -> dict[str, _Cost]:
    costs: dict[str, _Cost] = defaultdict(_Cost)
    for track in timeline.engines:
        for row in range(len(track)):
            name = _operation(timeline, track.owner, row)
            if name is not None:
                cost = costs[name]
                cost.words[track.owner.name] += 1
                cost.busy += min(track.free[row], timeline.end_ps) - track.start[row]
                cost.span(track.start[row], track.completed[row])
    for queue in timeline.queues:
        for row in range(len(queue)):
            name = _operation(timeline, queue.owner, row)
            if name is not None:
                cost = costs[name]
                cost.transfers += 1
                cost.bytes += queue.nbytes[row]
                cost.span(queue.start[row], queue.completed[row])
    for link in timeline.path.links:
        name = _operation(timeline, link.owner, link.row)
        if name is not None and name in costs:
            costs[name].critical += link.duration_ps
    return dict(costs)


def _critical(timeline: Timeline) -> tuple[CriticalShare, ...]:
    found: dict[str | None, Counter[str]] = defaultdict(Counter)
    for link in timeline.path.links:
        found[_operation(timeline, link.owner, link.row)][link.kind] += link.duration_ps
    shares = [
        CriticalShare(name, sum(kinds.values()) / 1000,
                      round(100 * sum(kinds.values()) / timeline.end_ps, 2) if timeline.end_ps else 0.0,
                      {kind: ps / 1000 for kind, ps in kinds.most_common()})
        for name, kinds in found.items()
    ]  # fmt: skip
    return tuple(sorted(shares, key=lambda one: -one.ns))


def _stored(operations: Operations, private: set[str]) -> tuple[StoredValue, ...]:
    """Return the values in device memory that are neither input nor output nor a view of another one."""
    found: dict[str, StoredValue] = {}
    for row in operations.rows:
        for held in row.results:
            if held.tensor in private and held.tensor not in found and not held.by:
                source = SourceRow(row.file, row.line, row.name)
                found[held.tensor] = StoredValue(row.key, held.tensor, held.nbytes, source)
    return tuple(sorted(found.values(), key=lambda one: -one.bytes))


def cast_costs(session: Session) -> tuple[CastCost, ...]:
    """Run a compiled graph beside its reference and return what its casts changed; none where it has none."""
    operations = session.neff.subgraphs[0].operations
    if operations is None or not any(row.cast for row in operations.rows):
        return ()
    from neurontools.divergence.graph_run import cast_errors  # deferred: start-up

    errors = cast_errors(session)
    return tuple(
        CastCost(row.key, row.opcode, SourceRow(row.file, row.line, row.name), row.cast,
                 *errors.get(row.key, (None, None)))
        for row in operations.rows if row.cast
    )  # fmt: skip


def short_file(row: SourceRow) -> str:
    """Return the last part of a file's path, and the line."""
    return f"{PurePath(row.file).name}:{row.line}"
