"""The results of `neurontools run --ranks`: a row for each rank, one for each collective, and why ranks wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.running.results import ProgramRun, program_run

if TYPE_CHECKING:
    from emulator.machine.ranks.explain import RankHang
    from emulator.runtime.ranks import Met, RankedResult
    from neurontools.program.execution import Execution

__all__ = [
    "CollectiveRow",
    "RankHangRow",
    "RankRow",
    "RankedRun",
    "RankedScriptRun",
    "RootRow",
    "WaitingRow",
    "ranked_run",
]


class RankRow(NamedTuple):
    """What came of one rank, and where it ran: node, chip of the node, logical core of the chip."""

    rank: int
    node: int
    chip: int
    core: int
    run: ProgramRun
    launched: Annotated[bool, "false where it runs no program: its script ended before, or launched none"]


class CollectiveRow(NamedTuple):
    """A collective that was called."""

    name: str
    group: tuple[int, ...]
    core: Annotated[int, "physical core of each rank"]
    stream: int
    algorithm: Annotated[str, "empty where nobody could begin"]
    source: Annotated[str, "file:line of the first rank's call, empty where it is not known"]
    begun_ps: Annotated[int, "when the first rank called it"]
    last_ps: Annotated[int, "when the last one that came did"]
    ended_ps: Annotated[int | None, "when the last rank was through, null where it does not end"]
    came: Annotated[int, "how many of its ranks called it, or something else in its place"]


class WaitingRow(NamedTuple):
    """A rank that waits in a collective."""

    rank: int
    what: str
    group: tuple[int, ...]
    stream: int
    engine: str
    pc: int
    source: Annotated[str, "file:line, empty where it is not known"]
    waits_for: tuple[int, ...]


class RootRow(NamedTuple):
    """One reason why ranks wait, and what to do about it."""

    cause: str
    sentence: str
    ranks: Annotated[tuple[int, ...], "at the root of it"]
    cycle: tuple[int, ...]
    hint: str


class RankHangRow(NamedTuple):
    """Why ranks wait for each other."""

    cause: str
    sentence: str
    ranks: Annotated[tuple[int, ...], "at the root of it"]
    cycle: tuple[int, ...]
    hint: str
    status: int
    waits: tuple[WaitingRow, ...]
    more: Annotated[tuple[RootRow, ...], "what else there is, for which other ranks wait"]


class RankedRun(NamedTuple):
    """What came of one execution on several ranks."""

    instance: str
    nodes: int
    time_ps: Annotated[int, "when the last rank ended, in picoseconds"]
    ranks: tuple[RankRow, ...]
    collectives: tuple[CollectiveRow, ...]
    waiting: RankHangRow | None
    histories: Annotated[int, "of --time-only: devices emulated for all ranks; 0 where each had its own"]


class RankedScriptRun(NamedTuple):
    """What came of a script that ran on several ranks: an exit status for each, and its launches in order."""

    statuses: tuple[int, ...]
    launches: tuple[RankedRun, ...]


def ranked_run(found: RankedResult, made: list[Execution]) -> RankedRun:
    """Return what came of an execution on several ranks."""
    rows = tuple(RankRow(rank, *place, program_run(one), rank not in found.away) for rank, (place, one)
                 in enumerate(zip(found.places, made, strict=True)))  # fmt: skip
    met = tuple(_collective(one) for one in found.collectives)
    return RankedRun(found.instance, found.nodes, found.time_ps, rows, met,
                     None if found.hang is None else _waiting(found.hang), found.histories)  # fmt: skip


def _collective(met: Met) -> CollectiveRow:
    whole = len(met.ended_ps) == len(met.group)
    begun = met.begun_ps.values()
    return CollectiveRow(met.name, met.group, met.core, met.stream, met.algorithm, met.source, min(begun), max(begun),
                         max(met.ended_ps.values()) if whole else None, len(begun))  # fmt: skip


def _waiting(hang: RankHang) -> RankHangRow:
    waits = tuple(
        WaitingRow(one.rank, one.what, one.group, one.stream, one.engine, one.pc, one.source, one.waits_for)
        for one in hang.waits
    )
    first, *more = (RootRow(one.cause, one.sentence, one.ranks, one.cycle, one.hint) for one in hang.roots)
    return RankHangRow(first.cause, first.sentence, first.ranks, first.cycle, first.hint, int(hang.status), waits,
                       tuple(more))  # fmt: skip
