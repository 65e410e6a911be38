"""The rows of `info engines`, `info queues`, `info memory` and the like, straight from the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from emulator.diagnosis.explain import waiting_of
from emulator.diagnosis.states import EngineState, state_of
from emulator.machine_view import EngineView, MachineView, WaitingView
from emulator.semaphores import holds
from neurontools.debugger.place import word_at
from neurontools.debugger.results import DmaRow, EngineRow, MemoryRow, QueueRow, RegisterRow, SemaphoreRow

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from neurontools.debugger.program import Program

__all__ = ["begins_later", "dma", "engines", "memory", "queues", "registers", "semaphores", "waits"]


def waits(device: MachineView) -> Iterator[tuple[str, int, WaitingView]]:
    """Yield (engine, pc, what it waits for) of every engine that waits."""
    for core in device.cores:
        for name, engine in core.engines.items():
            found = waiting_of(engine)
            if found is not None:
                waiting = engine.words[engine.position] if engine.position < engine.count else None
                yield name, waiting.pc if waiting is not None else engine.pc, found


def engines(
    device: MachineView, program: Program, focus: tuple[int, str], now_ps: int | None = None
) -> tuple[EngineRow, ...]:
    """Return every engine of every core.

    With `now_ps`, an engine whose wait only begins after that, or is satisfied and about to end, runs: the device has
    looked ahead, a reader has not.
    """
    rows = []
    for core in device.cores:
        for name, engine in core.engines.items():
            loaded = word_at(device, engine)
            state, waiting = state_of(device, engine).value, waiting_of(engine)
            if waiting is not None and now_ps is not None and _passing(device, waiting, now_ps):
                state, waiting = EngineState.RUN.value, None
            rows.append(
                EngineRow(
                    core.index,
                    name,
                    state,
                    engine.pc if loaded is None else loaded.pc,
                    engine.stream_length,
                    engine.completed,
                    len(engine.in_flight),
                    None if waiting is None else f"{waiting.text}, is {_value(device, waiting)}",
                    None if waiting is None else waiting.since_ps,
                    None if loaded is None else program.text(core.index, name, loaded.pc),
                    None if loaded is None else program.source(core.index, name, loaded.pc),
                    (core.index, name) == focus,
                )
            )
    return tuple(rows)


def begins_later(engine: EngineView, now_ps: int) -> bool:
    """Return whether what an engine waits for is awaited from a later time on, behind a word that is under way."""
    waiting = waiting_of(engine)
    return waiting is not None and waiting.since_ps > now_ps and bool(engine.in_flight)


def _passing(device: MachineView, waiting: WaitingView, now_ps: int) -> bool:
    """Return whether a wait is still to begin, or holds already and its engine is about to go on."""
    return waiting.since_ps > now_ps or holds(waiting.mode, _value(device, waiting), waiting.value)


def _value(device: MachineView, waiting: WaitingView) -> int:
    core = device.cores[waiting.core]
    return (core.events if waiting.kind == "event" else core.semaphores)[waiting.number]


def queues(device: MachineView) -> tuple[QueueRow, ...]:
    """Return every DMA queue."""
    return tuple(
        QueueRow(
            q.core,
            q.name,
            q.engine,
            q.kind,
            q.ring,
            q.num_queues,
            tuple(q.semaphores),
            q.outstanding,
            len(q.in_flight(device.now_ps)),
            q.completed,
            q.nbytes,
            q.pending[0].text if q.pending else None,
        )
        for q in device.queues
    )


def dma(device: MachineView, program: Program) -> tuple[DmaRow, ...]:
    """Return the transfers that have been triggered and are not complete, queue by queue in order."""
    return tuple(
        DmaRow(
            queue.core,
            queue.name,
            transfer.number,
            transfer.engine,
            transfer.pc,
            "moving" if transfer.running(device.now_ps) else transfer.state,
            transfer.text,
            transfer.nbytes,
            transfer.triggered_ps,
            transfer.started_ps,
            transfer.planned_ps,
            transfer.semaphore,
            transfer.increment,
            program.source(transfer.core, transfer.engine, transfer.pc),
        )
        for queue in device.queues
        for transfer in queue.pending
    )


def registers(device: MachineView, core: int, engine: str, everything: bool = False) -> tuple[RegisterRow, ...]:
    """Return the registers of an engine that are not zero, or all of them."""
    values = np.array(device.cores[core].engines[engine].registers, np.uint32)
    return tuple(
        RegisterRow(core, engine, number, int(value), float(number_of))
        for number, (value, number_of) in enumerate(zip(values, values.view(np.float32), strict=True))
        if everything or value
    )


def semaphores(
    device: MachineView, everything: bool = False, kinds: tuple[str, ...] = ("semaphore", "event")
) -> tuple[SemaphoreRow, ...]:
    """Return semaphores and events that are not zero or are waited for, or all of them."""
    waiters: dict[tuple[int, str, int], list[str]] = {}
    for name, pc, waiting in waits(device):
        waiters.setdefault((waiting.core, waiting.kind, waiting.number), []).append(f"{name} pc {pc} {waiting.text}")
    rows = []
    for core in device.cores:
        for kind, values in (("semaphore", core.semaphores.values), ("event", core.events.values)):
            if kind not in kinds:
                continue
            for number, value in enumerate(values):
                who = waiters.get((core.index, kind, number), [])
                if everything or value or who:
                    rows.append(SemaphoreRow(core.index, kind, number, value, tuple(who)))
    return tuple(rows)


def memory(device: MachineView) -> tuple[MemoryRow, ...]:
    """Return the memories of every core, then the allocations in HBM by address."""
    rows = []
    for core in device.cores:
        for space in ("SBUF", "PSUM"):
            size, written = core.memory.array(space).size, core.memory.written_bytes(space)
            rows.append(MemoryRow(space, core.index, "", 0, size, written))
    for address in sorted(device.hbm.allocations):
        item = device.hbm.allocations[address]
        rows.append(MemoryRow("HBM", None, item.name, address, item.nbytes, item.written_bytes))
    return tuple(rows)
