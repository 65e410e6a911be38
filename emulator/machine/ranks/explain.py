"""Say why ranks wait for each other: what each asked for, who did not come, where a cycle closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from emulator.diagnosis.graph import Hang
from emulator.dma.collectives import Caller
from emulator.faults import Fault, Place, source_line
from emulator.machine.collectives.engine import Engine
from emulator.machine.collectives.explain import explain as explain_job
from emulator.machine.ranks.communicators import Communicators, Meeting, Signature
from formats.nrt.status import NrtStatus

__all__ = ["CAUSES", "RankHang", "RankWait", "Ranked", "explain", "waits_of"]

CAUSES = {
    "mismatch": "ranks of one group ask for different collectives at the same place in their order",
    "cycle": "ranks wait for each other: they call collectives of different groups in different orders",
    "group": "a rank calls the collective over another group than its partners",
    "missing": "a rank ended without calling the collective",
    "absent": "the group names a rank that does not run",
    "fault": "a rank stopped with a fault before it called the collective",
    "local": "a rank waits for something of its own before it calls the collective",
    "transfer": "all ranks came, and a transfer between them did not",
}
"""Why ranks wait, by cause."""


class RankWait(NamedTuple):
    """One rank that waits in a collective: what it asked for, where in the program, and for whom it waits."""

    rank: int
    what: str
    group: tuple[int, ...]
    stream: int
    number: int
    engine: str
    pc: int
    source: str
    since_ps: int
    waits_for: tuple[int, ...]

    @property
    def text(self) -> str:
        """Return it as one line."""
        at = f" at {self.source}" if self.source else ""
        head = f"rank {self.rank}: {self.engine} pc {self.pc}{at}: {self.what}, number {self.number + 1} of "
        return f"{head}{_ranks(self.group)} on stream {self.stream}; waits for {_ranks(self.waits_for)}"


class RankHang(NamedTuple):
    """Why ranks do not end: the cause, a sentence, who is at its root, who waits, the cycle where there is one."""

    cause: str
    sentence: str
    ranks: tuple[int, ...]
    waits: tuple[RankWait, ...]
    cycle: tuple[int, ...]
    status: NrtStatus
    time_ps: int

    def text(self, most: int = 8) -> str:
        """Return the whole report; of many waiting ranks the first."""
        lines = [self.sentence, *(f"  {wait.text}" for wait in self.waits[:most])]
        if len(self.waits) > most:
            lines.append(f"  and {len(self.waits) - most} more ranks wait")
        if self.cycle:
            lines.append("  cycle: " + " waits for ".join(f"rank {rank}" for rank in (*self.cycle, self.cycle[0])))
        return "\n".join(lines)


class RankEnd(Protocol):
    """A rank that stands still, as far as it is asked here."""

    @property
    def rank(self) -> int: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def fault(self) -> Fault | None: ...
    @property
    def hang(self) -> Hang | None: ...


class Ranked(Protocol):
    """The machine, as far as it is asked here."""

    @property
    def devices(self) -> Sequence[RankEnd]: ...
    def place_of(self, rank: int, caller: Caller) -> Place: ...
    @property
    def communicators(self) -> Communicators: ...
    @property
    def engine(self) -> Engine: ...


def explain(machine: Ranked) -> RankHang | None:
    """Return why ranks wait for each other where nothing moves any more, None where none does."""
    waits = waits_of(machine)
    if not waits:
        return None
    time_ps = max(device.now_ps for device in machine.devices)
    asked = {meeting.key: meeting for meeting in machine.communicators.open}
    found = None
    for wait in waits:
        found = _root(machine, wait, waits)
        if found is not None:
            break
    cause, sentence, ranks, cycle = found or _moving(machine, list(asked.values()))
    status = NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES
    return RankHang(cause, sentence, ranks, tuple(waits), cycle, status, time_ps)


def waits_of(machine: Ranked) -> list[RankWait]:
    """Return the ranks that are in a collective which has not ended; nobody is waited for where all have come."""
    found = []
    for meeting in machine.communicators.open:
        for rank in sorted(meeting.begun):
            if rank in meeting.ended:
                continue
            stranger = meeting.strangers.get(rank)
            who = tuple(one for one in meeting.key.ranks if one != rank and not _met(meeting, rank, one))
            transfer = meeting.transfers[rank]
            place = machine.place_of(rank, transfer)
            found.append(RankWait(
                rank, (stranger or meeting.signature).text, meeting.key.ranks, meeting.key.stream, meeting.key.number,
                place.engine, place.pc, source_line(place.source), meeting.begun[rank], who,
            ))  # fmt: skip
    return sorted(found, key=lambda wait: (wait.rank, wait.since_ps))


def _met(meeting: Meeting, rank: int, other: int) -> bool:
    """Return whether two ranks of a meeting are there and ask for the same."""
    one, two = _asked(meeting, rank), _asked(meeting, other)
    return two is not None and one == two


def _asked(meeting: Meeting, rank: int) -> Signature | None:
    if rank not in meeting.begun:
        return None
    return meeting.strangers.get(rank, meeting.signature)


Found = tuple[str, str, tuple[int, ...], tuple[int, ...]]


def _root(machine: Ranked, start: RankWait, waits: list[RankWait]) -> Found | None:
    """Follow who waits for whom from one waiting rank to where it begins; None where nobody is missing."""
    of = {wait.rank: wait for wait in reversed(waits)}
    path: list[RankWait] = []
    here = start
    while here.waits_for:
        if here.rank in [wait.rank for wait in path]:
            cycle = path[[wait.rank for wait in path].index(here.rank) :]
            return _cycle(cycle)
        path.append(here)
        other = here.waits_for[0]
        if other >= len(machine.devices):
            return ("absent", f"rank {here.rank} waits in {here.what} for rank {other}, which does not run: there are "
                    f"{len(machine.devices)} ranks", (other,), ())  # fmt: skip
        there = of.get(other)
        if there is None:
            return _alone(machine.devices[other], here)
        if there.group == here.group and (there.stream, there.number) == (here.stream, here.number):
            return ("mismatch", f"collective {here.number + 1} of {_ranks(here.group)} differs: rank {here.rank} asks "
                    f"for {here.what}{_at(here)}, rank {other} for {there.what}{_at(there)}",
                    (here.rank, other), ())  # fmt: skip
        if _wrong_group(here, there):
            return ("group", f"rank {other} calls {there.what} over {_ranks(there.group)}{_at(there)}, its partner "
                    f"rank {here.rank} over {_ranks(here.group)}{_at(here)}", (other, here.rank), ())  # fmt: skip
        here = there
    return None


def _wrong_group(one: RankWait, two: RankWait) -> bool:
    """Return whether two ranks wait for each other in calls that are alike but for their groups.

    They stand at one line, or one group is a part of the other.
    """
    if one.rank not in two.waits_for or (one.what, one.number) != (two.what, two.number):
        return False
    mine, other = set(one.group), set(two.group)
    return mine != other and (one.source == two.source or mine < other or other < mine)


def _cycle(path: list[RankWait]) -> Found:
    ranks = tuple(wait.rank for wait in path)
    parts = [f"rank {wait.rank} in {wait.what} of {_ranks(wait.group)}{_at(wait)}" for wait in path]
    return "cycle", f"ranks wait for each other: {'; '.join(parts)}", ranks, ranks


def _alone(device: RankEnd, wait: RankWait) -> Found:
    """Return why a rank that others wait for is in no collective itself."""
    rank, head = device.rank, f"rank {wait.rank} waits in {wait.what}{_at(wait)} for rank {device.rank}, which"
    if isinstance(device.fault, Fault):
        return "fault", f"{head} stopped: {device.fault.message} ({device.fault.where})", (rank,), ()
    if device.hang is None:
        return "missing", f"{head} ended without calling it", (rank,), ()
    first = device.hang.waits[0] if device.hang.waits else None
    where = "" if first is None else f": nc{first.core} {first.engine} pc {first.pc}"
    if first is not None and (line := source_line(first.source)):
        where += f" ({line})"
    return "local", f"{head} does not get there{where}", (rank,), ()


def _moving(machine: Ranked, meetings: list[Meeting]) -> Found:
    """Return why a collective to which all came does not end."""
    for meeting in meetings:
        job = meeting.job
        hang = None if job is None else explain_job(machine.engine, job)
        if hang is not None:
            return (
                "transfer",
                f"{meeting.signature.text} of {_ranks(meeting.key.ranks)}: {hang.sentence}",
                hang.ranks,
                (),
            )
    return "transfer", CAUSES["transfer"], (), ()


def _at(wait: RankWait) -> str:
    return f" ({wait.source})" if wait.source else f" (pc {wait.pc} of {wait.engine})"


def _ranks(ranks: tuple[int, ...]) -> str:
    if not ranks:
        return "nobody"
    text = ", ".join(map(str, ranks[:6])) + (f" and {len(ranks) - 6} more" if len(ranks) > 6 else "")
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
