"""A capture and the NEFF that ran: which cores and engines are meant, where a loaded word comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from formats.engines import ENGINE_ALIASES
from formats.errors import NotFoundError
from neurontools.command.files import need_file

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph
    from formats.ntff import Buffer, CoreCapture, Ntff

__all__ = ["capture_of", "chosen_buffers", "chosen_cores", "open_both", "open_pair", "source_text", "subgraph_of"]


def open_pair(path: Path, neff: Path | None) -> tuple[Ntff, Neff | None, list[str]]:
    """Return a capture, the NEFF that ran where one is named, and what does not fit between the two."""
    from formats.ntff import open_ntff  # deferred: start-up

    if neff is not None:
        return open_both(path, neff)
    return open_ntff(need_file(path)), None, []


def open_both(path: Path, neff: Path) -> tuple[Ntff, Neff, list[str]]:
    """Return a capture, the NEFF that ran, and what does not fit between the two."""
    from formats.neff import open_neff  # deferred: start-up

    opened = open_neff(need_file(neff))
    ntff, odd = capture_of(opened, path)
    return ntff, opened, odd


def capture_of(neff: Neff, path: Path) -> tuple[Ntff, list[str]]:
    """Return a capture, and what says that it is of another file."""
    from formats.ntff import open_ntff  # deferred: start-up

    ntff = open_ntff(need_file(path))
    uuid = neff.header.uuid
    if ntff.uuid in (uuid.hex(), uuid.split(b"\0")[0].hex()):  # some captures end it at its first zero byte
        return ntff, []
    return ntff, [f"{path} is of the uuid {ntff.uuid or '(none)'}; {neff.path or 'the NEFF'} has the uuid {uuid.hex()}"]


def chosen_cores(ntff: Ntff, core: int | None) -> tuple[CoreCapture, ...]:
    """Return the cores that an option names: a number on the device, or all."""
    return ntff.cores if core is None else (ntff.core(core),)


def chosen_buffers(ntff: Ntff, core: int | None, engine: str | None) -> Iterator[tuple[CoreCapture, Buffer]]:
    """Yield the instruction buffers that options name."""
    name = None
    if engine is not None:
        name = ENGINE_ALIASES.get(engine.lower())
        if name is None:
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
