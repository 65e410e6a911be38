"""Follow the state of a device's components from completion to completion, as values to compare and to put back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from emulator.engines.pe_state import LatchState
from emulator.semaphores import CountersState
from formats.engines import ENGINES
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.events import Event

__all__ = ["Change", "Control", "Copy"]


class Change(NamedTuple):
    """What one completion changed: (part, old value) pairs, and (table, index, old value) of semaphores and events."""

    parts: tuple[tuple[int, Any], ...]
    counters: tuple[tuple[int, int, int], ...]


class Copy(NamedTuple):
    """The whole state between two completions but for memory."""

    parts: tuple[Any, ...]
    counters: tuple[tuple[int, ...], ...]
    latches: tuple[tuple[LatchState, LatchState], ...]


class _Part(NamedTuple):
    """Part of a component's state, by its number: how to read it and how to put it back."""

    number: int
    snapshot: Callable[[], Any]
    restore: Callable[[Any], None]


class Control:
    """Follow the state of a device from completion to completion; `apply` puts the followed state back.

    Components say what their state is. What only one engine's words change is read at that engine's completions, and
    the DMA's at transfers and triggers; the contents of memories and of latches are kept apart (`saved`).
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._parts: list[_Part] = []
        self._always = [self._add(device.progress, device.restore_progress)]
        for core in device.cores:
            self._always.append(self._add(core.contention.snapshot, core.contention.restore))
            # Others make the Tensor engine add what it holds back.
            self._always.append(self._add(core.pe.flow, core.pe.restore_flow))
            self._always += [self._add(engine.flow, engine.restore_flow) for engine in core.engines.values()]
        self._own: dict[tuple[int, str], list[_Part]] = {}
        for core in device.cores:
            bank = core.generators
            for name in ENGINES:
                engine = core.engines[name]
                own = [self._add(engine.values, engine.restore_values)]
                own.append(self._add(partial(bank.state_of, name), partial(bank.restore_of, name)))
                self._own[core.index, name] = [*self._always, *own]
        dma = device.dma
        self._triggered = dma.triggered
        self._dma = [self._add(dma.flow, dma.restore_flow)]
        self._dma += [self._add(each.snapshot, each.restore) for each in dma.engines]
        self._dma += [self._add(queue.snapshot, queue.restore) for queue in dma.queues]
        self._values: list[Any] = [part.snapshot() for part in self._parts]
        self._banks = [bank for core in device.cores for bank in (core.semaphores, core.events)]
        self._tables = [table for bank in self._banks for table in (bank.values, bank.changed)]
        self._counters = [list(table) for table in self._tables]

    def _add(self, snapshot: Callable[[], Any], restore: Callable[[Any], None]) -> _Part:
        part = _Part(len(self._parts), snapshot, restore)
        self._parts.append(part)
        return part

    def follow(self, event: Event) -> Change:
        """Take over the state behind an event; return what was before where it differs."""
        values = self._values
        own = self._own.get((event.core, event.engine))
        parts = self._always if own is None else own
        triggered = self.device.dma.triggered
        # a transfer's completion has a queue for an engine, which is in no table; a trigger changes the DMA from any
        # word
        if own is None or triggered != self._triggered:
            self._triggered = triggered
            parts = [*parts, *self._dma]
        changed = []
        for number, snapshot, _ in parts:
            value, old = snapshot(), values[number]
            if value != old:
                changed.append((number, old))
                values[number] = value
        counters: list[tuple[int, int, int]] = []
        for table_number, (table, held) in enumerate(zip(self._tables, self._counters, strict=True)):
            # lists of 256 integers are compared in C: a look is cheaper than to know which semaphore an event changed
            if table != held:
                for index, (new, before) in enumerate(zip(table, held, strict=True)):
                    if new != before:
                        counters.append((table_number, index, before))
                        held[index] = new
        return Change(tuple(changed), tuple(counters))

    def undo(self, change: Change) -> None:
        """Follow one completion backwards; the device changes with `apply`."""
        for number, old in change.parts:
            self._values[number] = old
        for table, index, old in change.counters:
            self._counters[table][index] = old

    def copy(self) -> Copy:
        """Return the followed state, with the Tensor engines' tiles as they are now."""
        latches = tuple((core.pe.low.snapshot(), core.pe.high.snapshot()) for core in self.device.cores)
        return Copy(tuple(self._values), tuple(map(tuple, self._counters)), latches)

    def restore(self, copy: Copy) -> None:
        """Follow from a copy on, and put it back."""
        self._values = list(copy.parts)
        self._counters = [list(table) for table in copy.counters]
        for core, (low, high) in zip(self.device.cores, copy.latches, strict=True):
            core.pe.low.restore(low)
            core.pe.high.restore(high)
        self.apply()

    def apply(self) -> None:
        """Put the followed state back: what was issued since the last completion is undone as well."""
        for part, value in zip(self._parts, self._values, strict=True):
            part.restore(value)
        tables = iter(self._counters)
        for bank, values, changed in zip(self._banks, tables, tables, strict=True):
            bank.restore(CountersState(tuple(values), tuple(changed)))
        self._triggered = self.device.dma.triggered
