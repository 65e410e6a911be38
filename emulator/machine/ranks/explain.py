"""Say why ranks wait for each other: what each asked for, who did not come, where a cycle closes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from emulator.diagnosis.causes import Reason
from emulator.diagnosis.graph import Hang
from emulator.dma.collectives import Caller
from emulator.faults import Fault, Place, source_line
from emulator.machine.collectives.engine import Engine
from emulator.machine.collectives.explain import explain as explain_job
from emulator.machine.ranks.communicators import Communicators, Meeting, Signature
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["CAUSES", "HINTS", "RankHang", "RankWait", "Ranked", "Root", "explain", "ranks_text", "waits_of"]

_ENDED = (Reason.INSTRUCTION_LIMIT, Reason.TIME_LIMIT, Reason.HOST_TIME_LIMIT, Reason.INTERRUPTED)

CAUSES = {
    "mismatch": "ranks of one group ask for different collectives at the same place in their order",
    "cycle": "ranks wait for each other: they call collectives of different groups in different orders",
    "group": "a rank calls the collective over another group than its partners",
    "missing": "a rank ended without calling the collective",
    "absent": "the group names a rank that does not run",
    "fault": "a rank stopped with a fault before the collective was through",
    "local": "a rank waits for something of its own before it calls the collective",
    "transfer": "all ranks came, and a transfer between them did not",
}
"""Why ranks wait, by cause."""

HINTS = {
    "mismatch": "let every rank of the group call the same collectives in the same order, of the same size and type",
    "cycle": "call the collectives of all groups in the same order on every rank",
    "group": "give all ranks of the collective the same groups",
    "missing": "call it on every rank of its group, or leave that rank out of the group",
    "absent": "run as many ranks as the groups name, or make groups of the ranks that run",
    "fault": "mend the fault first: what the other ranks wait for follows from it",
    "local": "look at what that rank waits for: the others only wait for it",
    "transfer": "look at the rank and the link of that transfer",
}
"""What to do about it, by cause."""


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
        whom = f"waits for {ranks_text(self.waits_for)}" if self.waits_for else "all have come"
        return f"{head}{ranks_text(self.group)} on stream {self.stream}; {whom}"


class Root(NamedTuple):
    """Why ranks wait: the cause, a sentence, who is at its root, the cycle where there is one.

    `seen_from` are the waiting ranks whose calls the sentence names.
    """

    cause: str
    sentence: str
    ranks: tuple[int, ...]
    cycle: tuple[int, ...] = ()
    seen_from: tuple[int, ...] = ()

    @property
    def hint(self) -> str:
        """Return what to do about it."""
        return HINTS[self.cause]

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the cycle as lines, none where there is none."""
        closed = (*self.cycle, *self.cycle[:1])
        return ("cycle: " + " waits for ".join(f"rank {rank}" for rank in closed),) if closed else ()


class RankHang(NamedTuple):
    """Why ranks do not end: the first of the roots that waiting ranks lead to, all of them, and who waits."""

    cause: str
    sentence: str
    ranks: tuple[int, ...]
    waits: tuple[RankWait, ...]
    cycle: tuple[int, ...]
    status: NrtStatus
    time_ps: int
    roots: tuple[Root, ...] = ()

    @property
    def more(self) -> tuple[Root, ...]:
        """Return what other ranks wait for besides."""
        return self.roots[1:]

    def text(self, most: int = 8) -> str:
        """Return the whole report; of many waiting ranks, or causes, the first."""
        lines = [self.sentence, *(f"  {line}" for line in self.roots[0].lines)]
        for root in self.more[:most]:
            lines += [f"and {root.sentence}", *(f"  {line}" for line in root.lines)]
        if len(self.more) > most:
            lines.append(f"and {len(self.more) - most} more reasons")
        lines += [f"  {wait.text}" for wait in self.waits[:most]]
        if len(self.waits) > most:
            lines.append(f"  and {len(self.waits) - most} more ranks wait")
        return "\n".join(lines)


class RankEnd(Protocol):
    """A rank that stands still, as far as it is asked here; `away` tells that it runs no program."""

    @property
    def rank(self) -> int: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def fault(self) -> Fault | None: ...
    @property
    def hang(self) -> Hang | None: ...
    @property
    def away(self) -> bool: ...


class Ranked(Protocol):
    """The machine, as far as it is asked here."""

    @property
    def devices(self) -> Sequence[RankEnd]: ...
    def place_of(self, rank: int, caller: Caller) -> Place: ...
    @property
    def communicators(self) -> Communicators: ...
    @property
    def engine(self) -> Engine: ...


class _Waiting(NamedTuple):
    """A rank that waits, and where: `there` are the ranks that came for this meeting and go on."""

    wait: RankWait
    meeting: Meeting
    there: frozenset[int]


def explain(machine: Ranked) -> RankHang | None:
    """Return why ranks wait for each other where nothing moves any more, None where none does.

    Where a limit or a person ended the run, nothing says that they would not have gone on.
    """
    waiting = _waiting(machine)
    if not waiting or any(device.hang is not None and device.hang.reason in _ENDED for device in machine.devices):
        return None
    time_ps = max(device.now_ps for device in machine.devices)
    roots = _roots(machine, waiting) or [_moving(machine, machine.communicators.open)]
    waits, first, status = tuple(each.wait for each in waiting), roots[0], NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES
    return RankHang(first.cause, first.sentence, first.ranks, waits, first.cycle, status, time_ps, tuple(roots))


def waits_of(machine: Ranked) -> list[RankWait]:
    """Return the ranks that are in a collective which has not ended; nobody is waited for where all have come.

    A rank that has faulted waits no more, whatever it called.
    """
    return [each.wait for each in _waiting(machine)]


def _waiting(machine: Ranked) -> list[_Waiting]:
    found = []
    stopped = {device.rank for device in machine.devices if device.fault is not None}
    for meeting in machine.communicators.open:
        asked = {rank: meeting.strangers.get(rank, meeting.signature) for rank in meeting.begun if rank not in stopped}
        names, there = _names(asked.values()), frozenset(asked)
        lacking = {each: tuple(rank for rank in meeting.key.ranks if asked.get(rank) != each) for each in names}
        for rank, signature in asked.items():
            if rank in meeting.ended:
                continue
            transfer = meeting.transfers[rank]
            place = machine.place_of(rank, transfer)
            wait = RankWait(
                rank, names[signature], meeting.key.ranks, meeting.key.stream, meeting.key.number, place.engine,
                place.pc, source_line(place.source), meeting.begun[rank], lacking[signature],
            )  # fmt: skip
            found.append(_Waiting(wait, meeting, there))
    return sorted(found, key=lambda each: (each.wait.rank, each.wait.since_ps))


def _names(asked: Iterable[Signature]) -> dict[Signature, str]:
    """Return what each call of a meeting is called: in full where two would have one name."""
    each = dict.fromkeys(asked)
    alike = len({signature.text for signature in each}) < len(each)
    return {signature: signature.full if alike else signature.text for signature in each}


Keyed = tuple[object, "Root"]  # a root, and what makes it the same for other ranks


def _roots(machine: Ranked, waiting: list[_Waiting]) -> list[Root]:
    """Follow who waits for whom from every waiting rank to where it begins; nothing where nobody is missing.

    Each wait is looked at once, and each list of partners, which the ranks of a meeting share: so a thousand ranks that
    wait for a half of them take no longer than their list.
    """
    of = {each.wait.rank: each for each in reversed(waiting)}
    found: dict[object, Root] = {}
    seen: set[int] = set()
    shared: dict[int, tuple[list[Keyed], list[_Waiting]]] = {}
    for start in waiting:
        path: list[_Waiting] = []
        here: _Waiting | None = start
        while here is not None and here.wait.waits_for and id(here) not in seen:
            seen.add(id(here))
            path.append(here)
            partners = id(here.wait.waits_for)
            if partners not in shared:
                shared[partners] = _ends(machine, here, of, waiting)
            roots, elsewhere = shared[partners]
            roots = [*roots, *_other_groups(here, elsewhere)]
            for key, root in roots:
                found.setdefault(key, root)
            here = None if roots else elsewhere[0]
            if here is not None and any(here is each for each in path):
                at = next(number for number, each in enumerate(path) if each is here)
                cycle = [each.wait for each in path[at:]]
                found.setdefault(("cycle", frozenset(wait.rank for wait in cycle)), _cycle(cycle))
    return list(found.values())


def _ends(
    machine: Ranked, here: _Waiting, of: dict[int, _Waiting], waiting: list[_Waiting]
) -> tuple[list[Keyed], list[_Waiting]]:
    """Return the roots that one waiting rank stands before, and where the others wait that it waits for."""
    wait, meeting, present = here
    ends: dict[tuple[str, int], list[int]] = {}
    elsewhere: list[_Waiting] = []
    differ = False
    for rank in wait.waits_for:
        there = of.get(rank)
        if rank in present:
            differ = True  # it came, for something else: said once for all of this meeting
        elif there is not None:
            elsewhere.append(there)
        else:
            cause = _alone(machine, rank)
            # Faults, and what a rank waits for of its own, are each their own.
            ends.setdefault((cause, rank if cause in ("fault", "local") else -1), []).append(rank)
    found: list[Keyed] = [((cause, *ranks), _end(machine, wait, cause, tuple(ranks)))
                          for (cause, _), ranks in ends.items()]  # fmt: skip
    if differ:
        found.append((id(meeting), _mismatch([each.wait for each in waiting if each.meeting is meeting])))
    return found, elsewhere


def _other_groups(here: _Waiting, elsewhere: list[_Waiting]) -> list[Keyed]:
    """Return the root where a partner makes the same call over another group: one pair says it for both groups."""
    for there in elsewhere:
        if _wrong_group(here.wait, there.wait):
            return [(frozenset((id(here.meeting), id(there.meeting))), _group(there.wait, here.wait))]
    return []


def _wrong_group(one: RankWait, two: RankWait) -> bool:
    """Return whether two ranks wait for each other in one call of the program, over different groups."""
    if one.rank not in two.waits_for or (one.what, one.number) != (two.what, two.number):
        return False
    return one.source == two.source and set(one.group) != set(two.group)


def _group(one: RankWait, two: RankWait) -> Root:
    pair = (one.rank, two.rank)
    sentence = (f"rank {one.rank} calls {one.what} over {ranks_text(one.group)}{_at(one)}, its partner "
                f"rank {two.rank} over {ranks_text(two.group)}{_at(two)}")  # fmt: skip
    return Root("group", sentence, pair, pair, pair)


def _mismatch(waits: list[RankWait]) -> Root:
    """Return how the ranks of one meeting differ."""
    asked: dict[tuple[str, str], list[RankWait]] = {}
    for wait in waits:
        asked.setdefault((wait.what, _at(wait)), []).append(wait)
    parts = [f"{ranks_text([wait.rank for wait in some])} ask{'s' if len(some) == 1 else ''} for {what}{at}"
             for (what, at), some in asked.items()]  # fmt: skip
    ranks = tuple(sorted({wait.what: wait.rank for wait in reversed(waits)}.values()))  # the first of each
    number, group = waits[0].number + 1, ranks_text(waits[0].group)
    return Root("mismatch", f"collective {number} of {group} differs: {', '.join(parts)}", ranks, ranks, ranks)


def _cycle(path: list[RankWait]) -> Root:
    ranks = tuple(wait.rank for wait in path)
    parts = [f"rank {wait.rank} in {wait.what} of {ranks_text(wait.group)}{_at(wait)}" for wait in path]
    return Root("cycle", f"ranks wait for each other: {'; '.join(parts)}", ranks, ranks, ranks)


def _alone(machine: Ranked, rank: int) -> str:
    """Return why a rank that others wait for is in no collective itself."""
    if rank >= len(machine.devices):
        return "absent"
    device = machine.devices[rank]
    if isinstance(device.fault, Fault):
        return "fault"
    return "missing" if device.hang is None else "local"


def _end(machine: Ranked, wait: RankWait, cause: str, ranks: tuple[int, ...]) -> Root:
    """Return the root that ranks are which are in no collective."""
    head = f"rank {wait.rank} waits in {wait.what}{_at(wait)} for {ranks_text(ranks)}, which"
    return Root(cause, f"{head} {_end_text(machine, cause, ranks)}", ranks, (), (wait.rank,))


def _end_text(machine: Ranked, cause: str, ranks: tuple[int, ...]) -> str:
    if cause == "absent":
        return f"{'does' if len(ranks) == 1 else 'do'} not run: there are {len(machine.devices)} ranks"
    device = machine.devices[ranks[0]]
    if isinstance(device.fault, Fault):
        return f"stopped: {device.fault.message} ({device.fault.where})"
    if device.hang is None:
        away = all(machine.devices[rank].away for rank in ranks)
        return "launched no program" if away else "ended without calling it"
    first = device.hang.waits[0] if device.hang.waits else None
    where = "" if first is None else f": nc{first.core} {first.engine} pc {first.pc}"
    if first is not None and (line := source_line(first.source)):
        where += f" ({line})"
    return f"does not get there{where}"


def _moving(machine: Ranked, meetings: Sequence[Meeting]) -> Root:
    """Return why a collective to which all came does not end."""
    for meeting in meetings:
        job = meeting.job
        hang = None if job is None else explain_job(machine.engine, job)
        if hang is not None:
            sentence = f"{meeting.signature.text} of {ranks_text(meeting.key.ranks)}: {hang.sentence}"
            return Root("transfer", sentence, hang.ranks, (), tuple(meeting.begun))
    return Root("transfer", CAUSES["transfer"], ())


def _at(wait: RankWait) -> str:
    return f" ({wait.source})" if wait.source else f" (pc {wait.pc} of {wait.engine})"


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks as a sentence names them, of many the first."""
    if not ranks:
        return "nobody"
    text = ", ".join(map(str, ranks[:6])) + (f" and {len(ranks) - 6} more" if len(ranks) > 6 else "")
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
