"""The transfers of a NEFF: descriptor blocks that triggers name, and words that describe a transfer themselves."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from neurontools.render.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Subgraph
    from formats.neff.transfers import Descriptor

__all__ = ["dma", "dma_lines"]

ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")


def dma(graph: Subgraph, queue: str | None) -> dict[str, Any]:
    """Return the blocks with their descriptors, and the direct words, of one queue or of all."""
    blocks = [
        {
            "queue": block.queue,
            "block_id": block.block_id,
            "engine": block.engine,
            "semaphore": block.semaphore,
            "comment": block.comment,
            "bytes": sum(_moved(one) for one in block.descriptors),
            "triggers": [],
            "descriptors": [_descriptor(one) for one in block.descriptors],
        }
        for block in graph.dma_blocks.values()
        if queue in (None, block.queue)
    ]
    by_place = {(block["queue"], block["block_id"]): block for block in blocks}
    words = []
    for engine, pc, slot, word in _transfer_words(graph):
        if word.NAME == "PSEUDO_DMA_TRIGGER":
            triggered: Any = by_place.get((word.queue, word.block_id))
            if triggered is not None:
                triggered["triggers"].append({"engine": engine, "pc": pc})
        elif queue in (None, _queue_of(graph, engine)):
            words.append({**_direct(graph, engine, pc, word), "line": _line(graph, engine, slot)})
    return {"subgraph": graph.name, "blocks": blocks, "words": words}


def _transfer_words(graph: Subgraph) -> Iterator[tuple[str, int, int, Any]]:
    from formats.isa import DmaDirect2d, DmaIndirect, PseudoDmaDirect2d, PseudoDmaTrigger

    kinds = (PseudoDmaTrigger, PseudoDmaDirect2d, DmaDirect2d, DmaIndirect)
    for engine in ENGINES:
        stream = graph.streams[engine]
        for pc, word in enumerate(stream):
            if isinstance(word, kinds):
                yield engine, pc, stream.offsets[pc] // 64, word


def _queue_of(graph: Subgraph, engine: str) -> str | None:
    """Return the dynamic queue that an engine's direct words go to."""
    names = [q.name for q in graph.queues.values() if q.kind == "dynamic" and q.engine == engine]
    return names[0] if names else None


def _moved(descriptor: Descriptor) -> int:
    return prod(descriptor.target_sizes) if descriptor.target_sizes else 0


def _descriptor(one: Descriptor) -> dict[str, Any]:
    sources = [
        {"variable": s.variable, "offset": s.offset, "sizes": list(s.sizes), "steps": list(s.steps), "dtype": s.dtype}
        for s in one.sources
    ] or [
        {
            "variable": one.source, "offset": one.source_offset, "sizes": list(one.source_sizes),
            "steps": list(one.source_steps), "dtype": one.source_dtype,
        }
    ]  # fmt: skip
    target = {
        "variable": one.target, "offset": one.target_offset, "sizes": list(one.target_sizes),
        "steps": list(one.target_steps), "dtype": one.target_dtype,
    }  # fmt: skip
    return {"op": one.op, "sources": sources, "target": target, "bytes": _moved(one)}


def _direct(graph: Subgraph, engine: str, pc: int, word: Any) -> dict[str, Any]:
    sides = {}
    for name in ("src", "dst"):
        address = getattr(word, name)
        pattern = getattr(word, f"{name}_pattern")
        sides[name] = {
            "where": _where(graph, address),
            "bytes": prod(pattern.counts) * getattr(word, f"{name}_element_size"),
        }
    return {
        "engine": engine,
        "pc": pc,
        "queue": _queue_of(graph, engine),
        "semaphore": word.semaphore,
        "source": sides["src"]["where"],
        "target": sides["dst"]["where"],
        "bytes": sides["dst"]["bytes"],
    }


def _line(graph: Subgraph, engine: str, slot: int) -> str | None:
    location = graph.source_of(engine, slot)
    return None if location is None or location.file is None else f"{location.file}:{location.line}"


def _where(graph: Subgraph, address: Any) -> str:
    """Return "name+0x10" for a variable, else the address as the word holds it."""
    if address.form == "variable":
        names = {v.var_id: v.name for v in graph.variables.values()}
        return f"{names.get(address.index, f'variable {address.index}')}+0x{address.offset:x}"
    if address.form == "table":
        table_names = _table_names(graph)
        named = table_names[address.index] if address.index < len(table_names) else f"table entry {address.index}"
        return f"{named}+0x{address.offset:x}"
    return f"0x{address.offset:x}"


def _table_names(graph: Subgraph) -> list[str]:
    by_id = {v.var_id: v.name for v in graph.variables.values()}
    for variable in graph.variables.values():
        if variable.kind == "dge-table":
            return [by_id.get(entry, f"variable {entry}") for entry in variable.entries]
    return []


def dma_lines(found: dict[str, Any]) -> list[str]:
    """Return `neff dma` for people."""
    lines = []
    for block in found["blocks"]:
        started = ", ".join(f"{t['engine']} pc {t['pc']}" for t in block["triggers"]) or "nothing"
        lines.append(
            f"{block['queue']} block {block['block_id']}: {bytes_text(block['bytes'])}, S[{block['semaphore']}], "
            f"started by {started}"
        )
        for one in block["descriptors"]:
            source = ", ".join(_side(side) for side in one["sources"])
            lines.append(f"  {one['op']}  {source} -> {_side(one['target'])}")
    if found["words"]:
        rows = [
            [w["engine"], w["pc"], w["queue"], w["source"], w["target"], w["bytes"], f"S[{w['semaphore']}]", w["line"]]
            for w in found["words"]
        ]
        lines += ["", *table(["engine", "pc", "queue", "from", "to", "bytes", "raises", "line"], rows)]
    total = sum(b["bytes"] for b in found["blocks"]) + sum(w["bytes"] for w in found["words"])
    summary = f"{count(len(found['blocks']), 'block')}, {count(len(found['words']), 'word')}, {bytes_text(total)}"
    return [*lines, "", summary] if lines else [summary]


def _side(side: dict[str, Any]) -> str:
    steps, sizes = (",".join(map(str, side[name])) for name in ("steps", "sizes"))
    return f"{side['dtype']}@{side['variable']}+0x{side['offset']:x}[{steps}][{sizes}]"
