"""Who satisfied a wait: the event that brought a semaphore to the awaited value, followed to its transfer and block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emulator.device import Device
from formats.isa import Awaited, PseudoDmaTrigger, WaitMode
from formats.isa.signals import BARRIER
from neurontools.debugger.results import Met

if TYPE_CHECKING:
    from emulator.journal import Entry
    from emulator.loaded import LoadedWord
    from emulator.machine_view import EngineView
    from neurontools.debugger.execution import Execution

__all__ = ["met_waits"]


def met_waits(here: Execution, core: int, engine: str) -> tuple[Met, ...]:
    """Return who satisfied the waits of an engine's present word, else those of its last word that had any."""
    device = here.device
    loaded = _waiting_word(device.cores[core].engines[engine])
    if loaded is None or not isinstance(device, Device):
        return ()
    found = []
    for awaited in loaded.word.waits:
        entry = None if awaited.by == BARRIER else _raiser(here, core, awaited)
        if entry is not None:
            found.append(_met(here, loaded, awaited, entry))
    return tuple(found)


def _waiting_word(engine: EngineView) -> LoadedWord | None:
    """Return the oldest word in flight, the next one or the last one before it that waits for something."""
    words = [flight.loaded for flight in engine.in_flight]
    if engine.next_loaded is not None:
        words.append(engine.next_loaded)
    behind = (engine.words[number] for number in range(engine.position - 1, -1, -1))
    return next((one for one in (*words, *behind) if one.word.waits), None)


def _raiser(here: Execution, core: int, awaited: Awaited) -> Entry | None:
    """Return the latest event that brought a semaphore or event from short of the awaited value to it."""
    journal = here.journal
    need = 1 if awaited.kind == "event" else awaited.value + (awaited.mode == WaitMode.SEM_GT)
    for entry in _backwards(journal.log, journal.count_before(here.events)):
        for change in entry.semaphores:
            mine = (change.core, change.kind, change.number) == (core, awaited.kind, awaited.index)
            if mine and change.old < need <= change.new:
                return entry
    return None


def _backwards(log: Sequence[Entry], count: int) -> Iterator[Entry]:
    for number in range(count - 1, -1, -1):
        yield log[number]


def _met(here: Execution, loaded: LoadedWord, awaited: Awaited, entry: Entry) -> Met:
    core, name, pc, kind = entry.owner
    word = here.word_of(entry.owner)
    trigger = word[1] if kind == "dma" else None
    device = here.device
    block = _block(device, core, word[1], pc) if kind == "dma" and isinstance(device, Device) else None
    return Met(loaded.pc, awaited.text, entry.number, entry.time_ps, core, name, pc, kind, here.program.text(*word),
               here.program.source(*word), trigger, block)  # fmt: skip


def _block(device: Device, core: int, engine: str, pc: int) -> int | None:
    """Return the DMA block that a word of the file triggers, None for words that bring their own addresses."""
    loaded = device.cores[core].loaded
    stream = None if loaded is None else loaded.subgraph.streams.get(engine)
    word = stream[pc] if stream is not None and pc < len(stream) else None
    return word.block_id if isinstance(word, PseudoDmaTrigger) else None
