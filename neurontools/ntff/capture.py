"""A capture beside the NEFF it is of: which cores and engines are meant, where a loaded word comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from formats.errors import NotFoundError
from neurontools.files import need_file

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph
    from formats.ntff import Buffer, CoreCapture, Ntff

__all__ = ["chosen_buffers", "chosen_cores", "info", "open_pair", "source_text", "subgraph_of", "words"]

_ENGINES = {"pe": "PE", "act": "Activation", "pool": "Pool", "dve": "DVE", "sp": "SP", "tensor": "PE",
            "scalar": "Activation", "gpsimd": "Pool", "vector": "DVE", "sync": "SP"}  # fmt: skip


def open_pair(path: Path, neff: Path | None) -> tuple[Ntff, Neff | None, list[str]]:
    """Return a capture, the NEFF it is of where one is named, and what is odd about the two."""
    from formats.neff import open_neff
    from formats.ntff import open_ntff

    ntff = open_ntff(need_file(path))
    if neff is None:
        return ntff, None, []
    opened = open_neff(need_file(neff))
    odd = []
    if ntff.uuid and opened.header.uuid.hex() != ntff.uuid:
        odd.append(f"{neff} has the uuid {opened.header.uuid.hex()}; captured was {ntff.uuid}")
    return ntff, opened, odd


def chosen_cores(ntff: Ntff, core: int | None) -> tuple[CoreCapture, ...]:
    """Return the cores that an option names: a number on the device, or all."""
    return ntff.cores if core is None else (ntff.core(core),)


def chosen_buffers(ntff: Ntff, core: int | None, engine: str | None) -> Iterator[tuple[CoreCapture, Buffer]]:
    """Yield the instruction buffers that options name."""
    name = None
    if engine is not None:
        name = _ENGINES.get(engine.lower(), engine)
        if name not in _ENGINES.values():
            raise typer.BadParameter(f"{engine!r} is none of pe, act, pool, dve, sp", param_hint="--engine")
    for each in chosen_cores(ntff, core):
        if name is not None:
            yield each, ntff.buffer(each.core, name)
        else:
            yield from ((each, buffer) for buffer in ntff.buffers(each.core))


def subgraph_of(neff: Neff | None, capture: CoreCapture) -> Subgraph | None:
    """Return the subgraph that a core ran, None where no NEFF is at hand."""
    if neff is None:
        return None
    for subgraph in neff.subgraphs:
        if subgraph.name == capture.name:
            return subgraph
    have = ", ".join(subgraph.name for subgraph in neff.subgraphs)
    raise NotFoundError(f"the NEFF has no subgraph {capture.name!r}; there are {have}")


def source_text(subgraph: Subgraph | None, engine: str, pc: int | None) -> str | None:
    """Return the kernel line of one of the compiler's words, as far as the NEFF knows it."""
    if subgraph is None or pc is None:
        return None
    found = subgraph.source_of(engine, pc)
    if found is None:
        return None
    place = f"{found.file}:{found.line}" if found.file and found.line else None
    return place or found.name or None


def info(ntff: Ntff) -> dict[str, Any]:
    """Return what a capture holds, as plain data."""
    from formats.ntff import LAYOUT
    from formats.ntff.records import RECORD

    meta = ntff.metadata
    rings: list[dict[str, Any]] = []
    for each in ntff.cores:
        for queue, ring in dict.fromkeys((one.queue, one.ring) for one in each.rings):
            engines = [one.engine for one in each.rings if (one.queue, one.ring) == (queue, ring)]
            rings.append({"core": each.core, "queue": queue, "ring": ring, "dma_engines": engines})
    return {
        "version": ntff.version,
        "name": ntff.name,
        "uuid": ntff.uuid,
        "runtime": meta.runtime,
        "driver": meta.driver,
        "collectives": meta.collectives,
        "origin_ps": meta.origin_ps,
        "instance_type": meta.instance_type,
        "instance_id": meta.instance_id,
        "target": ntff.target.name,
        "cores": [_core(ntff, each) for each in ntff.cores],
        "rings": rings,
        "sections": [{"kind": one.kind, "core": one.core, "instance": one.instance, "records": one.nbytes // RECORD}
                     for one in ntff.sections if one.nbytes],
        "established": [one._asdict() for one in LAYOUT],
        "unknown_fields": len(meta.unknown),
    }  # fmt: skip


def _core(ntff: Ntff, core: CoreCapture) -> dict[str, Any]:
    engines = []
    for buffer in ntff.buffers(core.core):
        words = len(buffer.data) // 64
        inserted, deleted = buffer.map.inserted, buffer.map.deleted
        engines.append({"engine": buffer.engine, "address": buffer.address, "words": words, "inserted": inserted,
                        "deleted": deleted, "compiler_words": words - inserted + deleted})  # fmt: skip
    memory = [{"category": one.category, "bytes": one.nbytes} for one in core.memory]
    return {"core": core.core, "name": core.name, "engines": engines, "memory": memory}


def words(
    ntff: Ntff, neff: Neff | None, core: int | None, engine: str | None, program: bool, start: int, count: int | None
) -> list[dict[str, Any]]:
    """Return the loaded words of the chosen engines, with how often and when each ran."""
    found = []
    for capture, buffer in chosen_buffers(ntff, core, engine):
        subgraph = subgraph_of(neff, capture)
        runs = _runs(ntff, capture.core, buffer.engine)
        rows = []
        for pc in range(start, len(buffer.words)):
            if count is not None and len(rows) >= count:
                break
            compiler_pc = buffer.compiler_pc(pc)
            if program and compiler_pc is None:
                continue
            ran = runs.get(pc, ())
            last = ran[-1] if ran else None
            rows.append({
                "pc": pc,
                "compiler_pc": compiler_pc,
                "text": buffer.words[pc].text,
                "times": len(ran),
                "start_ps": None if last is None else last.start_ps,
                "duration_ps": None if last is None or last.end_ps is None else last.duration_ps,
                "source": source_text(subgraph, buffer.engine, compiler_pc),
            })  # fmt: skip
        found.append({"core": capture.core, "name": capture.name, "engine": buffer.engine, "rows": rows})
    return found


def _runs(ntff: Ntff, core: int, engine: str) -> dict[int, list[Any]]:
    from formats.errors import UnsupportedError

    runs: dict[int, list[Any]] = {}
    try:
        executed = ntff.executed(core)
    except UnsupportedError:  # the words are there all the same
        return runs
    for each in executed:
        if each.engine == engine:
            runs.setdefault(each.pc, []).append(each)
    return runs
