"""`neurontools core disasm`: instructions around where engines stood."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal

import typer

from formats.core import Core
from formats.core.records import EngineState, Stream
from formats.core.runs import location_runs
from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, CoreNumber, EngineName, chosen_engines, open_core_file
from neurontools.core.headline import place

State = Literal["done", "flying", "next", "fault", ""]
_MARKS: dict[State, str] = {"done": " . ", "flying": " ~ ", "next": "=> ", "fault": "!! ", "": "   "}


class WordRow(NamedTuple):
    """One word of an engine."""

    pc: int
    state: Annotated[State, "flying: issued and not completed; next: to issue next."]
    text: Annotated[str | None, "The word of the NEFF; null where it is not in the dump."]
    loaded: Annotated[str | None, "What the loader put in its place."]
    source: Annotated[str | None, "Its source line, as FILE:LINE."]


class EngineWords(NamedTuple):
    """Words of one engine around a pc."""

    core: Annotated[int, "Physical core."]
    engine: str
    words: Annotated[int, "Loaded words."]
    pc: Annotated[int, "Where the engine stood."]
    rows: tuple[WordRow, ...]


class Disassembly(NamedTuple):
    """Words of the engines that the options choose."""

    engines: tuple[EngineWords, ...]


class _Stored(NamedTuple):
    """A word that the dump holds: its position in the stream, its pc, where it lies in the NEFF's stream, its bytes."""

    position: int
    pc: int
    slot: int
    size: int


def words(core: Core, number: int | None, engine: str | None, around: int | None, count: int) -> Disassembly:
    """Return words of the engines that options choose; else of the one that faulted, or of those that wait.

    Raises NotFoundError where there is no such engine, or the dump does not hold the pc that is asked for.
    """
    states, fault = chosen_engines(core, number, engine), core.fault
    if engine is None:
        named = {(wait.core, wait.engine) for wait in core.waits.waits}
        if fault is not None and around is None:
            named = {(fault.core, fault.engine)}
        states = [state for state in states if (state.core, state.engine) in named] or states
    return Disassembly(tuple(
        EngineWords(state.core, state.engine, state.words, state.pc, _rows(core, state, around, count))
        for state in states
    ))  # fmt: skip


def _rows(core: Core, state: EngineState, around: int | None, count: int) -> tuple[WordRow, ...]:
    """Return the stored words of one engine around a pc, by default where it stood or faulted."""
    stream = next((s for s in core.program.streams if (s.core, s.engine) == (state.core, state.engine)), None)
    if stream is None:
        return ()
    fault = core.fault
    faulted = fault.pc if fault is not None and (fault.core, fault.engine) == (state.core, state.engine) else None
    middle = next(pc for pc in (around, faulted, state.pc) if pc is not None)
    stored = _near(stream, middle, count)
    if around is not None and not any(each.pc == around for each in stored):
        raise NotFoundError(f"nc{state.core} {state.engine} pc {around} is not in this {core.level} dump")
    at = next((i for i, each in enumerate(stored) if each.pc >= middle), len(stored))
    first = max(0, min(at - count // 2, len(stored) - count))
    replaced, source_of = dict(stream.replaced), location_runs(stream)
    flying = {flight.word for flight in state.in_flight}
    rows = []
    for each in stored[first : first + count]:
        text, loaded = _texts(core, stream, each, replaced.get(each.pc))
        mark: State = "fault" if each.pc == faulted else _progress(state, flying, each.position)
        number = source_of(each.pc)
        source = None if number is None else place(stream.locations[number]) or None
        rows.append(WordRow(each.pc, mark, text, loaded, source))
    return tuple(rows)


def _near(stream: Stream, middle: int, count: int) -> list[_Stored]:
    """Return the stored words that are at most `count` pcs away from one."""
    found = [
        _Stored(first + i, pc + i, slot + i * (size // WORD), size)
        for first, pc, slot, size, number in stream.runs
        for i in range(max(0, middle - count - pc), min(number, middle + count - pc))
    ]
    return sorted(found, key=lambda each: each.pc)


def _texts(core: Core, stream: Stream, word: _Stored, replaced: str | None) -> tuple[str | None, str | None]:
    """Return the text of a word as the NEFF has it, and of what the loader put in its place, None for the same."""
    from formats.isa import decode  # deferred: start-up

    found = core.read("instructions", stream.core, word.slot * WORD, word.size, engine=stream.engine)
    if found.missing:
        return None, None
    dialect, generation = "extended" if stream.extended else "neuron", core.dump.generation
    try:
        loaded = decode(found.data, generation, dialect).text
        text = loaded if replaced is None else decode(bytes.fromhex(replaced), generation, dialect).text
    except (FormatError, ValueError):  # a damaged dump, or one of a generation that is not known
        return found.data.hex(), None
    return text, None if loaded == text else loaded


def _progress(state: EngineState, flying: Collection[int], position: int) -> State:
    """Return how far an engine is with a word."""
    if position in flying:
        return "flying"
    return "done" if position < state.position else "next" if position == state.position else ""


def view(engines: Sequence[EngineWords]) -> list[str]:
    """Return the text of `core disasm`."""
    lines: list[str] = []
    for each in engines:
        lines += ["", f"nc{each.core} {each.engine}, {each.words} words, stood at pc {each.pc}:"]
        before = None
        for row in each.rows:
            if row.source != before and row.source is not None:
                lines.append(f"           # {row.source}")
            before = row.source
            lines.append(f"{_MARKS[row.state]}{row.pc:>6}  {row.text or '(not in this dump)'}")
            if row.loaded is not None:
                lines.append(f"           loaded as {row.loaded}")
        if not each.rows:
            lines.append("           no words in this dump")
    return lines[1:]


def disasm(
    file: CoreFile,
    core: CoreNumber = None,
    engine: EngineName = None,
    around: Annotated[
        int | None, typer.Option("--around", metavar="PC", min=0, help="Words around this pc, not where it stood.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Words of each engine.")] = 10,
    json: Json = False,
) -> None:
    """List the instructions around where an engine stood.

    With `--engine` that one; else the engine that faulted, or those that wait. Source lines come from the dump.
    """
    with report("core disasm", json, file=file, core=core, engine=engine, around=around) as out:
        dump = open_core_file(file)
        out.result = found = words(dump, core, engine, around, count)
        out.warn(*dump.warnings)
        out.lines = lambda: view(found.engines)


app = command_app(disasm, Disassembly)
