"""`neurontools core why`: the cause, from the dump alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from formats.core import Core
from formats.core.records import FaultNote, FindingState, JournalEntry, SignalState, Source, StatusNote
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.core.headline import headline, place
from neurontools.text.table import bold, duration

# The causes of emulator.diagnosis.causes, which is not loaded for their names alone.
CauseName = Literal[
    "deadlock", "never-signalled", "never-met", "overshoot", "barrier", "fault", "blocked", "transfer", "ranks",
    "running",
]  # fmt: skip

_LAST = 5  # completions shown of the engine that faulted
_AROUND = 1  # source lines before and behind
_SIGNALS = 4  # pending signals shown of each wait
_FINDINGS = 20


class FaultRow(NamedTuple):
    """The fault, with its source line as FILE:LINE."""

    kind: Annotated[str, "oob, partitions, bank, alignment, access, operand, semaphore, branch, numerical, timeout, "
                         "unsupported."]  # fmt: skip
    message: Annotated[str, "What happened, on one line."]
    core: Annotated[int, "Physical core, -1 unknown."]
    engine: Annotated[str, "Engine, or DMA queue."]
    pc: Annotated[int, "Compiler pc of the word: its index in the stream of the NEFF."]
    text: Annotated[str, "The word, in the profiler's grammar."]
    opcode: Annotated[str, "Its mnemonic."]
    source: Annotated[Source | None, "Where the word comes from."]
    operand: Annotated[str | None, "Operand at fault."]
    space: Annotated[str | None, "SBUF, PSUM (engine addresses) or HBM (device addresses)."]
    address: Annotated[tuple[int, int] | None, "First address touched, and the one behind the last."]
    expected: Annotated[str | None, "What would have been allowed: the limit."]
    got: Annotated[str | None, "What was found: the index."]
    time_ps: Annotated[int, "When."]
    tensor: Annotated[str | None, "Variable that the access belongs to."]
    line: str | None
    turn: Annotated[str, "The turn of the kernel's loops around it, as in j=2; empty where none is known."] = ""


class LineRow(NamedTuple):
    """A source line around a fault."""

    line: int
    text: str
    here: Annotated[bool, "Whether it is the line of the word that faulted."]


class WaitRow(NamedTuple):
    """One engine that waits, and why it does not go on."""

    core: Annotated[int, "Physical core."]
    engine: Annotated[str, "The engine."]
    pc: Annotated[int, "Compiler pc of the word that waits."]
    text: Annotated[str, "The word."]
    opcode: Annotated[str, "Its mnemonic."]
    source: Annotated[Source | None, "Where it comes from."]
    kind: Annotated[str, "semaphore or event."]
    number: Annotated[int, "Number of the semaphore or event."]
    condition: Annotated[str, "The condition in the profiler's grammar."]
    need: Annotated[int, "Value of the condition."]
    present: Annotated[int, "Present value."]
    since_ps: Annotated[int, "Since when it waits."]
    overshoot: Annotated[bool, "Whether the value went past the one that is waited for."]
    signals: Annotated[tuple[SignalState, ...], "What could signal it: all that is pending, and the last done."]
    done: Annotated[int, "Signals already given."]
    pending: Annotated[int, "Signals not yet given."]
    cause: Annotated[CauseName, "Why it does not go on."]
    verdict: Annotated[str, "The cause in a sentence."]
    hint: Annotated[str, "What to do about it."]


class LastRow(NamedTuple):
    """A completion shortly before the end."""

    number: int
    time_ps: int
    core: int
    engine: str
    pc: int
    text: str


class Explained(NamedTuple):
    """What went wrong."""

    outcome: str
    headline: Annotated[str, "What happened, in one line."]
    status: StatusNote
    reason: str
    time_ps: int
    fault: FaultRow | None
    lines: tuple[LineRow, ...]
    waits: tuple[WaitRow, ...]
    cycles: Annotated[tuple[tuple[str, ...], ...], "Engines that wait for one another in a circle."]
    roots: Annotated[tuple[str, ...], "Engines whose waits are not only behind others."]
    running: tuple[str, ...]
    last: Annotated[tuple[LastRow, ...], "What completed last, on the engine that faulted or, of a hang, anywhere."]
    findings: tuple[FindingState, ...]
    stub: Annotated[bool, "Whether the file holds no state of engines, so that it cannot tell a cause."] = False


def explained(core: Core) -> Explained:
    """Return what went wrong: status, fault, waits with their causes, what happened last."""
    from emulator.diagnosis.causes import Cause  # deferred: start-up
    from emulator.diagnosis.notes import diagnosed  # deferred: start-up

    fault = core.fault
    waits = tuple(WaitRow(*wait, cause.value, *rest) for wait, (cause, *rest) in diagnosed(core))
    return Explained(
        core.outcome,
        headline(core),
        core.status,
        core.waits.reason,
        core.dump.time_ps,
        None if fault is None else FaultRow(*fault, place(fault.source) or None, _turn(core, fault)),
        () if fault is None else tuple(_lines(core, fault.source)),
        waits,
        tuple(tuple(f"nc{number} {engine}" for number, engine in cycle) for cycle in core.waits.cycles),
        tuple(f"nc{wait.core} {wait.engine}" for wait in waits if Cause(wait.cause).root),
        core.waits.running,
        tuple(LastRow(e.number, e.time_ps, e.core, e.engine, e.pc, e.text) for e in _last(core)),
        core.findings[:_FINDINGS],
        core.dump.device == "neuron" or not (core.outcome or core.engines),
    )


def _turn(core: Core, fault: FaultNote) -> str:
    """Return the turn of the loops around a fault, as far as the dump keeps it."""
    known = core.program.visits
    if not (0 <= fault.core < len(known) and known[fault.core]):
        return ""
    from neurontools.debugger.post_mortem import DumpedExecution  # deferred: start-up

    turn = DumpedExecution(core).program.iteration(fault.core, fault.engine, fault.pc)
    return ", ".join(f"turn {one.value}" if one.name == "#" else f"{one.name}={one.value}" for one in turn)


def _lines(core: Core, source: Source | None) -> Iterator[LineRow]:
    """Yield the source lines around a location, as far as the dump keeps them."""
    if source is not None and source.file is not None and source.line is not None:
        for each in core.program.lines:
            if each.file == source.file and abs(each.line - source.line) <= _AROUND:
                yield LineRow(each.line, each.text, each.line == source.line)


def _last(core: Core) -> list[JournalEntry]:
    fault = core.fault
    entries = [each for each in core.journal_tail.entries if each.kind not in ("fault", "hang")]
    if fault is not None:
        entries = [each for each in entries if (each.core, each.engine) == (fault.core, fault.engine)] or entries
    return entries[-_LAST:]


def view(name: str, found: Explained) -> Iterator[str]:
    """Yield the text of `core why`."""
    yield bold(f"{name}: {found.headline}")
    yield f"  status   {found.status.name} ({found.status.code}), at {duration(found.time_ps)} of device time"
    if found.fault is not None:
        yield from _fault(found.fault, found.lines)
    if found.last:
        yield "  before"
        for e in found.last:
            yield f"    {duration(e.time_ps)}  nc{e.core} {e.engine} pc {e.pc}  {e.text}"
    for wait in found.waits:
        yield from _wait(wait)
    yield from (f"  still running: {text}" for text in found.running)
    for cycle in found.cycles:
        yield "  cycle: " + " waits for ".join((*cycle, *cycle[:1]))
    yield from (f"  hint: {hint}" for hint in dict.fromkeys(
        wait.hint for wait in found.waits if f"nc{wait.core} {wait.engine}" in found.roots))  # fmt: skip
    for f in found.findings:
        yield f"  {f.tool} {f.severity}: {f.message} (nc{f.core} {f.engine} pc {f.pc})"
    if found.stub:
        yield "  stub     the file holds no words, engines, semaphores, queues or memories: it cannot tell why"
        yield "  hint: `neurontools core info` shows what there is; run the NEFF on the emulator for the cause"
    elif not found.waits and found.fault is None:
        yield "  nothing faulted, and nobody waits"


def _fault(fault: FaultRow, around: tuple[LineRow, ...]) -> Iterator[str]:
    low, high = fault.address or (0, 0)
    rows = {
        "at": f"nc{fault.core} {fault.engine} pc {fault.pc}",
        "word": fault.text,
        "line": ", ".join(filter(None, (fault.line, fault.turn))),
        "operand": fault.operand,
        "tensor": fault.tensor,
        "range": None if fault.address is None else f"{fault.space or ''} {low:#x} to {high:#x}".strip(),
        "limit": fault.expected,
        "index": fault.got,
    }
    for key, value in rows.items():
        if value:
            yield f"  {key.ljust(7)}  {value}"
        if key == "line":
            yield from (f"    {'>' if each.here else ' '} {each.line:>5}  {each.text}".rstrip() for each in around)


def _wait(wait: WaitRow) -> Iterator[str]:
    line, symbol = place(wait.source), f"{'E' if wait.kind == 'event' else 'S'}[{wait.number}]"
    yield f"  nc{wait.core} {wait.engine} pc {wait.pc}{f' ({line})' if line else ''}: {wait.text}"
    yield f"    waits for {wait.condition} since {duration(wait.since_ps)}; {symbol} is {wait.present}"
    yield f"    {wait.cause}: {wait.verdict}"
    for signal in [signal for signal in wait.signals if signal.state != "done"][:_SIGNALS]:
        amount = "" if signal.amount is None else f"{signal.amount:+d} from "
        state = f"queued behind pc {signal.behind}" if signal.state == "queued" else signal.state
        source = place(signal.source)
        where = f"nc{signal.core} {signal.engine} pc {signal.pc}{f' ({source})' if source else ''}"
        yield f"    {amount}{where}, {state}: {signal.text}"
    if wait.pending > _SIGNALS:
        yield f"    and {wait.pending - _SIGNALS} more that have not signalled"
    if wait.done:
        yield f"    {wait.done} signalled already"


def why(file: CoreFile, json: Json = False) -> None:
    """Say what went wrong: the fault, or who waits for whom.

    Of a fault: the instruction, its source line, the operand, what it touched and what would have been allowed. Of a
    hang: who waits for which semaphore, what it was, who would have signalled it and where that one stood, the cycles,
    and the cause of each wait: deadlock, never-signalled, never-met, overshoot, barrier, fault, blocked, transfer or
    running, with a hint.
    """
    with report("core why", json, file=file) as out:
        core = open_core_file(file)
        out.result = found = explained(core)
        out.warn(*core.warnings)
        out.lines = lambda: view(file.name, found)


app = command_app(why, Explained)
