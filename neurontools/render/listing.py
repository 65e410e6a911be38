"""Instruction listings: rows as data, and the same rows as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from formats.errors import NotFoundError
from formats.targets import Target, resolve_target
from neurontools.files import need_file, open_neff_file
from neurontools.render.neff import ENGINES, pick_subgraph
from neurontools.render.neff_where import chain_lines, steps_data
from neurontools.render.table import bold, count

if TYPE_CHECKING:
    from formats.isa import Instruction
    from formats.neff import Neff
    from neurontools.render.source_lines import SourceLines

__all__ = ["Streams", "asm_lines", "lines", "open_streams", "parse_range", "rows"]


class Streams(NamedTuple):
    """Instruction streams by engine, and the file they come from when it is a NEFF."""

    target: Target
    dialect: str
    streams: dict[str, Sequence[Instruction]]
    neff: Neff | None
    subgraph: int


def open_streams(
    file: Path, subgraph: int, engines: list[str], target: str | None, dialect: str | None = None
) -> Streams:
    """Return the streams of a NEFF's subgraph, or the one stream that a raw file is."""
    from formats.isa import decode_stream
    from neurontools.assembler import engine_name

    wanted = [engine_name(text) for text in engines]
    if file.suffix == ".bin":
        if len(wanted) > 1:
            raise typer.BadParameter("a raw stream belongs to one engine", param_hint="--engine")
        chip = resolve_target(target or "trn2")
        stream = decode_stream(need_file(file).read_bytes(), chip.generation, dialect or "neuron", str(file))
        return Streams(chip, stream.dialect, {wanted[0] if wanted else file.stem: stream}, None, 0)
    if dialect is not None:
        raise typer.BadParameter("a NEFF says itself which dialect it is in", param_hint="--dialect")
    neff = open_neff_file(file)
    if target and resolve_target(target).generation != neff.target.generation:
        raise typer.BadParameter(f"{file.name} is for {neff.target.name}, not {target}", param_hint="--target")
    graph = pick_subgraph(neff, subgraph)
    missing = [name for name in wanted if name not in graph.streams]
    if missing:
        raise NotFoundError(f"{file}: no stream for {', '.join(missing)} in {graph.name}")
    chosen = [name for name in ENGINES if name in graph.streams and (not wanted or name in wanted)]
    return Streams(neff.target, graph.dialect, {name: graph.streams[name] for name in chosen}, neff, subgraph)


def parse_range(text: str | None) -> slice:
    """Return the slice that FIRST:END, FIRST:, :END or one number gives."""
    if text is None:
        return slice(None)
    first, colon, end = text.partition(":")
    try:
        low, high = int(first or "0", 0), int(end, 0) if end else None
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not FIRST:END", param_hint="--range") from None
    if low < 0 or (high is not None and high < 0):
        raise typer.BadParameter("program counters are not negative", param_hint="--range")
    return slice(low, high if colon else low + 1)


def rows(
    streams: Streams, pcs: slice, *, with_raw: bool, with_source: bool, with_chain: bool = False
) -> dict[str, Iterator[dict[str, Any]]]:
    """Return, per engine, one plain record per instruction, made when it is read."""
    return {
        engine: _rows(streams, engine, stream, pcs, with_raw, with_source, with_chain)
        for engine, stream in streams.streams.items()
    }


def _rows(
    streams: Streams,
    engine: str,
    stream: Sequence[Instruction],
    pcs: slice,
    with_raw: bool,
    with_source: bool,
    with_chain: bool,
) -> Iterator[dict[str, Any]]:
    offsets = getattr(stream, "offsets", None)
    for pc in range(*pcs.indices(len(stream))):
        word = stream[pc]
        row = {
            "pc": pc,
            "offset": offsets[pc] if offsets is not None else pc * 64,
            "name": word.name,
            "operands": word.operands,
            "asm": word.asm,
        }
        if with_raw:
            row["raw"] = word.raw.hex()
        if with_source and streams.neff is not None:
            where = streams.neff.source_of(engine, row["offset"] // 64, streams.subgraph)
            if where is not None:
                row["source"] = {"file": where.file, "line": where.line, "name": where.name}
            if with_chain:
                graph = streams.neff.subgraphs[streams.subgraph]
                row["chain"] = steps_data(graph.chain_of(engine, row["offset"] // 64))
        yield row


def lines(
    rows_by_engine: dict[str, Iterator[dict[str, Any]]], *, with_raw: bool, sources: SourceLines | None = None
) -> Iterator[str]:
    """Return the listing for people: a heading per engine, then pc, name, operands and source.

    Rows with a chain have it above them as far as it differs from the row before; `sources` gives the lines themselves.
    """
    first = True
    for engine, items in rows_by_engine.items():
        if not first:
            yield ""
        first = False
        yield bold(f"{engine}:")
        empty, last = True, None
        shown: list[str] = []
        for row in items:
            empty = False
            where = row.get("source") or {}
            place = f"{where['file']}:{where['line']}" if where.get("file") else None
            if place != last and sources is not None and place is not None:
                text = sources.line(where["file"], where["line"])
                yield f"          # {place}" + (f"   {text}" if text else "")
                last = place
            elif place != last:
                yield f"          # {place or '(no source line)'}"
                last = place
            above = chain_lines(row.get("chain", []), place)
            yield from (f"          #   {text}" for text in above if text not in shown)
            shown = above
            yield f"{row['pc']:6}  {row['name']:20} {row['operands']}".rstrip()
            if with_raw:
                yield from (f"        {row['raw'][i : i + 64]}" for i in range(0, len(row["raw"]), 64))
        if empty:
            yield "        (no instructions in range)"


def asm_lines(streams: Streams, rows_by_engine: dict[str, Iterator[dict[str, Any]]]) -> Iterable[str]:
    """Return the words as a .s file; data declarations are not part of a listing."""
    yield f".target {streams.target.name}"
    if streams.dialect != "neuron":
        yield f".dialect {streams.dialect}"
    for engine, items in rows_by_engine.items():
        yield f".engine {engine.lower()}"
        total = 0
        for row in items:
            total += 1
            where = row.get("source")
            yield f"    {row['asm']}" + (
                f"    # {Path(where['file']).name}:{where['line']}" if where and where["file"] else ""
            )
        yield f"# {count(total, 'instruction')}"
