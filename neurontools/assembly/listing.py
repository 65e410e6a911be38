"""Instruction listings: the streams of a file, and one row for every word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from formats.engines import ENGINES
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.numerals import parse_signed
from formats.targets import Target, resolve_target
from neurontools.command.files import need_file, open_neff_file
from neurontools.command.results import LEFT_OUT
from neurontools.neff.chains import StepRow, chain_rows
from neurontools.neff.rows import pick_subgraph

if TYPE_CHECKING:
    from formats.isa import Instruction
    from formats.neff import Subgraph

__all__ = ["Listing", "SourceRow", "Streams", "WordRow", "listed", "open_streams", "parse_range"]


class SourceRow(NamedTuple):
    """The line that a word comes from, and the compiler's name of the instruction."""

    file: str | None
    line: int | None
    name: str | None


class WordRow(NamedTuple):
    """One instruction."""

    pc: int
    offset: Annotated[int, "bytes from the stream's start"]
    name: str
    operands: str
    asm: Annotated[str, "text that assembles to exactly this word"]
    raw: Annotated[str | None, LEFT_OUT, "hexadecimal, with --raw"] = None
    source: Annotated[SourceRow | None, LEFT_OUT] = None
    chain: Annotated[list[StepRow] | None, LEFT_OUT, "with --source: what the word comes from, its own entry first"] = (
        None
    )


class Listing(NamedTuple):
    """The result of `disasm`; the rows are made while they are read."""

    target: str
    dialect: Literal["neuron", "extended"]
    engines: Mapping[str, Iterable[WordRow]]


class Streams(NamedTuple):
    """Instruction streams by engine, and the subgraph they belong to when the file is a NEFF."""

    target: Target
    dialect: Literal["neuron", "extended"]
    streams: dict[str, Sequence[Instruction]]
    graph: Subgraph | None


def open_streams(
    file: Path, subgraph: int, engines: list[str], target: str | None, dialect: str | None = None
) -> Streams:
    """Return the streams of a NEFF's subgraph, or the one stream that a raw file is."""
    from formats.isa import decode_stream  # deferred: start-up
    from neurontools.assembly.assembler import engine_name  # deferred: start-up

    wanted = [engine_name(text) for text in engines]
    if file.suffix == ".bin":
        if len(wanted) > 1:
            raise typer.BadParameter("a raw stream belongs to one engine", param_hint="--engine")
        chip = resolve_target(target or "trn2")
        stream = decode_stream(need_file(file).read_bytes(), chip.generation, dialect or "neuron", str(file))
        known: Literal["neuron", "extended"] = "extended" if stream.dialect == "extended" else "neuron"
        return Streams(chip, known, {wanted[0] if wanted else file.stem: stream}, None)
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
    return Streams(neff.target, graph.dialect, {name: graph.streams[name] for name in chosen}, graph)


def parse_range(text: str | None) -> slice:
    """Return the slice that FIRST:END, FIRST:, :END or one number gives."""
    if text is None:
        return slice(None)
    first, colon, end = text.partition(":")
    try:
        low, high = parse_signed(first or "0"), parse_signed(end) if end else None
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not FIRST:END", param_hint="--range") from None
    if low < 0 or (high is not None and high < 0):
        raise typer.BadParameter("program counters are not negative", param_hint="--range")
    return slice(low, high if colon else low + 1)


def listed(streams: Streams, pcs: slice, *, raw: bool, source: bool, chain: bool) -> Listing:
    """Return the listing of some words of every stream."""
    graph = streams.graph if source else None

    def rows(engine: str, stream: Sequence[Instruction]) -> Iterator[WordRow]:
        offsets = getattr(stream, "offsets", None)
        for pc in range(*pcs.indices(len(stream))):
            word, offset = stream[pc], offsets[pc] if offsets is not None else pc * WORD
            row = WordRow(pc, offset, word.name, word.operands, word.asm, word.raw.hex() if raw else None)
            if graph is not None:
                found = graph.source_of(engine, offset // WORD)
                steps = chain_rows(graph.chain_of(engine, offset // WORD)) if chain else None
                row = row._replace(source=None if found is None else SourceRow(*found[:3]), chain=steps)
            yield row

    engines = {engine: rows(engine, stream) for engine, stream in streams.streams.items()}
    return Listing(streams.target.name, streams.dialect, engines)
