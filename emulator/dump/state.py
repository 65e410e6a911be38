"""Engines, semaphores, waits, queues, rings, tensors of a device as the notes of a dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from emulator.diagnosis.explain import explain, waiting_of
from emulator.diagnosis.graph import Hang, Producer, Wait
from emulator.diagnosis.states import state_of
from emulator.dma.rings import Ring
from emulator.dma.transfer import DmaDescriptor, Transfer
from emulator.dump.program import source_of, word_at
from formats.core import records
from formats.core.records import (
    CounterBank,
    CountersNote,
    EnginesNote,
    EngineState,
    FaultNote,
    FindingsNote,
    FindingState,
    Flight,
    QueuesNote,
    QueueState,
    RingsNote,
    RingState,
    SignalState,
    TensorState,
    TransferState,
    Waiting,
    WaitsNote,
    WaitState,
)

if TYPE_CHECKING:
    from emulator.checks.finding import Finding
    from emulator.device import Device
    from emulator.events import Notice
    from emulator.faults import Fault
    from emulator.sequencer import Sequencer

__all__ = ["counters", "engines", "fault_note", "findings", "queues", "rings", "tensors", "waits"]

_SIGNALS = 64  # pending signals kept per wait, and as many done ones
_TRANSFERS = {False: 8, True: 256}  # kept per queue, by whether the dump is full
_DESCRIPTORS = {False: 4, True: 64}  # per ring


def fault_note(device: Device, fault: Fault) -> FaultNote:
    """Return a fault."""
    word = word_at(device, fault.core, fault.engine, fault.pc)
    return FaultNote(
        fault.kind,
        fault.message,
        fault.core,
        fault.engine,
        fault.pc,
        fault.instruction_text,
        fault.instruction_text.partition(" ")[0] if word is None else str(word.name),
        source_of(fault.source),
        fault.operand,
        fault.space,
        fault.address,
        fault.expected,
        fault.got,
        fault.time_ps,
        fault.tensor,
    )


def engines(device: Device) -> EnginesNote:
    """Return every engine of every core."""
    return EnginesNote(tuple(_engine(device, engine) for core in device.cores for engine in core.engines.values()))


def _engine(device: Device, engine: Sequencer) -> EngineState:
    core, name, pc = engine.core.index, engine.name, engine.pc
    loaded = engine.next_loaded
    word = None if loaded is None else word_at(device, core, name, pc)
    return EngineState(
        core,
        name,
        state_of(device, engine).value,
        pc,
        engine.position,
        engine.count,
        engine.completed,
        None if word is None else str(word.text),
        None if word is None else str(word.name),
        None if loaded is None else source_of(engine.core.source_of(name, pc)),
        _waiting(device, engine),
        tuple(
            Flight(engine.position - len(engine.in_flight) + number, flight.loaded.pc, flight.issued_ps)
            for number, flight in enumerate(engine.in_flight)
        ),
        _without_zeros(engine.registers),
        _without_zeros(engine.accumulators.view(np.uint32).tolist()),
        engine.busy_ps,
    )


def _waiting(device: Device, engine: Sequencer) -> Waiting | None:
    found = waiting_of(engine)
    if found is None:
        return None
    core = device.cores[found.core]
    present = (core.events if found.kind == "event" else core.semaphores)[found.number]
    return Waiting(found.kind, found.core, found.number, found.mode, found.value, found.since_ps, found.text, present)


def _without_zeros(values: Iterable[int]) -> tuple[int, ...]:
    kept = list(values)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def counters(device: Device) -> CountersNote:
    """Return semaphores and events."""
    return CountersNote(
        tuple(
            CounterBank(core.index, tuple(core.semaphores.values), tuple(core.events.values)) for core in device.cores
        )
    )


def waits(device: Device, reason: str) -> WaitsNote:
    """Return the wait-for graph; where nothing hung, of the moment."""
    hang: Hang = device.hang if device.hang is not None else explain(device, reason)
    return WaitsNote(
        hang.reason,
        hang.time_ps,
        tuple(_wait(device, wait) for wait in hang.waits),
        tuple(tuple((core, engine) for core, engine in cycle) for cycle in hang.cycles),
        (*hang.running, *(word.line for word in hang.loops)),
    )


def _wait(device: Device, wait: Wait) -> WaitState:
    pending = wait.pending
    done = [signal for signal in wait.could_signal if signal.state == "done"]
    # the next ones that could come and the last ones that did: between these a hang is found
    kept = (*pending[:_SIGNALS], *done[-_SIGNALS:])
    word = word_at(device, wait.core, wait.engine, wait.pc)
    return WaitState(
        wait.core,
        wait.engine,
        wait.pc,
        wait.text,
        "" if word is None else str(word.name),
        source_of(wait.source),
        wait.kind,
        wait.number,
        wait.condition,
        wait.need,
        wait.present,
        wait.since_ps,
        wait.overshoot,
        tuple(_signal(device, signal) for signal in kept),
        len(done),
        len(pending),
    )


def _signal(device: Device, signal: Producer) -> SignalState:
    source = source_of(device.cores[signal.core].source_of(signal.owner, signal.pc))
    return SignalState(*signal, source)


def queues(device: Device, full: bool) -> QueuesNote:
    """Return the DMA queues with the transfers that are not complete."""
    return QueuesNote(
        tuple(
            QueueState(
                queue.core,
                queue.name,
                queue.engine,
                queue.kind,
                queue.ring,
                queue.num_queues,
                tuple(queue.semaphores),
                queue.completed,
                queue.nbytes,
                len(queue.pending),
                tuple(_transfer(each, device.now_ps) for each in islice(queue.pending, _TRANSFERS[full])),
            )
            for queue in device.queues
        )
    )


def _transfer(transfer: Transfer, now_ps: int) -> TransferState:
    return TransferState(
        transfer.number,
        transfer.engine,
        transfer.pc,
        transfer.text,
        transfer.nbytes,
        transfer.running(now_ps),
        transfer.semaphore,
        transfer.increment,
        transfer.remote,
        transfer.triggered_ps,
        transfer.started_ps,
        transfer.planned_ps,
        transfer.shares,
    )


def rings(device: Device, full: bool) -> RingsNote:
    """Return the rings that were ever used."""
    found = []
    for core in device.cores:
        for number, own in enumerate(device.dma.rings(core.index)):
            for ring in own:
                if ring.owner is None or not (ring.handed_over or ring.prebuilt):
                    continue
                descriptors = islice(_descriptors(ring), _DESCRIPTORS[full])
                found.append(
                    RingState(
                        core.index,
                        number,
                        ring.index,
                        ring.queue or "",
                        ring.size,
                        ring.head,
                        ring.tail,
                        ring.outstanding,
                        tuple(records.Descriptor(*descriptor) for descriptor in descriptors),
                    )
                )
    return RingsNote(tuple(found))


def _descriptors(ring: Ring) -> Iterator[DmaDescriptor]:
    # A few of very many: a transfer of 4 GiB has 65,536 of them.
    for segment in ring.segments:
        yield from segment.transfer.descriptors(segment.first, segment.last)
        yield DmaDescriptor(segment.transfer.number, 0, segment.transfer.semaphore or 0, 4, "semaphore")


def tensors(device: Device) -> Iterator[TensorState]:
    """Yield tensors and tiles."""
    shared = device.tensors
    for item in shared.values():
        yield TensorState(item.name, item.kind, "HBM", None, item.dtype, item.shape, item.address, item.nbytes)
    for core in device.cores:
        for name, item in core.variables.items():
            if shared.get(name) is not item:
                where = item.dtype, item.shape, item.address, item.nbytes
                yield TensorState(item.name, item.kind, "HBM", core.index, *where)
        for tile in core.tiles:
            size = tile.partitions * tile.partition_bytes
            pcs = {engine: (span[0], span[1]) for engine, span in tile.pcs.items()}
            yield TensorState(tile.name, "tile", tile.space, core.index, tile.dtype, tile.shape, tile.offset, size,
                              tile.partition, pcs)  # fmt: skip


def findings(device: Device, found: Iterable[Finding]) -> FindingsNote:
    """Return notices of the device and findings of checks."""
    notices = [
        FindingState("device", n.kind, "warning", n.message, n.core, n.engine, n.pc, n.instruction_text,
                     source_of(device.cores[n.core].source_of(n.engine, n.pc)) if _known(device, n) else None,
                     n.operand, n.time_ps)
        for n in device.warnings
    ]  # fmt: skip
    checked = [
        FindingState(f.tool, f.kind, f.severity, f.message, f.site.core, f.site.engine, f.site.pc, f.site.text,
                     source_of(f.site.source), f.site.operand, f.site.time_ps,
                     "" if f.other is None else f.other.where, f.hint)
        for f in found
    ]  # fmt: skip
    return FindingsNote((*checked, *notices))


def _known(device: Device, notice: Notice) -> bool:
    return 0 <= notice.core < len(device.cores) and notice.engine in device.cores[notice.core].engines
