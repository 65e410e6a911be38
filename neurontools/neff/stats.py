"""`neurontools neff stats`: what a NEFF consists of, counted."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph


class EngineCounts(NamedTuple):
    """The words of one engine; `transfers` are words that describe a transfer themselves."""

    words: int
    bytes: int
    opcodes: dict[str, int]
    unknown: int
    waits: int
    updates: int
    transfers: int
    transfer_bytes: int


class VariableCounts(NamedTuple):
    """The variables of one kind."""

    variables: int
    bytes: int


class SubgraphCounts(NamedTuple):
    """One subgraph in numbers."""

    name: str
    dialect: str
    words: int
    engines: dict[str, EngineCounts]
    macs: int
    transfers: int
    transfer_bytes: int
    variables: dict[str, VariableCounts]


class Stats(NamedTuple):
    """The result of `neff stats`."""

    words: int
    macs: int
    transfer_bytes: int
    member_bytes: dict[str, int]
    subgraphs: list[SubgraphCounts]


def counted(neff: Neff) -> Stats:
    """Return counts for every subgraph, and for the file."""
    parts = [_subgraph(graph) for graph in neff.subgraphs]
    return Stats(
        sum(part.words for part in parts),
        sum(part.macs for part in parts),
        sum(part.transfer_bytes for part in parts),
        _member_bytes(neff),
        parts,
    )


def _member_bytes(neff: Neff) -> dict[str, int]:
    """Return the bytes of the archive by what they are for."""
    kinds: Counter[str] = Counter()
    for member in neff.members:
        kinds[_kind(member.name.rpartition("/")[2])] += member.size
    return dict(kinds.most_common())


def _kind(leaf: str) -> str:
    if "debug_info" in leaf:
        return "debug information"
    if leaf in {f"{engine}.bin" for engine in ENGINES}:
        return "instructions"
    endings = {".npy": "constants", ".bin": "tables", ".json": "descriptions"}
    return next((kind for ending, kind in endings.items() if leaf.endswith(ending)), "other")


def _subgraph(graph: Subgraph) -> SubgraphCounts:
    counts = {engine: _engine(graph, engine) for engine in ENGINES}
    engines = {engine: found for engine, (found, _) in counts.items()}
    blocks = graph.dma_blocks.values()
    listed = sum(prod(one.target_sizes) for block in blocks for one in block.descriptors if one.target_sizes)
    kinds: dict[str, VariableCounts] = {}
    for variable in graph.variables.values():
        row = kinds.get(variable.kind, VariableCounts(0, 0))
        kinds[variable.kind] = VariableCounts(row.variables + 1, row.bytes + (variable.size or 0))
    return SubgraphCounts(
        graph.name,
        graph.dialect,
        sum(one.words for one in engines.values()),
        engines,
        sum(macs for _, macs in counts.values()),
        sum(len(b.descriptors) for b in blocks) + sum(one.transfers for one in engines.values()),
        listed + sum(one.transfer_bytes for one in engines.values()),
        kinds,
    )


def _engine(graph: Subgraph, engine: str) -> tuple[EngineCounts, int]:
    """Return the counts of one stream, and its multiply-accumulates; whole columns at a time, for long streams."""
    from formats import isa  # deferred: start-up
    from formats.isa import columns_by_class  # deferred: start-up

    data = graph.stream_bytes(engine)
    opcodes: Counter[str] = Counter()
    waits = updates = transfers = transfer_bytes = macs = unknown = words = 0
    for cls, columns in columns_by_class(data, graph.neff.target, graph.dialect).items():
        number = len(columns["index"])
        words += number
        if cls is isa.Unknown:
            unknown += number
            opcodes.update(f"opcode 0x{int(code):02x}" for code in columns["opcode"])
        else:
            opcodes[cls.NAME] = number
        waits += int((columns["wait_mode"] != 0).sum())
        updates += int((columns["update_mode"] != 0).sum())
        if cls is isa.EventSemaphore:
            waits += int((columns["wait2_mode"] != 0).sum())
            updates += int((columns["update2_mode"] != 0).sum())
        elif cls is isa.MatMul:
            moving = columns["src.counts"].astype("u8").prod(axis=1)
            computes = columns["transpose_mode"] == 0
            macs += int((moving * columns["rows"] * columns["cols"] * computes).sum())
        elif cls in (isa.PseudoDmaDirect2d, isa.DmaDirect2d, isa.DmaIndirect):
            rows = columns["rows"] if cls is isa.DmaIndirect else 1
            transfers += number
            counts = columns["dst_pattern.counts"].astype("u8").prod(axis=1)
            transfer_bytes += int((counts * columns["dst_element_size"] * rows).sum())
    ordered = dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0])))
    return EngineCounts(words, len(data), ordered, unknown, waits, updates, transfers, transfer_bytes), macs


def view(found: Stats) -> list[str]:
    """Return the counts for people."""
    lines: list[str] = []
    for part in found.subgraphs:
        lines += [f"{part.name}: {count(part.words, 'word')}, {part.dialect} dialect", ""]
        rows: list[list[object]] = [
            [engine, one.words, one.waits, one.updates, one.transfers, one.unknown]
            for engine, one in part.engines.items()
        ]
        lines += [*table(["engine", "words", "waits", "updates", "transfers", "unknown"], rows), ""]
        rows = [[engine, name, number] for engine, one in part.engines.items() for name, number in one.opcodes.items()]
        lines += [*table(["engine", "instruction", "words"], rows), ""]
        rows = [[kind, *one] for kind, one in part.variables.items()]
        lines += [*table(["variables", "number", "bytes"], rows), ""]
        lines.append(
            f"{part.macs:,} multiply-accumulates (fp32 takes two passes), {count(part.transfers, 'transfer')} of "
            f"{bytes_text(part.transfer_bytes)}"
        )
        lines.append("")
    return lines + table(["members", "bytes"], found.member_bytes.items())


def stats(file: NeffFile, json: Json = False) -> None:
    """Count instructions, waits, transfers and bytes.

    Words by engine and instruction; an fp32 product counts its two passes, a transpose counts as none.
    """
    with report("neff stats", json, file=file) as out:
        found = counted(open_neff_file(file))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(stats, result=Stats)
