"""Findings and checked runs as typed rows."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast

from formats.named_tuple import NamedTuple
from neurontools.running.rows import FaultRow, HangRow, SourceRow, fault_row, hang_row, source_row

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.checks.finding import Site
    from emulator.diagnosis.graph import Hang
    from neurontools.program.execution import Execution

__all__ = ["CheckResult", "FindingRow", "RunRow", "SiteRow", "Summary", "code_of", "context_of", "finding_row",
           "run_row", "summary_of"]  # fmt: skip

Space = Literal["SBUF", "PSUM", "HBM"]
Tool = Literal["memcheck", "initcheck", "racecheck", "synccheck", "nancheck", "lint"]
Severity = Literal["note", "warning", "error"]
_AROUND = 1  # lines shown before and behind that of a finding


class CodeLine(NamedTuple):
    """One line of a source file."""

    line: int
    text: str


class SiteRow(NamedTuple):
    """One side of a finding; what does not apply is None."""

    core: int
    engine: Annotated[str, "engine, or DMA queue of a transfer"]
    owner: Annotated[str, "engine whose stream holds pc"]
    pc: int | None
    instruction: str | None
    source: SourceRow | None
    code: Annotated[str | None, "the source line, where the file is at hand"]
    context: Annotated[tuple[CodeLine, ...], "the lines around it"]
    access: str | None
    operand: str | None
    time_ps: int | None
    clock: Annotated[int | None, "number of the access on its engine or queue"]
    knows: Annotated[int | None, "how far it knows the other side to be"]


class RangeRow(NamedTuple):
    """The bytes that a finding is about."""

    space: Space
    core: int
    partition: int
    partitions: int
    byte: Annotated[int, "in the partition; in HBM the device address"]
    bytes: int
    strided: bool


@dataclass(frozen=True)
class FindingRow:
    """One finding."""

    id: Annotated[str, "the same from run to run"]
    tool: Tool
    kind: str
    severity: Severity
    message: str
    count: int
    site: SiteRow
    others: Annotated[tuple[SiteRow, ...], "the other sides"]
    range: RangeRow | None
    tensor: str | None
    hint: str | None
    details: dict[str, object]
    reproduce: Annotated[str | None, "the command that shows it again"]


class GraphRow(NamedTuple):
    """The wait-for graph of a hang."""

    reason: str
    time_ps: int
    nodes: tuple[dict[str, object], ...]
    edges: tuple[dict[str, object], ...]
    cycles: tuple[tuple[str, ...], ...]


class RunRow(NamedTuple):
    """One execution under checks."""

    name: str
    time_ps: int
    instructions: int
    fault: FaultRow | None
    hang: HangRow | None
    graph: Annotated[GraphRow | None, "wait-for graph of a hang"]
    rank: Annotated[int | None, "with --ranks"]


class SeverityCounts(NamedTuple):
    """How many findings there are of each severity."""

    error: int
    warning: int
    note: int


class Summary(NamedTuple):
    """How many findings there are."""

    severities: SeverityCounts
    kinds: Annotated[dict[str, int], "findings by tool:kind"]


class CheckResult(NamedTuple):
    """What the checks found in a file."""

    tools: tuple[str, ...]
    runs: Annotated[tuple[RunRow, ...], "the file, or each kernel launched"]
    summary: Summary
    findings: tuple[FindingRow, ...]
    suppressed: Annotated[tuple[str, ...], "ids"]


def finding_row(finding: Finding) -> FindingRow:
    """Return a finding as a row."""
    region = finding.region
    place = None if region is None else RangeRow(
        cast(Space, region.space), region.core, region.first, region.partitions, region.byte, region.nbytes,
        region.pattern is not None)  # fmt: skip
    return FindingRow(
        finding.id, cast(Tool, finding.tool), finding.kind, cast(Severity, finding.severity), finding.message,
        finding.count,
        _site(finding.site), tuple(map(_site, finding.others)), place, finding.tensor or None, finding.hint or None,
        finding.details, finding.reproduce or None,
    )  # fmt: skip


def _site(site: Site) -> SiteRow:
    return SiteRow(
        site.core, site.engine, site.owner, None if site.pc < 0 else site.pc, site.text or None,
        source_row(site.source), code_of(site) or None, context_of(site), site.access or None, site.operand or None,
        None if site.time_ps < 0 else site.time_ps, None if site.clock < 0 else site.clock,
        None if site.seen < 0 else site.seen,
    )  # fmt: skip


def code_of(site: Site) -> str:
    """Return the source line of a site where the file is at hand."""
    place = source_row(site.source)
    return "" if place is None or not place.line else linecache.getline(place.file, place.line).strip()


def context_of(site: Site) -> tuple[CodeLine, ...]:
    """Return the source lines around that of a site; none where the file is not at hand."""
    place = source_row(site.source)
    if place is None or not place.line or not linecache.getline(place.file, place.line):
        return ()
    numbers = range(max(place.line - _AROUND, 1), place.line + _AROUND + 1)
    return tuple(CodeLine(n, text.rstrip()) for n in numbers if (text := linecache.getline(place.file, n)))


def run_row(made: Execution, rank: int | None = None) -> RunRow:
    """Return an execution as a row."""
    result = made.result
    fault = None if result.fault is None else fault_row(result.fault)
    hang, graph = (None, None) if result.hang is None else (hang_row(result.hang), _graph(result.hang))
    return RunRow(made.name, result.time_ps, result.stats.instructions, fault, hang, graph, rank)


def _graph(hang: Hang) -> GraphRow:
    data = hang.graph()
    return GraphRow(*(data[name] for name in GraphRow._fields))


def summary_of(findings: Iterable[Finding]) -> Summary:
    """Return how many findings there are, by severity and by tool and kind."""
    found = list(findings)
    counts = Counter(finding.severity for finding in found)
    kinds = Counter(f"{finding.tool}:{finding.kind}" for finding in found)
    return Summary(SeverityCounts(counts["error"], counts["warning"], counts["note"]), dict(sorted(kinds.items())))
