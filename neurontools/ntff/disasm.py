"""`neurontools ntff disasm`: the words that the runtime had loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.ntff.arguments import CoreNumber, NeffOption, NtffFile
from neurontools.text.table import bold, duration

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph
    from formats.ntff import Buffer, CoreCapture, Executed, Ntff


class LoadedWord(NamedTuple):
    """One loaded word, how often it ran in the capture, and when it ran last."""

    pc: int
    compiler_pc: Annotated[int | None, "null for what the runtime inserted"]
    text: str
    times: int
    start_ps: int | None
    duration_ps: int | None
    source: str | None


class EngineListing(NamedTuple):
    """The loaded words of one engine."""

    core: int
    name: str
    engine: str
    rows: list[LoadedWord]


class LoadedWords(NamedTuple):
    """The result of `ntff disasm`."""

    engines: list[EngineListing]


class Wanted(NamedTuple):
    """Which words to list: of one core and engine or of all, the compiler's only, from a pc on, at most so many."""

    core: int | None = None
    engine: str | None = None
    program: bool = False
    start: int = 0
    most: int | None = None


def loaded_words(ntff: Ntff, neff: Neff | None, wanted: Wanted) -> LoadedWords:
    """Return the loaded words of the chosen engines, with how often and when each ran."""
    from neurontools.ntff.capture import chosen_buffers, subgraph_of  # deferred: start-up

    return LoadedWords([
        _listing(ntff, capture, buffer, subgraph_of(neff, capture), wanted)
        for capture, buffer in chosen_buffers(ntff, wanted.core, wanted.engine)
    ])  # fmt: skip


def _listing(
    ntff: Ntff, capture: CoreCapture, buffer: Buffer, subgraph: Subgraph | None, wanted: Wanted
) -> EngineListing:
    from neurontools.ntff.capture import source_text  # deferred: start-up

    runs = _runs(ntff, capture.core, buffer.engine)
    rows: list[LoadedWord] = []
    for pc in range(wanted.start, len(buffer.words)):
        if wanted.most is not None and len(rows) >= wanted.most:
            break
        compiler_pc = buffer.compiler_pc(pc)
        if wanted.program and compiler_pc is None:
            continue
        ran = runs.get(pc, [])
        last = ran[-1] if ran else None
        start = None if last is None else last.start_ps
        took = None if last is None or last.end_ps is None else last.duration_ps
        source = source_text(subgraph, buffer.engine, compiler_pc)
        rows.append(LoadedWord(pc, compiler_pc, buffer.words[pc].text, len(ran), start, took, source))
    return EngineListing(capture.core, capture.name, buffer.engine, rows)


def _runs(ntff: Ntff, core: int, engine: str) -> dict[int, list[Executed]]:
    runs: dict[int, list[Executed]] = {}
    for each in ntff.executed(core):
        if each.engine == engine:
            runs.setdefault(each.pc, []).append(each)
    return runs


def view(found: LoadedWords) -> list[str]:
    """Return the listing for people."""
    lines: list[str] = []
    for each in found.engines:
        lines += ["", bold(f"core {each.core} {each.engine} ({each.name})")]
        before = None
        for row in each.rows:
            if row.source is not None and row.source != before:
                lines.append(f"{'':26}# {row.source}")
            before = row.source
            compiler = "" if row.compiler_pc is None else str(row.compiler_pc)
            took = "" if row.duration_ps is None else duration(row.duration_ps)
            lines.append(f"{row.pc:>6} {compiler:>6} {took:>11}  {row.text}".rstrip())
    return lines[1:]


def disasm(
    file: NtffFile,
    core: CoreNumber = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", "-e", metavar="ENGINE", help="pe, act, pool, dve or sp; all by default.",
                     show_default=False),
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="Only the compiler's words, without what the runtime put around them.")
    ] = False,
    start: Annotated[int, typer.Option("--start", "-s", metavar="PC", min=0, help="First loaded word.")] = 0,
    count: Annotated[
        int | None, typer.Option("--count", "-n", metavar="N", min=1, help="Words of each engine.", show_default=False)
    ] = None,
    neff: NeffOption = None,
    json: Json = False,
) -> None:  # fmt: skip
    """List the instructions that the runtime had loaded.

    A line has the loaded pc, the compiler's pc (none for what the runtime inserted), how long the word took the last
    time it ran in the capture, and its text.
    """
    from neurontools.ntff.capture import open_pair  # deferred: start-up

    with report("ntff disasm", json, file=file, core=core, engine=engine, neff=neff) as out:
        ntff, program_file, odd = open_pair(file, neff)
        out.warn(*odd)
        found = loaded_words(ntff, program_file, Wanted(core, engine, program, start, count))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(disasm, result=LoadedWords)
