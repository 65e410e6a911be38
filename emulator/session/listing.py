"""Source lines and words around where engines stand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.semaphores import signed
from emulator.sequencer import Sequencer, holds
from emulator.session.breakpoints import Breakpoints
from emulator.session.names import short_engine
from emulator.session.results import Disassembly, DisassemblyRow, Listing, SourceRow
from formats import isa
from formats.errors import NotFoundError
from formats.isa import WaitMode

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loader import LoadedWord
    from emulator.session.program import Program

__all__ = ["disassemble", "index_of", "listing", "read_source"]

_PC = attrgetter("pc")


def read_source(file: str, folders: Iterable[Path]) -> list[str]:
    """Return the lines of a source file: as the program names it, or beside one of `folders`; NotFoundError."""
    named = Path(file)
    for path in (named, *(folder / named for folder in folders), *(folder / named.name for folder in folders)):
        if path.is_file():
            try:
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError as error:
                raise NotFoundError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    raise NotFoundError(f"source file {file} is not here")


def listing(
    device: Device, program: Program, breakpoints: Breakpoints, file: str, lines: list[str], first: int, count: int
) -> Listing:
    """Return `count` lines from `first` on, with the engines and breakpoints on them."""
    standing: dict[int, list[str]] = {}
    many = len(device.cores) > 1
    for core in device.cores:
        for name, engine in core.engines.items():
            loaded = engine.next_loaded
            source = None if loaded is None else program.source(core.index, name, loaded.pc)
            if source is not None and source.file == file and source.line is not None:
                standing.setdefault(source.line, []).append((f"nc{core.index}." if many else "") + short_engine(name))
    stops: dict[int, list[int]] = {}
    for each in breakpoints.all:
        for place in each.places:
            source = program.source(*place)
            if source is not None and source.file == file and source.line is not None:
                numbers = stops.setdefault(source.line, [])
                if each.number not in numbers:
                    numbers.append(each.number)
    rows = [
        SourceRow(number, lines[number - 1], tuple(standing.get(number, ())), tuple(stops.get(number, ())))
        for number in range(first, min(first + count, len(lines) + 1))
    ]
    return Listing(file, tuple(rows))


def index_of(engine: Sequencer, pc: int) -> int:
    """Return the index of the first word of an engine from a compiler pc on, behind the last one without such."""
    return bisect_left(engine.words, pc, key=_PC)


def disassemble(
    device: Device, program: Program, breakpoints: Breakpoints, core: int, engine: str, first: int, count: int,
    *, sources: bool = True,
) -> Disassembly:  # fmt: skip
    """Return `count` words of an engine from index `first` of its stream on, with their source lines or without."""
    sequencer = device.cores[core].engines[engine]
    rows = [
        DisassemblyRow(
            loaded.pc,
            program.text(core, engine, loaded.pc),
            program.source(core, engine, loaded.pc) if sources else None,
            _state(sequencer, index),
            _satisfied(sequencer, loaded),
            breakpoints.at(core, engine, loaded.pc),
        )
        for index, loaded in enumerate(sequencer.words[first : first + count], first)
    ]
    return Disassembly(core, engine, sequencer.count, tuple(rows))


def _state(engine: Sequencer, index: int) -> str:
    oldest = engine.position - len(engine.in_flight)
    if index < oldest:
        return "done"
    if index < engine.position:
        return "flying"
    return "next" if index == engine.position else ""


def _satisfied(engine: Sequencer, loaded: LoadedWord) -> bool | None:
    """Tell whether the waits of a word hold now; None without any."""
    raw = loaded.word.raw
    waits = [(raw[4], raw[5], raw[8:12])] if raw[4] else []
    if isinstance(loaded.word, isa.EventSemaphore) and raw[32]:
        waits.append((raw[32], raw[33], raw[36:40]))
    if not waits:
        return None
    core = engine.core
    return all(
        holds(
            mode,
            (core.events if mode == WaitMode.EVENT_SET else core.semaphores)[index],
            signed(int.from_bytes(value, "little")),
        )
        for mode, index, value in waits
    )
