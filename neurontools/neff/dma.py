"""`neurontools neff dma`: every transfer that a subgraph describes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile, SubgraphNumber
from neurontools.command.output import report
from neurontools.neff.rows import open_subgraph
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.isa import DmaAddress, DmaDirect2d, DmaIndirect, PseudoDmaDirect2d, PseudoDmaTrigger
    from formats.neff import Descriptor, Subgraph

    DirectWord = PseudoDmaDirect2d | DmaDirect2d | DmaIndirect


class Trigger(NamedTuple):
    """A word that starts a block."""

    engine: str
    pc: int


class EndRow(NamedTuple):
    """One end of a descriptor, innermost dimension first, in bytes; of the sizes only the innermost is bytes."""

    variable: str
    offset: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    dtype: str


class DescriptorRow(NamedTuple):
    """One transfer of a block."""

    op: str
    sources: list[EndRow]
    target: EndRow
    bytes: int


class BlockRow(NamedTuple):
    """Descriptors that one trigger starts."""

    queue: str
    block_id: int
    engine: str
    semaphore: int | None
    comment: str | None
    bytes: int
    triggers: list[Trigger]
    descriptors: list[DescriptorRow]


class WordRow(NamedTuple):
    """A word that describes a transfer itself."""

    engine: str
    pc: int
    queue: Annotated[str | None, "the engine's dynamic queue"]
    semaphore: int
    source: str
    target: str
    bytes: int
    line: str | None


class Transfers(NamedTuple):
    """The result of `neff dma`."""

    subgraph: str
    blocks: list[BlockRow]
    words: list[WordRow]


def transfers(graph: Subgraph, queue: str | None) -> Transfers:
    """Return the blocks with their descriptors, and the direct words, of one queue or of all."""
    from formats.isa import PseudoDmaTrigger  # deferred: start-up

    triggers: dict[tuple[str, int], list[Trigger]] = {}
    words = []
    dynamic: dict[str | None, str] = {}
    for one in graph.queues.values():
        if one.kind == "dynamic":
            # The first one: the words name an engine, not a queue.
            dynamic.setdefault(one.engine, one.name)
    for engine, pc, slot, word in _transfer_words(graph):
        if isinstance(word, PseudoDmaTrigger):
            triggers.setdefault((word.queue, word.block_id), []).append(Trigger(engine, pc))
        elif queue in (None, dynamic.get(engine)):
            words.append(_direct(graph, engine, pc, slot, word, dynamic.get(engine)))
    blocks = []
    for key, block in graph.dma_blocks.items():
        if queue in (None, block.queue):
            rows = [_descriptor(each) for each in block.descriptors]
            moved = sum(row.bytes for row in rows)
            blocks.append(BlockRow(*block[:4], block.comment, moved, triggers.get(key, []), rows))
    return Transfers(graph.name, blocks, words)


def _transfer_words(graph: Subgraph) -> Iterator[tuple[str, int, int, PseudoDmaTrigger | DirectWord]]:
    """Yield engine, pc, 64-byte slot and word."""
    from formats.isa import DmaDirect2d, DmaIndirect, PseudoDmaDirect2d, PseudoDmaTrigger  # deferred: start-up

    for engine, stream in graph.streams.items():
        for pc, word in enumerate(stream):
            if isinstance(word, PseudoDmaTrigger | PseudoDmaDirect2d | DmaDirect2d | DmaIndirect):
                yield engine, pc, stream.offsets[pc] // WORD, word


def _descriptor(one: Descriptor) -> DescriptorRow:
    sources = [EndRow(s.variable, s.offset, s.sizes, s.steps, s.dtype) for s in one.sources] or [
        EndRow(one.source, one.source_offset, one.source_sizes, one.source_steps, one.source_dtype)
    ]
    target = EndRow(one.target, one.target_offset, one.target_sizes, one.target_steps, one.target_dtype)
    return DescriptorRow(one.op, sources, target, prod(target.sizes) if target.sizes else 0)


def _direct(graph: Subgraph, engine: str, pc: int, slot: int, word: DirectWord, queue: str | None) -> WordRow:
    location = graph.source_of(engine, slot)
    return WordRow(
        engine,
        pc,
        queue,
        word.semaphore,
        _address(graph, word.src),
        _address(graph, word.dst),
        prod(word.dst_pattern.counts) * word.dst_element_size,
        None if location is None or location.file is None else f"{location.file}:{location.line}",
    )


def _address(graph: Subgraph, address: DmaAddress) -> str:
    """Return "name+0x10" for a variable, else the address as the word holds it."""
    named = ""
    if address.form == "variable":
        named = f"{_variable(graph, address.index)}+"
    elif address.form == "table":
        entries = graph.dge_table.entries if graph.dge_table is not None else ()
        known = address.index < len(entries)
        named = f"{_variable(graph, entries[address.index]) if known else f'table entry {address.index}'}+"
    return f"{named}0x{address.offset:x}"


def _variable(graph: Subgraph, var_id: int) -> str:
    found = graph.variables_by_id.get(var_id)
    return f"variable {var_id}" if found is None else found.name


def view(found: Transfers) -> list[str]:
    """Return the transfers for people."""
    lines = []
    for block in found.blocks:
        started = ", ".join(f"{one.engine} pc {one.pc}" for one in block.triggers) or "nothing"
        lines.append(
            f"{block.queue} block {block.block_id}: {bytes_text(block.bytes)}, S[{block.semaphore}], "
            f"started by {started}"
        )
        for one in block.descriptors:
            lines.append(f"  {one.op}  {', '.join(map(_end, one.sources))} -> {_end(one.target)}")
    if found.words:
        rows = [
            [one.engine, one.pc, one.queue, one.source, one.target, one.bytes, f"S[{one.semaphore}]", one.line]
            for one in found.words
        ]
        lines += ["", *table(["engine", "pc", "queue", "from", "to", "bytes", "raises", "line"], rows)]
    total = sum(one.bytes for one in found.blocks) + sum(one.bytes for one in found.words)
    summary = f"{count(len(found.blocks), 'block')}, {count(len(found.words), 'word')}, {bytes_text(total)}"
    return [*lines, "", summary] if lines else [summary]


def _end(end: EndRow) -> str:
    steps, sizes = (",".join(map(str, numbers)) for numbers in (end.steps, end.sizes))
    return f"{end.dtype}@{end.variable}+0x{end.offset:x}[{steps}][{sizes}]"


def dma(
    file: NeffFile,
    subgraph: SubgraphNumber = 0,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="NAME", help="Transfers of this queue only.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """List the transfers of a subgraph.

    Descriptor blocks come with the words that start them, then the words that describe a transfer themselves.  A side
    is dtype@variable+offset[steps][sizes], innermost first, in bytes; of the sizes only the innermost is bytes, the
    others are counts.
    """
    with report("neff dma", json, file=file, subgraph=subgraph, queue=queue) as out:
        graph = open_subgraph(file, subgraph)
        if queue is not None and queue not in graph.queues:
            raise NotFoundError(f"no queue {queue} in {graph.name}: it has {', '.join(graph.queues) or 'none'}")
        found = transfers(graph, queue)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(dma, result=Transfers)
