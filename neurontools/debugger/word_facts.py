"""All that is known of one word: its fields with how they are known, what it costs, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.cost import cost_of
from formats.errors import NeuronError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff import SourceLocation

if TYPE_CHECKING:
    from neurontools.debugger.execution import Execution

__all__ = ["FieldFact", "WordFacts", "word_facts"]


class FieldFact(NamedTuple):
    """One field: its value as JSON has it, what it means and how that is known."""

    name: str
    value: Any
    doc: str
    unit: str
    provenance: str
    cite: str


class WordFacts(NamedTuple):
    """A word; `interval_ps` until the next can issue and `latency_ps` until it completes are None without a cost.

    `waits` are (semaphore or event as text, its value now).
    """

    core: int
    engine: str
    pc: int
    text: str
    source: SourceLocation | None
    fields: tuple[FieldFact, ...]
    interval_ps: int | None
    latency_ps: int | None
    waits: tuple[tuple[str, int], ...]


def word_facts(here: Execution, core: int, engine: str, pc: int) -> WordFacts:
    """Return what is known of a word; NotFoundError where there is none."""
    machine = here.device
    loaded = next((each for each in machine.cores[core].engines[engine].words if each.pc == pc), None)
    if loaded is None:
        raise NotFoundError(f"no {engine} pc {pc}")
    word = loaded.word
    values = word.fields
    fields = tuple(FieldFact(name, field.render(values[name]), field.doc, field.unit, field.provenance, field.cite)
                   for name, field in type(word).FIELDS.items() if not field.alias)  # fmt: skip
    try:
        cost = cost_of(word, engine, machine.arch)
        times: tuple[int | None, int | None] = cost.interval_ps, cost.latency_ps
    except NeuronError:
        times = None, None
    own = machine.cores[core]
    waits = tuple((wait.text, (own.events if wait.kind == "event" else own.semaphores)[wait.index])
                  for wait in word.waits if wait.kind in ("event", "semaphore"))  # fmt: skip
    return WordFacts(core, engine, pc, here.program.text(core, engine, pc), here.program.source(core, engine, pc),
                     fields, *times, waits)  # fmt: skip
