"""Where an engine stands: one answer for the panes, the listing, the words and the questions."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from emulator.diagnosis.explain import faulted_pc
from emulator.loaded import LoadedWord
from emulator.machine_view import EngineView, MachineView

__all__ = ["faulted_index", "index_of", "place_of", "word_at"]

_PC = attrgetter("pc")


def index_of(engine: EngineView, pc: int) -> int:
    """Return the index of the first word of an engine from a compiler pc on, behind the last one without such."""
    return bisect_left(engine.words, pc, key=_PC)


def faulted_index(machine: MachineView, engine: EngineView) -> int | None:
    """Return the index of the word at which an engine faulted, None where it did not."""
    pc = faulted_pc(machine, engine)
    index = engine.count if pc is None else index_of(engine, pc)
    return index if index < engine.count and engine.words[index].pc == pc else None


def place_of(machine: MachineView, engine: EngineView) -> int:
    """Return the index of the word where an engine stands, one past the last at the end.

    That is the word that faulted, though earlier ones are in flight; else the oldest that has not completed.
    """
    faulted = faulted_index(machine, engine)
    return engine.position - len(engine.in_flight) if faulted is None else faulted


def word_at(machine: MachineView, engine: EngineView) -> LoadedWord | None:
    """Return the word where an engine stands, None at the end of its stream."""
    faulted = faulted_index(machine, engine)
    return engine.next_loaded if faulted is None else engine.words[faulted]
