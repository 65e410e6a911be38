"""Waits of a run against the compiler's own list of predecessors: is each awaited value made by a word it names?

The backend level of a file's debug info lists, for every instruction, those it has to come after (formats.md 3.9).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

from emulator.device import Device
from formats.isa import Awaited, WaitMode
from formats.neff import Subgraph
from formats.neff.debuginfo import DebugInstruction
from formats.neuron_core import WORD

__all__ = ["Dependencies", "Disagreement"]


class Disagreement(NamedTuple):
    """A wait whose value came from a word that the debug info does not name; None where nothing raised it."""

    core: int
    engine: str
    pc: int
    semaphore: int
    value: int
    producer: tuple[str, int] | None
    named: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the disagreement on one line."""
        made = "nothing" if self.producer is None else f"{self.producer[0]} pc {self.producer[1]}"
        return (
            f"nc{self.core} {self.engine} pc {self.pc}: S[{self.semaphore}]>={self.value} is met by {made}; the debug "
            f"info names {', '.join(self.named) or 'no predecessor'}"
        )


class Dependencies:
    """Watch a run as an observer; afterwards `waits` counts what was compared, `disagreements` holds what differs.

    Words without an entry in the debug info, and files without predecessor lists, are not compared.
    """

    def __init__(self) -> None:
        self.waits = 0
        self.disagreements: list[Disagreement] = []
        self._subgraphs: dict[int, Subgraph] = {}
        self._listed: dict[int, bool] = {}
        # By core and semaphore: values in order, and the word behind each.
        self._levels: dict[tuple[int, int], tuple[list[int], list[tuple[str, int]]]] = {}
        self._entries: dict[tuple[int, str, int], tuple[DebugInstruction, ...]] = {}

    def attach(self, device: Device) -> None:
        """Take the program of a loaded device."""
        for core in device.cores:
            if core.loaded is not None:
                self._subgraphs[core.index] = core.loaded.subgraph

    def on_event(self, event: Any) -> None:
        """Note who raised what, and compare what a word waited for."""
        engine = event.instruction.engine if event.kind == "dma" else event.engine
        if event.kind == "instruction":
            for awaited in event.instruction.waits:
                self._compare(event, awaited)
        for change in event.semaphores:
            if change.kind == "semaphore" and change.new > change.old:
                values, words = self._levels.setdefault((change.core, change.number), ([], []))
                values.append(change.new)
                words.append((engine, event.pc))

    def _compare(self, event: Any, awaited: Awaited) -> None:
        if awaited.mode != WaitMode.SEM_GE or event.core not in self._subgraphs:
            return
        entries = self._entries_of(event.core, event.engine, event.pc)
        if not entries or not self._lists(event.core):
            return
        self.waits += 1
        semaphore, value = awaited.index, awaited.value
        values, words = self._levels.get((event.core, semaphore), ([], []))
        at = bisect_left(values, value)
        producer = words[at] if at < len(words) else None
        named = {number for entry in entries for number in entry.sync}
        made = () if producer is None else self._entries_of(event.core, *producer)
        if not named.intersection(entry.id for entry in made):
            self.disagreements.append(
                Disagreement(event.core, event.engine, event.pc, semaphore, value, producer, self._names(event, named))
            )

    def _entries_of(self, core: int, engine: str, pc: int) -> tuple[DebugInstruction, ...]:
        """Return the backend entries of a word."""
        key = core, engine, pc
        found = self._entries.get(key)
        if found is None:
            subgraph = self._subgraphs[core]
            asm, offsets = subgraph.debug(engine), subgraph.streams[engine].offsets
            slot = offsets[pc] // WORD if pc < len(offsets) else 0
            parent = None if asm is None else subgraph.debug_parent(asm)
            found = ()
            if asm is not None and parent is not None and slot < len(asm):
                found = tuple(one for one in map(parent.find, asm[slot].parents) if one is not None)
            self._entries[key] = found
        return found

    def _lists(self, core: int) -> bool:
        """Return whether a subgraph's debug info lists predecessors at all: files of ours do not."""
        known = self._listed.get(core)
        if known is None:
            subgraph = self._subgraphs[core]
            files = [subgraph.debug(engine) for engine in subgraph.streams]
            parents = [subgraph.debug_parent(asm) for asm in files if asm is not None]
            known = any(file[at].sync for file in parents if file is not None for at in range(len(file)))
            self._listed[core] = known
        return known

    def _names(self, event: Any, numbers: set[int]) -> tuple[str, ...]:
        subgraph = self._subgraphs[event.core]
        found = []
        for engine in subgraph.streams:
            asm = subgraph.debug(engine)
            parent = None if asm is None else subgraph.debug_parent(asm)
            entries = () if parent is None else map(parent.find, sorted(numbers))
            found += [one.name for one in entries if one is not None]
        return tuple(dict.fromkeys(found))
