"""What a NEFF consists of, counted: words by engine and opcode, waits, multiplications, transfers, bytes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from neurontools.render.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

__all__ = ["stats", "stats_lines"]

ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")


def stats(neff: Neff) -> dict[str, Any]:
    """Return counts for every subgraph, and for the file."""
    parts = [_subgraph(graph) for graph in neff.subgraphs]
    return {
        "words": sum(part["words"] for part in parts),
        "macs": sum(part["macs"] for part in parts),
        "transfer_bytes": sum(part["transfer_bytes"] for part in parts),
        "member_bytes": _members(neff),
        "subgraphs": parts,
    }


def _members(neff: Neff) -> dict[str, int]:
    """Return the bytes of the archive by what they are for."""
    kinds: dict[str, int] = {}
    for member in neff.members:
        leaf = member.name.rpartition("/")[2]
        kind = (
            "debug information" if "debug_info" in leaf
            else "instructions" if leaf in {f"{engine}.bin" for engine in ENGINES}
            else "constants" if leaf.endswith(".npy")
            else "tables" if leaf.endswith(".bin")
            else "descriptions" if leaf.endswith(".json")
            else "other"
        )  # fmt: skip
        kinds[kind] = kinds.get(kind, 0) + member.size
    return dict(sorted(kinds.items(), key=lambda item: -item[1]))


def _subgraph(graph: Subgraph) -> dict[str, Any]:
    engines, macs = {}, 0
    for engine in ENGINES:
        engines[engine], found = _engine(graph, engine)
        macs += found
    blocks = graph.dma_blocks.values()
    listed = sum(prod(one.target_sizes) for block in blocks for one in block.descriptors if one.target_sizes)
    kinds: dict[str, dict[str, int]] = {}
    for variable in graph.variables.values():
        row = kinds.setdefault(variable.kind, {"variables": 0, "bytes": 0})
        row["variables"] += 1
        row["bytes"] += variable.size or 0
    return {
        "name": graph.name,
        "dialect": graph.dialect,
        "words": sum(one["words"] for one in engines.values()),
        "engines": engines,
        "macs": macs,
        "transfers": sum(len(b.descriptors) for b in blocks) + sum(one["transfers"] for one in engines.values()),
        "transfer_bytes": listed + sum(one["transfer_bytes"] for one in engines.values()),
        "variables": kinds,
    }


def _engine(graph: Subgraph, engine: str) -> tuple[dict[str, Any], int]:
    """Return the counts of one stream, and its multiply-accumulates; whole columns at a time, for long streams."""
    from formats import isa
    from formats.isa import columns_by_class

    data = graph.stream_bytes(engine)
    opcodes: dict[str, int] = {}
    waits = updates = transfers = transfer_bytes = macs = unknown = words = 0
    for cls, columns in columns_by_class(data, graph.neff.target, graph.dialect).items():
        number = len(columns["index"])
        words += number
        if cls is isa.Unknown:
            unknown += number
            for code in sorted({int(one) for one in columns["opcode"]}):
                opcodes[f"opcode 0x{code:02x}"] = int((columns["opcode"] == code).sum())
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
    return {
        "words": words,
        "bytes": len(data),
        "opcodes": dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
        "unknown": unknown,
        "waits": waits,
        "updates": updates,
        "transfers": transfers,
        "transfer_bytes": transfer_bytes,
    }, macs


def stats_lines(found: dict[str, Any]) -> list[str]:
    """Return `neff stats` for people."""
    lines: list[str] = []
    for part in found["subgraphs"]:
        rows = [
            [engine, one["words"], one["waits"], one["updates"], one["transfers"], one["unknown"]]
            for engine, one in part["engines"].items()
        ]
        lines += [f"{part['name']}: {count(part['words'], 'word')}, {part['dialect']} dialect", ""]
        lines += [*table(["engine", "words", "waits", "updates", "transfers", "unknown"], rows), ""]
        rows = [
            [engine, name, number] for engine, one in part["engines"].items() for name, number in one["opcodes"].items()
        ]
        lines += [*table(["engine", "instruction", "words"], rows), ""]
        rows = [[kind, one["variables"], one["bytes"]] for kind, one in part["variables"].items()]
        lines += [*table(["variables", "number", "bytes"], rows), ""]
        lines.append(
            f"{part['macs']:,} multiply-accumulates (fp32 takes two passes), {count(part['transfers'], 'transfer')} of "
            f"{bytes_text(part['transfer_bytes'])}"
        )
        lines.append("")
    lines += table(["members", "bytes"], [[kind, number] for kind, number in found["member_bytes"].items()])
    return lines
