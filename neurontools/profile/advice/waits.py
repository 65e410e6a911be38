"""Rules about waits: those that nothing needs, and those that another buffer would make needless."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from emulator.checks.clocks import WaitPlace
from emulator.timeline.change import Change
from formats import isa
from formats.isa.signals import SECOND_SLOT
from formats.neuron_core import PSUM_BANK_BYTES, PSUM_BANKS, PSUM_BYTES
from neurontools.profile.advice.context import Candidate, Context, Row
from neurontools.profile.rows import Line, Waited
from neurontools.profile.summary import line_text

__all__ = ["missing_overlap", "psum_banks", "serialising_waits"]

_JUDGED = 8  # waits that are proved, the longest first
_MOST_WORDS = 20_000  # a race check of more takes longer than people wait for advice


def serialising_waits(context: Context) -> Iterator[Candidate]:
    """Find waits that order nothing: racecheck's clocks find no race in a run that ignores one."""
    if len(context.rows) > _MOST_WORDS:
        return
    longest: dict[WaitPlace, list[Waited]] = defaultdict(list)
    for wait in context.timeline.waits:
        awaited = context.timeline.causes.waits(wait.owner, wait.row)
        if wait.kind == "semaphore" and len(awaited) == 1:
            pc, slot = context.timeline.recorder.tracks[wait.owner].pc[wait.row], int(awaited[0].by == SECOND_SLOT)
            longest[WaitPlace(wait.owner.core, wait.owner.name, pc, slot)].append(wait)
    ranked = sorted(longest.items(), key=lambda item: -sum(wait.ps for wait in item[1]))
    plain: bool | None = None
    for place, waits in ranked[:_JUDGED]:
        rows = [(wait.owner, wait.row) for wait in waits]
        change = Change(unwaited=frozenset(map(context.key, rows)))
        if not context.decides and context.again(change).end_ps >= context.end_ps:
            continue  # nothing would come of it, so that it needs no proof
        if plain is None:
            plain = _races(context, ()) == 0
        if not plain or _races(context, (place,)):
            continue
        wait = max(waits, key=lambda each: each.ps)  # the one to tell of
        source = "" if wait.source is None else f" for {line_text(context.timeline.line(*wait.source))}"
        word = context.timeline.causes.word(wait.owner, wait.row)
        yield Candidate(
            "serialising-wait",
            context.timeline.line(wait.owner, wait.row),
            f"nothing needs the wait for {wait.detail}{source} of {word.name} (nc{place.core} "
            f"{place.engine} pc {place.pc})",
            change,
            "racecheck: without it the clocks still order every two accesses of which one is a write",
            "isa.md 2, 11",
            sum(each.ps for each in waits),
        )


def _races(context: Context, ignored: tuple[object, ...]) -> int:
    """Return how many races there are when some waits teach nothing; the run itself keeps them."""
    return len(context.again(Change(), checks=("racecheck",), ignored=ignored).findings)


def missing_overlap(context: Context) -> Iterator[Candidate]:
    """Find loads that wait until an engine is done with the buffer they fill: with another one they need not."""
    if context.decides:
        return  # without these waits the values are others, and they decide the course
    loads = {
        context.timeline.causes.trigger(track.owner, row)
        for track in context.timeline.queues
        for row in range(len(track))
        if not track.flags[row] & 1
    }
    chosen = [
        wait
        for wait in context.timeline.waits
        if wait.kind == "semaphore"
        and wait.source is not None
        and wait.source[0].kind == "engine"
        and wait.source[0] != wait.owner
        and _loads(context, wait, loads)
    ]
    for line, waits in _by_line(context, chosen).items():
        sources = sorted({line_text(context.timeline.line(*w.source)) for w in waits if w.source is not None})
        yield Candidate(
            "missing-overlap",
            line,
            f"{len(waits)} loads wait until {', '.join(sources[:3])} is done with "
            "the buffer: another buffer lets them run ahead",
            _unwaited(context, waits),
            "the schedule was run again with loads that wait for no engine",
            "hardware.md 4.3",
            sum(wait.ps for wait in waits),
        )


def _loads(context: Context, wait: Waited, loads: Iterable[Row]) -> bool:
    """Return whether a word that waits starts a load, itself or as the last of the waits in front of one."""
    row: Row = wait.owner, wait.row
    track = context.timeline.recorder.tracks[wait.owner]
    while row not in loads:
        if not isinstance(context.timeline.causes.word(*row), isa.EventSemaphore) or row[1] + 1 >= len(track):
            return False
        row = row[0], row[1] + 1
    return True


def psum_banks(context: Context) -> Iterator[Candidate]:
    """Matmuls that wait until another engine has read the bank they write, while other banks are free."""
    if context.decides:
        return
    banks = {
        word.dst.address % PSUM_BYTES // PSUM_BANK_BYTES for _, word in context.rows if isinstance(word, isa.MatMul)
    }
    if len(banks) >= PSUM_BANKS:
        return
    chosen = []
    for wait in context.timeline.waits:
        if wait.owner.name != "PE" or wait.kind != "semaphore" or wait.source is None:
            continue
        word = _product(context, (wait.owner, wait.row))
        if wait.source[0].name in ("DVE", "Activation") and word is not None and not word.adds:
            source = context.timeline.causes.word(*wait.source)
            if _reads_bank(source, word.dst.address % PSUM_BYTES // PSUM_BANK_BYTES):
                chosen.append(wait)
    for line, waits in _by_line(context, chosen).items():
        sources = sorted({line_text(context.timeline.line(*w.source)) for w in waits if w.source is not None})
        yield Candidate(
            "psum-banks",
            line,
            f"{len(waits)} matmuls wait until {', '.join(sources[:3])} has emptied "
            f"their PSUM bank; {len(banks)} of 8 banks are used: take turns",
            _unwaited(context, waits),
            "the schedule was run again with matmuls that wait for no bank",
            "hardware.md 2.1, 2.4, 3.2",
            sum(wait.ps for wait in waits),
        )


def _product(context: Context, row: Row) -> isa.MatMul | None:
    """Return the matmul that a wait of the Tensor engine holds back: the next one."""
    owner, index = row
    for position in range(index, min(index + 4, len(context.timeline.recorder.tracks[owner]))):
        word = context.timeline.causes.word(owner, position)
        if isinstance(word, isa.MatMul):
            return word
    return None


def _reads_bank(word: isa.Instruction, bank: int) -> bool:
    return any(
        access.pattern.address >= isa.PSUM_BASE and access.pattern.address % PSUM_BYTES // PSUM_BANK_BYTES == bank
        for access in word.reads
        if isinstance(access, isa.Access)
    )


def _by_line(context: Context, waits: Iterable[Waited]) -> dict[Line | None, list[Waited]]:
    found: dict[Line | None, list[Waited]] = defaultdict(list)
    for wait in waits:
        found[context.timeline.line(wait.owner, wait.row)].append(wait)
    return found


def _unwaited(context: Context, waits: Iterable[Waited]) -> Change:
    return Change(unwaited=frozenset(context.key((wait.owner, wait.row)) for wait in waits))
