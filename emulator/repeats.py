"""Programs that run again: where no datum steers a program, its next run goes the way of the one before.

When a word issues and when a transfer completes depends on the program and the time model, unless a word reads a
register or an index from memory.  So the order in which words and transfers of a run touched memory is kept, and how
clocks, counters and queues stood at its end: those of the second run, since most programs run once.  The next device
that has the same program on the same memories (`emulator.workspace`) carries out effects and moves in that order, and
takes over the end.  Whoever watches, notes, steps, shakes or reprices a device gets a run as ever; one that has to stop
on the way goes back to that.  A run that is only noted makes a way known like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from emulator.bound_words import BoundWords
from emulator.context import Log
from emulator.cost import CostModel
from emulator.dma.transfer import Transfer
from emulator.events import Notice
from emulator.known_way import KnownWay, RepeatingDevice, engines_of
from formats import isa

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord

__all__ = ["run_again"]

_MOST = 1 << 16  # completions that a workspace keeps, of all programs; each keeps the views of its operands


def run_again(device: RepeatingDevice, run: Callable[[], str], advance: Callable[[], None]) -> str:
    """Run a device to its end: as a run that is known, or by `run`, of which is kept what a next one needs."""
    if not device.unseen or device.observers:
        return _run_again(device, run, advance)
    for core in device.cores:
        core.pe.defer(True)
    try:
        return _run_again(device, run, advance)
    finally:
        for core in device.cores:
            core.pe.defer(False)


def _run_again(device: RepeatingDevice, run: Callable[[], str], advance: Callable[[], None]) -> str:
    model = device.model
    if model is None or not device.replays or device.observers:
        return run()
    ways: list[KnownWay] = device.cores[0].workspace.ways
    seen = device.cores[0].workspace.seen
    ways[:] = [each for each in ways if each.neff() is not None]
    is_seen = any(held() is model.neff for held in seen)
    if not is_seen and not any(each.neff() is model.neff for each in ways):
        seen.append(ref(model.neff))  # most programs run once, and shall not pay for a second time
        return run()
    condition = _condition(device)
    if condition is None:
        return run()
    for way in ways:
        if way.is_of(device, condition):
            if device.notes is None:
                return way.follow(device, run, advance)
            outcome = run()  # there is nothing to note on a run that is left out
            if outcome == "finished":
                device.way = way
            return outcome
    count = sum([len(engine.words) for engine in engines_of(device)])
    if count > _MOST or any(_is_steered(each) for engine in engines_of(device) for each in engine.words):
        return run()
    log: Log = []
    device.log = log
    try:
        outcome = run()
    finally:
        device.log = None
    if outcome == "finished" and device.steps <= _MOST and _is_alone(device, log):
        device.way = KnownWay(device, model, condition, log)
        ways.append(device.way)
        while sum([len(each.steps) for each in ways]) > _MOST:
            del ways[0]
    return outcome


def _condition(device: RepeatingDevice) -> tuple[Any, ...] | None:
    """Return what the way of a run depends on besides its program; None where nobody can know it beforehand.

    Nobody watches it.
    """
    dma, costs, cores = device.dma, device.costs, device.cores
    if (
        device.seed is not None
        or device.max_seconds is not None
        or device.hang_timeout_ps is not None
        or (device.steps, device.now_ps, dma.triggered) != (0, 0, 0)
        or device.reprice is not None
        or dma.reprice is not None
        or dma.ranks is not None
        or not dma.moves_data
        or device.hbm.paged
        or type(costs) is not CostModel
        or dma.costs is not costs.dma
        or len(device.heap) != sum([engine.count > 0 for engine in engines_of(device)])  # their first words
        or device.warnings
        or not device.checking
    ):
        return None
    for core in cores:
        if core.memory.unaccounted or core.memory.notes.all_written:
            return None
        if core.tables or costs.chip is not core.workspace.arch or any(core.semaphores.values + core.events.values):
            return None
        for engine in core.engines.values():
            if type(engine.bound) is not BoundWords or engine.position or engine.count != len(engine.words):
                return None
    tensors = device.hbm.allocations.values()
    if not all(each.whole or each.is_blank for each in tensors):
        return None
    places = [(each.address, each.nbytes, each.whole) for each in tensors]
    return (
        device.target.name, device.timing, costs.without, device.propagation_ps, dma.costs, dma.packet_bytes, places,
        [(core.extended, core.activation) for core in cores],  # as many as there are
        [(queue.core, queue.name, queue.engine, queue.num_queues, queue.kind) for queue in dma.queues],
    )  # fmt: skip


def _is_steered(loaded: LoadedWord) -> bool:
    """Return whether what a word finds in memory, in a register or at other ranks decides what happens, and when."""
    cls = type(loaded.word)
    return cls.BRANCHES or cls.DECIDES or cls.REGISTERS or cls is isa.Collective


def _is_alone(device: RepeatingDevice, log: Log) -> bool:
    """Return whether the words of a run did nothing but to read and write their operands, as they are known to."""
    completed = [each for each in log if not isinstance(each[0], Notice)]
    return len(completed) == device.steps and all(
        isinstance(each, Transfer) or action.effect is None or action.lasting for each, action, _ in completed
    )
