"""`neurontools disasm`: instruction words as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, SubgraphNumber, TargetName
from neurontools.files import need_folder
from neurontools.output import report


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
            "--source-path", metavar="DIR", help="Look for source files here too, by the ends of their paths.",
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
    from neurontools.render import listing
    from neurontools.render.source_lines import SourceLines

    with report("disasm", json, file=file, engine=engine, subgraph=subgraph, range=pc, target=target) as out:
        streams = listing.open_streams(file, subgraph, engine or [], target, dialect)
        folders = [need_folder(path) for path in source_path or ()]
        rows = listing.rows(
            streams, listing.parse_range(pc), with_raw=raw, with_source=source is not False,
            with_chain=source is True,
        )  # fmt: skip
        if json:
            out.result = {
                "target": streams.target.name,
                "dialect": streams.dialect,
                "engines": {name: list(items) for name, items in rows.items()},
            }
        elif asm:
            out.lines = lambda: listing.asm_lines(streams, rows)
        else:
            sources = SourceLines(folders) if source is True else None
            out.lines = lambda: listing.lines(rows, with_raw=raw, sources=sources)


app = command_app(disasm)
