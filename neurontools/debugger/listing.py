"""Source lines and words around where engines stand."""

from __future__ import annotations

from emulator.loaded import LoadedWord
from emulator.machine_view import EngineView, MachineView
from emulator.semaphores import holds
from formats.isa.signals import BARRIER
from neurontools.debugger.breakpoints import Breakpoints
from neurontools.debugger.names import short_engine
from neurontools.debugger.place import faulted_index, word_at
from neurontools.debugger.program import Program
from neurontools.debugger.results import Disassembly, DisassemblyRow, Listing, SourceRow

__all__ = ["disassemble", "listing"]


def listing(
    device: MachineView, program: Program, breakpoints: Breakpoints, file: str, lines: list[str], first: int, count: int
) -> Listing:
    """Return `count` lines from `first` on, with the engines and breakpoints on them."""
    standing: dict[int, list[str]] = {}
    many = len(device.cores) > 1
    for core in device.cores:
        for name, engine in core.engines.items():
            loaded = word_at(device, engine)
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


def disassemble(
    device: MachineView, program: Program, breakpoints: Breakpoints, core: int, engine: str, first: int, count: int,
    *, sources: bool = True,
) -> Disassembly:  # fmt: skip
    """Return `count` words of an engine from index `first` of its stream on, with their source lines or without."""
    sequencer = device.cores[core].engines[engine]
    faulted = faulted_index(device, sequencer)
    rows = [
        DisassemblyRow(
            loaded.pc,
            program.text(core, engine, loaded.pc),
            program.source(core, engine, loaded.pc) if sources else None,
            _state(sequencer, index, faulted),
            _satisfied(sequencer, loaded),
            breakpoints.at(core, engine, loaded.pc),
        )
        for index, loaded in enumerate(sequencer.words[first : first + count], first)
    ]
    return Disassembly(core, engine, sequencer.count, tuple(rows))


def _state(engine: EngineView, index: int, faulted: int | None) -> str:
    if index == faulted:
        return "fault"
    oldest = engine.position - len(engine.in_flight)
    if index < oldest:
        return "done"
    if index < engine.position:
        return "flying"
    return "next" if index == engine.position and faulted is None else ""


def _satisfied(engine: EngineView, loaded: LoadedWord) -> bool | None:
    """Return whether the waits of a word hold now; None without any. A barrier is a matter of both cores."""
    waits = [each for each in loaded.word.waits if each.by != BARRIER]
    if not waits:
        return None
    core = engine.core
    return all(
        holds(each.mode, (core.events if each.kind == "event" else core.semaphores)[each.index], each.value)
        for each in waits
    )
