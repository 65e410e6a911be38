"""`neurontools disasm`: instruction words as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from neurontools.assembly.listing import Listing, listed, open_streams, parse_range
from neurontools.command.files import need_folder
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, SubgraphNumber, TargetName
from neurontools.command.output import Report, report
from neurontools.neff.chains import chain_lines
from neurontools.text.source_lines import SourceLines
from neurontools.text.table import bold, count


def view(found: Listing, sources: SourceLines | None = None) -> Iterator[str]:
    """Yield the listing for people: a heading per engine, then pc, name, operands and source.

    Of a row's chain, what differs from the row before stands above it; `sources` gives the lines themselves.
    """
    first = True
    for engine, rows in found.engines.items():
        if not first:
            yield ""
        first = False
        yield bold(f"{engine}:")
        empty, last = True, None
        shown: list[str] = []
        for row in rows:
            empty = False
            source = row.source
            place = f"{source.file}:{source.line}" if source and source.file else None
            if place != last:
                text = sources.line(source.file, source.line or 0) if sources and source and source.file else None
                yield f"          # {place or '(no source line)'}" + (f"   {text}" if text else "")
                last = place
            above = chain_lines(row.chain or (), place)
            yield from (f"          #   {text}" for text in above if text not in shown)
            shown = above
            yield f"{row.pc:6}  {row.name:20} {row.operands}".rstrip()
            raw = row.raw or ""
            yield from (f"        {raw[start : start + 64]}" for start in range(0, len(raw), 64))
        if empty:
            yield "        (no instructions in range)"


def asm_view(found: Listing) -> Iterator[str]:
    """Yield the words as a .s file; data declarations are not part of a listing."""
    yield f".target {found.target}"
    if found.dialect != "neuron":
        yield f".dialect {found.dialect}"
    for engine, rows in found.engines.items():
        yield f".engine {engine.lower()}"
        total = 0
        for row in rows:
            total += 1
            source = row.source
            place = f"    # {Path(source.file).name}:{source.line}" if source and source.file else ""
            yield f"    {row.asm}{place}"
        yield f"# {count(total, 'instruction')}"


def disasm(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A NEFF, or a raw instruction stream (.bin).", show_default=False)
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            "-e",
            metavar="ENGINE",
            help="pe, act, pool, dve or sp; may be given several times.",
            show_default=False,
        ),
    ] = None,
    subgraph: SubgraphNumber = 0,
    pc: Annotated[
        str | None,
        typer.Option(
            "--range",
            "-r",
            metavar="FIRST:END",
            help="Instructions FIRST to END-1 of each engine; either may be left out.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        bool | None,
        typer.Option(
            "--source/--no-source",
            help="Show where each instruction comes from, level by level, with the lines themselves where the files "
            "are here; or nothing of it.  Unless given: file and line.",
            show_default=False,
        ),
    ] = None,
    source_path: Annotated[
        list[Path] | None,
        typer.Option(
            "--source-path",
            metavar="DIR",
            help="Look for source files here too, by the ends of their paths.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show the bytes of each word too.")] = False,
    asm: Annotated[
        bool, typer.Option("--asm", help="Print text that `neurontools asm` reads back, word for word.")
    ] = False,
    target: TargetName = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect", metavar="NAME", help="Of a raw stream: neuron (the usual) or extended.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the instructions of a NEFF or of a raw instruction stream.

    A raw stream has no header: --target names its chip (trn2 unless given).  Words that are not understood are listed
    as they are, byte for byte.
    """
    with report("disasm", json, file=file, engine=engine, subgraph=subgraph, range=pc, target=target) as out:
        streams = open_streams(file, subgraph, engine or [], target, dialect)
        folders = [need_folder(path) for path in source_path or ()]
        found = listed(streams, parse_range(pc), raw=raw, source=source is not False, chain=source is True)
        out.result = found
        sources = SourceLines(folders, file.parent) if source else None
        out.lines = lambda: asm_view(found) if asm else _with_refused(view(found, sources), sources, out)


def _with_refused(lines: Iterator[str], sources: SourceLines | None, out: Report) -> Iterator[str]:
    """Yield the lines, and warn of source files that were not read."""
    yield from lines
    if sources is not None:
        out.warn(*sources.refused)


app = command_app(disasm, result=Listing)
