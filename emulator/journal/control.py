"""Everything of a device that is no memory, as slots that are compared and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emulator import generators

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.device import Device
    from emulator.dma.queues import DmaQueue
    from emulator.events import Event
    from emulator.sequencer import Sequencer

__all__ = ["Change", "Control", "Copy"]

_MACHINE, _HEAP, _WAITS, _DMA, _FIRST = 0, 1, 2, 3, 4
_PER_ENGINE = 4  # position, registers, accumulators, generators


class Change(NamedTuple):
    """What one completion changed: (slot, old value) pairs, and (table, index, old value) of semaphores and events."""

    slots: tuple[tuple[int, Any], ...]
    counters: tuple[tuple[int, int, int], ...]


class Copy(NamedTuple):
    """The whole state between two completions."""

    slots: tuple[Any, ...]
    counters: tuple[tuple[int, ...], ...]
    tiles: tuple[Any, ...]


class Control:
    """Follows the state of a device from completion to completion; `apply` puts the followed state back."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._engines: list[Sequencer] = [engine for core in device.cores for engine in core.engines.values()]
        self._index = {(e.core.index, e.name): number for number, e in enumerate(self._engines)}
        self._tables: list[list[int]] = [
            table
            for core in device.cores
            for table in (core.semaphores.values, core.semaphores.changed, core.events.values, core.events.changed)
        ]
        self._queue_base = _FIRST + _PER_ENGINE * len(self._engines)
        self._pe_base = self._queue_base + len(device.dma.queues)
        self._slots: list[Any] = [_machine(device), tuple(device.heap), self._waits(), _dma(device)]
        for engine in self._engines:
            self._slots += [_position(engine), *_values(engine)]
        self._slots += [_queue(queue) for queue in device.dma.queues]
        self._slots += [_pe(core) for core in device.cores]
        self._counters = [list(table) for table in self._tables]

    def follow(self, event: Event) -> Change:
        """Take over the state behind an event; return what was before where it differs."""
        device, slots = self.device, self._slots
        found: list[tuple[int, Any]] = [
            (_MACHINE, _machine(device)), (_HEAP, tuple(device.heap)), (_WAITS, self._waits())
        ]  # fmt: skip
        number = _FIRST
        for engine in self._engines:
            found.append((number, _position(engine)))
            number += _PER_ENGINE
        at = self._index.get((event.core, event.engine))
        if at is not None:
            first = _FIRST + _PER_ENGINE * at
            found += zip(range(first + 1, first + _PER_ENGINE), _values(self._engines[at]), strict=True)
            if event.engine == "PE":
                found.append((self._pe_base + event.core, _pe(device.cores[event.core])))
        if at is None or device.dma.triggered != slots[_DMA][0]:
            found.append((_DMA, _dma(device)))
            found += enumerate(map(_queue, device.dma.queues), self._queue_base)
        changed = []
        for slot, value in found:
            old = slots[slot]
            if value != old:
                changed.append((slot, old))
                slots[slot] = value
        counters: list[tuple[int, int, int]] = []
        for number, (table, held) in enumerate(zip(self._tables, self._counters, strict=True)):
            if table != held:
                for index, (new, before) in enumerate(zip(table, held, strict=True)):
                    if new != before:
                        counters.append((number, index, before))
                        held[index] = new
        return Change(tuple(changed), tuple(counters))

    def undo(self, change: Change) -> None:
        """Follow one completion backwards; the device changes with `apply`."""
        for slot, old in change.slots:
            self._slots[slot] = old
        for table, index, old in change.counters:
            self._counters[table][index] = old

    def copy(self) -> Copy:
        """Return the followed state, with the Tensor engines' tiles as they are now."""
        tiles = tuple(core.pe.snapshot() for core in self.device.cores)
        return Copy(tuple(self._slots), tuple(map(tuple, self._counters)), tiles)

    def restore(self, copy: Copy) -> None:
        """Follow from a copy on, and put it back."""
        self._slots = list(copy.slots)
        self._counters = [list(table) for table in copy.counters]
        for core, tiles in zip(self.device.cores, copy.tiles, strict=True):
            core.pe.restore(tiles)
        self.apply()

    def apply(self) -> None:
        """Put the followed state back: what was issued since the last completion is undone as well."""
        device, slots = self.device, self._slots
        for engine in self._engines:
            if engine._waiters is not None:
                engine._waiters.clear()
        for waiters, members in slots[_WAITS]:
            waiters[:] = members
        for table, held in zip(self._tables, self._counters, strict=True):
            table[:] = held
        _set_machine(device, slots[_MACHINE])
        device.heap[:] = slots[_HEAP]
        number = _FIRST
        for engine in self._engines:
            _set_position(engine, slots[number])
            _set_values(engine, *slots[number + 1 : number + _PER_ENGINE])
            number += _PER_ENGINE
        _set_dma(device, slots[_DMA])
        for number, queue in enumerate(device.dma.queues, self._queue_base):
            _set_queue(queue, slots[number])
        for number, core in enumerate(device.cores, self._pe_base):
            low, pending = slots[number]
            core.pe.current = core.pe.low if low else core.pe.high
            core.pe.pending = dict(pending)

    def _waits(self) -> tuple[Any, ...]:
        """Return who waits in which list, in order."""
        lists = {id(engine._waiters): engine._waiters for engine in self._engines if engine._waiters is not None}
        return tuple((waiters, tuple(waiters)) for waiters in lists.values())


def _machine(device: Device) -> tuple[Any, ...]:
    return (device.now_ps, device.steps, device._ended, device.fault, device.hang, device.checking,
            len(device.warnings), device.drawn, device._alarm_ps,
            tuple(core.contention.snapshot() for core in device.cores))  # fmt: skip


def _set_machine(device: Device, state: tuple[Any, ...]) -> None:
    (device.now_ps, device.steps, device._ended, device.fault, device.hang, device.checking, warnings, drawn,
     device._alarm_ps, contention) = state  # fmt: skip
    del device.warnings[warnings:]
    device.changes.clear()
    device.draw_again(drawn)
    for core, held in zip(device.cores, contention, strict=True):
        core.contention.restore(held)


def _position(engine: Sequencer) -> tuple[Any, ...]:
    return (engine.position, engine.completed, tuple(engine.in_flight), engine.state, engine.waiting_on,
            engine.free_ps, engine.last_done, engine.busy_ps, engine._draining, engine._barrier_raised,
            engine._waiters)  # fmt: skip


def _set_position(engine: Sequencer, state: tuple[Any, ...]) -> None:
    (engine.position, engine.completed, flying, engine.state, engine.waiting_on, engine.free_ps, engine.last_done,
     engine.busy_ps, engine._draining, engine._barrier_raised, engine._waiters) = state  # fmt: skip
    engine.in_flight.clear()
    engine.in_flight.extend(flying)


def _values(engine: Sequencer) -> tuple[tuple[int, ...], bytes, bytes | None]:
    """Return registers, accumulators and random number generators."""
    drawn = generators.existing(engine.core, engine.name)
    return tuple(engine.registers), engine.accumulators.tobytes(), None if drawn is None else drawn.state.tobytes()


def _set_values(engine: Sequencer, registers: tuple[int, ...], accumulators: bytes, state: bytes | None) -> None:
    engine.registers[:] = registers
    engine.accumulators[:] = np.frombuffer(accumulators, np.float32)
    drawn = generators.existing(engine.core, engine.name)
    if drawn is None:
        return
    if state is None:
        drawn.seed(0)
    else:
        drawn.state[...] = np.frombuffer(state, np.uint32).reshape(drawn.state.shape)


def _dma(device: Device) -> tuple[Any, ...]:
    dma = device.dma
    engines = tuple(engine.state() for core in dma.engines for engine in core)
    return dma.triggered, tuple(dma._hbm_free), engines


def _set_dma(device: Device, state: tuple[Any, ...]) -> None:
    dma = device.dma
    dma.triggered, free, engines = state
    dma._hbm_free[:] = free
    for engine, held in zip((e for core in dma.engines for e in core), engines, strict=True):
        engine.restore(held)


def _queue(queue: DmaQueue) -> tuple[Any, ...]:
    return (tuple(queue.pending), queue.completed, queue.nbytes, tuple(queue.handed.items()),
            tuple(queue.retired.items()), queue.generator_ps,
            tuple(transfer.plan for transfer in queue.pending))  # fmt: skip


def _set_queue(queue: DmaQueue, state: tuple[Any, ...]) -> None:
    pending, queue.completed, queue.nbytes, handed, retired, queue.generator_ps, plans = state
    for transfer, plan in zip(pending, plans, strict=True):
        transfer.plan = plan
    queue.pending.clear()
    queue.pending.extend(pending)
    queue.handed, queue.retired = dict(handed), dict(retired)
    for transfer in pending:
        transfer.state, transfer.completed_ps = "queued", -1


def _pe(core: Core) -> tuple[Any, ...]:
    return core.pe.current is core.pe.low, tuple(core.pe.pending.items())
