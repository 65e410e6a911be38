"""What the panes of this package ask. Each question is plain data; its answer holds values only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from emulator.faults import source_line
from formats.engines import short_engine
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.diagnosis.graph import Producer
    from formats.regions import Region
    from neurontools.debugger import Session
    from neurontools.debugger.among import Among
    from neurontools.debugger.blockers import Blocker
    from neurontools.debugger.results import Disassembly, DisassemblyRow, EngineRow, Listing, QueueRow, SemaphoreRow
    from neurontools.debugger.word_facts import WordFacts

__all__ = [
    "Checking",
    "Details",
    "DetailsAnswer",
    "Engines",
    "EnginesAnswer",
    "Findings",
    "Posters",
    "Queues",
    "Search",
    "Semaphores",
    "Source",
    "SourceAnswer",
    "Touched",
    "Transfers",
    "Used",
    "Verdict",
    "Words",
]

_WHOLE = 1_000_000  # lines: more than any source file has
_PATH = re.compile(r"[^\s()]*/(?=[^\s()/]+:\d)")  # folders in front of FILE:LINE
_SHOWN = 16  # posters and transfers that are listed


class EnginesAnswer(NamedTuple):
    """Engines of one core with the words from where each stands, and who could end each wait."""

    rows: tuple[EngineRow, ...]
    words: tuple[tuple[DisassemblyRow, ...], ...]
    blockers: tuple[Blocker | None, ...]


@dataclass(frozen=True)
class Engines:
    """Engines of the focus core, each with `count` words from the oldest that has not completed."""

    count: int

    def answer(self, session: Session) -> EnginesAnswer:
        """Return rows, words and reasons."""
        core = session.focus()[0]
        rows = tuple(row for row in session.info_engines() if row.core == core)
        words, blockers = [], []
        for row in rows:
            found: tuple[DisassemblyRow, ...] = ()
            if row.words and row.state != "done":
                found = session.words_from(row.pc, self.count, row.engine, core)
            words.append(found)
            blockers.append(_blocker(session, core, row.engine) if row.state == "wait" else None)
        return EnginesAnswer(rows, tuple(words), tuple(blockers))


def _blocker(session: Session, core: int, engine: str) -> Blocker | None:
    from neurontools.debugger.blockers import blocker_of, blocker_of_wait  # deferred: start-up

    if not session.post_mortem:
        return blocker_of(session.device, core, engine)
    report = session.why(engine, core).report
    return blocker_of_wait(report.waits[0]) if report is not None and report.waits else None


@dataclass(frozen=True)
class Used:
    """How busy engines and queues of the focus core were, in at most `parts` equal times since the beginning."""

    parts: int

    def answer(self, session: Session) -> dict[str, tuple[float, ...]]:
        """Return it by the name of the engine or queue."""
        core, found = session.focus()[0], session.inspector.timeline.utilisation(self.parts)
        return {owner.name: shares for owner, shares in found.items() if owner.core == core}


@dataclass(frozen=True)
class Queues:
    """DMA queues of the focus core."""

    def answer(self, session: Session) -> tuple[QueueRow, ...]:
        """Return them."""
        core = session.focus()[0]
        return tuple(row for row in session.info_queues() if row.core == core)


@dataclass(frozen=True)
class Transfers:
    """Transfers of one queue that are not complete, as text, the next one first."""

    core: int
    queue: str

    def answer(self, session: Session) -> tuple[str, ...]:
        """Return the first of them."""
        found = [queue for queue in session.device.queues if (queue.core, queue.name) == (self.core, self.queue)]
        return tuple(f"pc {each.pc}: {each.text}" for queue in found for each in queue.transfers[:_SHOWN])


@dataclass(frozen=True)
class Semaphores:
    """Semaphores and events of the focus core that are not zero or are waited for."""

    def answer(self, session: Session) -> tuple[SemaphoreRow, ...]:
        """Return them."""
        core = session.focus()[0]
        return tuple(row for row in session.info_semaphores() if row.core == core)


@dataclass(frozen=True)
class Posters:
    """What signals a semaphore or event in the whole program."""

    core: int
    kind: str
    number: int

    def answer(self, session: Session) -> tuple[Producer, ...]:
        """Return signals: what is running or blocked, then queued, then done."""
        from emulator.diagnosis.explain import signals_of  # deferred: start-up

        order = {"faulted": 0, "running": 0, "blocked": 1, "queued": 2, "done": 3}
        found = signals_of(session.device, (self.core, self.kind, self.number))
        return tuple(sorted(found, key=lambda signal: order[signal.state]))[:_SHOWN]


class SourceAnswer(NamedTuple):
    """A whole source file, the line where the focus engine stands in it (0: in another one), and that file."""

    listing: Listing
    line: int
    place: str


@dataclass(frozen=True)
class Source:
    """The source file `file`, or where "" the one in which the focus engine stands."""

    file: str = ""

    def answer(self, session: Session) -> SourceAnswer:
        """Return it with markers."""
        try:
            here = session.list_source(None, 1, remember=False)
        except NeuronError:
            if not self.file:
                raise
            return SourceAnswer(session.list_source(f"{self.file}:1", _WHOLE, remember=False), 0, "")
        line = here.rows[0].number if here.rows else 0
        file = self.file or here.file
        listing = session.list_source(f"{file}:1", _WHOLE, remember=False)
        return SourceAnswer(listing, line if listing.file == here.file else 0, here.file)


@dataclass(frozen=True)
class Words:
    """`count` words of the focus engine around a pc, around where it stands for -1."""

    around: int
    count: int

    def answer(self, session: Session) -> Disassembly:
        """Return the disassembly."""
        return session.disassemble(None, None if self.around < 0 else self.around, self.count)


@dataclass(frozen=True)
class Findings:
    """Findings of the checks, the fault or hang that ended the run, and warnings: (kind, lines) each."""

    STANDING = True  # the checks run the program a second time

    def answer(self, session: Session) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return them, worst first."""
        from neurontools.running.view import fault_lines  # deferred: start-up

        found: list[tuple[str, tuple[str, ...]]] = []
        device = session.device
        if session.among is not None:
            found += _of_ranks(session.among)
        if session.outcome == "fault" and device.fault is not None:
            found.append(("fault", tuple(fault_lines(device.fault))))
        if session.outcome == "hang" and device.hang is not None:
            found.append(("hang", tuple(device.hang.text().splitlines())))
        for item in (*session.findings(), *session.nan_findings()):
            found.append(("finding", tuple(item.text().splitlines())))
        found += [(notice.kind, (notice.text,)) for notice in session.warnings()]
        return tuple(found)


@dataclass(frozen=True)
class Checking:
    """Which checks run along: without any, that nothing was found says little."""

    def answer(self, session: Session) -> tuple[str, ...]:
        """Return their names."""
        return session.checks


@dataclass(frozen=True)
class Verdict:
    """What has gone wrong so far, on one line: the fault, the hang or the first finding; "" where nothing has."""

    STANDING = True

    def answer(self, session: Session) -> str:
        """Return kind, place and reason, the worst first."""
        device, dead = session.device, "core dump, " if session.post_mortem else ""
        if session.among is not None and (text := _over_ranks(session.among)):
            return text
        if session.outcome == "fault" and device.fault is not None:
            fault = device.fault
            source = session.program.source(fault.core, fault.engine, fault.pc)
            known = source is not None and source.file is not None
            at = f" · {PurePath(source.file or '').name}:{source.line}" if source is not None and known else ""
            return f"{dead}fault · {short_engine(fault.engine).upper()} pc {fault.pc}{at} · {fault.message}"
        if session.outcome == "hang" and device.hang is not None:
            waits, why = device.hang.waits, ""
            if waits:
                line = source_line(waits[0].source)
                at = f" · {PurePath(line).name}" if line else ""
                why = f" · {short_engine(waits[0].engine).upper()} pc {waits[0].pc}{at} · {waits[0].verdict}"
            return f"{dead}hang{why or ' · ' + device.hang.text().splitlines()[0]}"
        found = (*session.findings(), *session.nan_findings())
        return _of_finding(found[0]) if found else ""


def _of_ranks(among: Among) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield why ranks wait for each other, and the faults of ranks other than the selected one."""
    from neurontools.running.view import fault_lines  # deferred: start-up

    hang = among.waiting().hang
    if hang is not None:
        yield "hang", tuple(hang.text().splitlines())
    for rank, other in among.sessions.items():
        fault = other.device.fault
        if rank != among.selected and other.outcome == "fault" and fault is not None:
            first, *more = fault_lines(fault)
            yield "fault", (f"rank {rank}: {first}", *more)


def _over_ranks(among: Among) -> str:
    """Return what went wrong over all ranks, on one line: a fault of any, else why they wait for each other."""
    for rank, other in among.sessions.items():
        fault = other.device.fault
        if other.outcome == "fault" and fault is not None:
            where = source_line(other.program.source(fault.core, fault.engine, fault.pc))
            at = f" · {PurePath(where).name}" if where else ""
            return f"fault · rank {rank} {short_engine(fault.engine).upper()} pc {fault.pc}{at} · {fault.message}"
    hang = among.waiting().hang
    if hang is None:
        return ""
    who = f"ranks {' → '.join(map(str, (*hang.cycle, hang.cycle[0])))} · " if hang.cycle else ""
    return f"hang · {hang.cause} · {who}{_PATH.sub('', hang.sentence)}"


def _of_finding(found: Finding) -> str:
    """Return a finding on a line: the check, the place, what is wrong."""
    site = found.site
    line = source_line(site.source) if site is not None else ""
    where = f" · {short_engine(site.engine).upper()} pc {site.pc}" if site is not None and site.pc is not None else ""
    if line:
        where += f" · {PurePath(line).name}"
    return f"{found.tool}{where} · {found.message}"


@dataclass(frozen=True)
class Touched:
    """The bytes that an instruction reads and writes."""

    core: int
    engine: str
    pc: int

    def answer(self, session: Session) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
        """Return (reads, writes); of a word that starts a transfer, the transfer's."""
        from neurontools.debugger.touched import touched  # deferred: start-up

        return touched(session.device, self.core, self.engine, self.pc)


class DetailsAnswer(NamedTuple):
    """A word, and the sentence of why its engine waits, "" where it does not wait there."""

    facts: WordFacts
    cause: str


@dataclass(frozen=True)
class Details:
    """All that is known of a word."""

    core: int
    engine: str
    pc: int

    def answer(self, session: Session) -> DetailsAnswer:
        """Return it."""
        facts, why = session.inspector.word_facts(self.core, self.engine, self.pc), session.why(self.engine, self.core)
        waits = why.report.waits if why.report is not None else ()
        place = self.core, self.engine, self.pc
        here = [wait.verdict for wait in waits if (wait.core, wait.engine, wait.pc) == place]
        return DetailsAnswer(facts, str(here[0]) if here else "")


@dataclass(frozen=True)
class Search:
    """The next word of the focus engine after a pc whose text contains `text`; at the end, the search wraps around."""

    text: str
    behind: int

    def answer(self, session: Session) -> int | None:
        """Return its pc."""
        core, engine = session.focus()
        pcs = [loaded.pc for loaded in session.program.words(core, engine)]
        wanted = self.text.casefold()
        ordered = [pc for pc in pcs if pc > self.behind] + [pc for pc in pcs if pc <= self.behind]
        return next((pc for pc in ordered if wanted in session.program.text(core, engine, pc).casefold()), None)
