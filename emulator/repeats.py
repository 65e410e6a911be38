"""Programs that run again: where no datum steers a program, its next run goes the way of the one before.

When a word issues and when a transfer completes depends on the program and the time model, unless a word reads a
register or an index from memory.  So the order in which words and transfers of a run touched memory is kept, and how
clocks, counters and queues stood at its end: those of the second run, since most programs run once.  The next device
that has the same program on the same memories (`emulator.workspace`) carries out effects and moves in that order, and
takes over the end.  Whoever watches, steps, shakes or reprices a device gets a run as ever; one that has to stop on the
way goes back to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ReferenceType, ref

from emulator.action import Action
from emulator.bound_words import BoundWords
from emulator.context import DeviceContext, Log
from emulator.core import Core
from emulator.cost import CostModel
from emulator.cost.contention import ContentionState
from emulator.dma.binding import bind
from emulator.dma.system import DmaState, DmaSystem
from emulator.dma.transfer import Transfer
from emulator.engines import PeState
from emulator.events import Notice
from emulator.extents import Extent
from emulator.semaphores import CountersState
from emulator.sequencer import Flow, Sequencer
from emulator.timed_words import TimedWords
from formats import isa
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.loaded import LoadedModel, LoadedWord
    from emulator.workspace import Workspace
    from formats.neff import Neff

__all__ = ["run_again"]

_MOST = 1 << 14  # completions that a workspace keeps, of all programs; each keeps the views of its operands
_WARNINGS = 100  # behind which nobody looks any more what was written


class RepeatingDevice(DeviceContext, Protocol):
    """A device, as far as its run can be left out."""

    warnings: tuple[Notice, ...]
    replays: bool
    interrupted: bool
    observers: list[Any]

    @property
    def cores(self) -> Sequence[Core]: ...
    @property
    def dma(self) -> DmaSystem: ...
    @property
    def model(self) -> LoadedModel | None: ...
    @property
    def hang_timeout_ps(self) -> int | None: ...
    @property
    def max_seconds(self) -> float | None: ...
    @property
    def max_steps(self) -> int: ...
    @property
    def limit_ps(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def finished(self) -> bool: ...
    @property
    def outcome(self) -> str: ...
    def end(self, now_ps: int, steps: int) -> None: ...
    def interrupt(self) -> None: ...


class _Carried(NamedTuple):
    """A transfer of a program: `transfer` has no device, `settled` are the cores whose products it met."""

    transfer: Transfer
    settled: tuple[int, ...]
    now_ps: int

    def move(self, device: RepeatingDevice) -> None:
        """Move the bytes on a device."""
        device.now_ps = self.now_ps  # which a warning tells
        for index in self.settled:
            device.dma.settle_products(device.cores[index], self.transfer)
        bind(device, self.transfer)()


class _CoreEnd(NamedTuple):
    """How a core stands at the end, but for its memories."""

    semaphores: CountersState
    events: CountersState
    contention: ContentionState
    flows: tuple[Flow, ...]


_Step = tuple[Callable[[], object] | None, Sequence[Extent], _Carried | None]


class _Course(NamedTuple):
    """A program under conditions, on memories; what it does in order, and its end."""

    neff: ReferenceType[Neff]
    condition: tuple[Any, ...]
    workspaces: tuple[ReferenceType[Workspace], ...]
    words: tuple[tuple[bytes, ...], ...]
    steps: tuple[_Step, ...]
    now_ps: int
    cores: tuple[_CoreEnd, ...]
    dma: DmaState

    def is_of(self, device: RepeatingDevice, condition: tuple[Any, ...]) -> bool:
        """Return whether the program of a device, as it is loaded, is this one."""
        model = device.model
        return (
            model is not None
            and self.neff() is model.neff
            and self.condition == condition
            and len(self.steps) <= device.max_steps
            and self.now_ps <= device.limit_ps
            and all(held() is core.workspace for held, core in zip(self.workspaces, device.cores, strict=True))
            and all(
                len(held) == len(engine.words) and all(map(bytes.__eq__, held, _raw(engine)))
                for held, engine in zip(self.words, _engines(device), strict=True)
            )
        )

    def follow(self, device: RepeatingDevice, run: Callable[[], str], advance: Callable[[], None]) -> str:
        """Carry out a run on a device that stands at its beginning; return how it ended."""
        done, whole = 0, False
        try:
            for effect, marks, carried in self.steps:
                if device.interrupted:
                    break
                if carried is not None:
                    carried.move(device)
                elif effect is not None:
                    effect()
                for extent in marks:
                    extent.mark()
                done += 1
            whole = True
        except NeuronError:
            pass  # the run below meets it again, and says where
        finally:
            if not whole:
                for core in device.cores:
                    core.memory.unaccounted = True  # a part of what the step writes may be written
                _catch_up(device, done, advance)
        if not whole:
            return run()
        if done < len(self.steps):
            device.interrupted = False
            _catch_up(device, done, advance)
            device.interrupt()
            return run()
        for core, end in zip(device.cores, self.cores, strict=True):
            core.semaphores.restore(end.semaphores)
            core.events.restore(end.events)
            core.contention.restore(end.contention)
            for engine, flow in zip(core.engines.values(), end.flows, strict=True):
                engine.restore_flow(flow)
        device.dma.restore(self.dma)
        device.end(self.now_ps, done)
        return device.outcome


def run_again(device: RepeatingDevice, run: Callable[[], str], advance: Callable[[], None]) -> str:
    """Run a device to its end: as a run that is known, or by `run`, of which is kept what a next one needs."""
    condition = _condition(device)
    model = device.model
    if condition is None or model is None:
        return run()
    courses: list[_Course] = device.cores[0].workspace.courses
    for course in courses:
        if course.is_of(device, condition):
            return course.follow(device, run, advance)
    seen = device.cores[0].workspace.seen
    if not any(held() is model.neff for held in seen):
        seen.append(ref(model.neff))  # most programs run once, and shall not pay for a second time
        return run()
    count = sum([len(engine.words) for engine in _engines(device)])
    if count > _MOST or any(_is_steered(each) for engine in _engines(device) for each in engine.words):
        return run()
    log: Log = []
    device.log = log
    try:
        outcome = run()
    finally:
        device.log = None
    if outcome == "finished" and len(log) <= _MOST and _is_alone(device, log):
        courses[:] = [each for each in courses if each.neff() is not None]
        courses.append(_course(device, model, condition, log))
        while sum([len(each.steps) for each in courses]) > _MOST:
            del courses[0]
    return outcome


def _condition(device: RepeatingDevice) -> tuple[Any, ...] | None:
    """Return what the way of a run depends on besides its program; None where nobody can know it beforehand."""
    dma, costs, cores = device.dma, device.costs, device.cores
    if (
        not device.replays
        or device.observers
        or device.seed is not None
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
        or len(device.heap) != sum([engine.count > 0 for engine in _engines(device)])  # their first words
    ):
        return None
    for core in cores:
        if core.tables or costs.chip is not core.workspace.arch or any(core.semaphores.values + core.events.values):
            return None
        for engine in core.engines.values():
            if type(engine.bound) is not BoundWords or engine.position or engine.count != len(engine.words):
                return None
    places = [(each.address, each.nbytes) for each in device.hbm.allocations.values()]
    return (
        device.target.name, device.timing, costs.without, device.propagation_ps, dma.costs, dma.packet_bytes, places,
        [(core.extended, core.activation) for core in cores],  # as many as there are
        [(queue.core, queue.name, queue.engine, queue.num_queues, queue.kind) for queue in dma.queues],
    )  # fmt: skip


def _engines(device: RepeatingDevice) -> Iterator[Sequencer]:
    for core in device.cores:
        yield from core.engines.values()


def _raw(engine: Sequencer) -> list[bytes]:
    return [each.word.raw for each in engine.words]


def _is_steered(loaded: LoadedWord) -> bool:
    """Return whether what a word finds in memory, in a register or at other ranks decides what happens, and when."""
    cls = type(loaded.word)
    return cls.BRANCHES or cls.DECIDES or cls.REGISTERS or cls is isa.Collective


def _is_alone(device: RepeatingDevice, log: Log) -> bool:
    """Return whether the words of a run did nothing but to read and write their operands, as they are known to."""
    if len(log) != device.steps or len(device.warnings) >= _WARNINGS:
        return False
    # What words read in SBUF and PSUM is as written in the next run; transfers look for themselves.
    transfers = {(each.core, each.engine, each.pc) for each, _, _ in log if isinstance(each, Transfer)}
    if any((each.core, each.engine, each.pc) not in transfers for each in device.warnings):
        return False
    return all(isinstance(each, Transfer) or action.effect is None or action.lasting for each, action, _ in log)


def _course(device: RepeatingDevice, model: LoadedModel, condition: tuple[Any, ...], log: Log) -> _Course:
    """Return what the next run of a program needs of the one that has ended."""
    written: set[Extent] = set()
    steps: list[_Step] = []
    for owner, what, more in log:
        if isinstance(owner, Transfer):
            steps.append((None, (), _Carried(_without_device(owner), what, more)))
            continue
        action: Action = what
        marks = tuple([extent for extent in action.writes if extent not in written])
        written.update(marks)
        steps.append((_settling(owner.core.pe, action) if more else action.effect, marks, None))
    ends = tuple([
        _CoreEnd(core.semaphores.snapshot(), core.events.snapshot(), core.contention.snapshot(),
                 tuple([engine.flow() for engine in core.engines.values()]))
        for core in device.cores
    ])  # fmt: skip
    return _Course(ref(model.neff), condition, tuple([ref(core.workspace) for core in device.cores]),
                   tuple([tuple(_raw(engine)) for engine in _engines(device)]), tuple(steps), device.now_ps, ends,
                   device.dma.snapshot())  # fmt: skip


def _settling(products: PeState, action: Action) -> Callable[[], object]:
    """Return the effect of a word that meets products which wait for their other half."""

    def settled() -> None:
        products.settle(action.read_places, action.write_places)
        if action.effect is not None:
            action.effect()

    return settled


def _without_device(transfer: Transfer) -> Transfer:
    """Return a transfer that does the same on any device, as a thing to be bound and told of."""
    return Transfer(
        queue=transfer.queue,
        core=transfer.core,
        engine=transfer.engine,
        pc=transfer.pc,
        parts=transfer.parts,
        instruction=transfer.instruction,
        facts=transfer.facts,
    )


def _catch_up(device: RepeatingDevice, steps: int, advance: Callable[[], None]) -> None:
    """Let a device whose memories are ahead of it come to where they are: times and counters, without data."""
    engines, products = list(_engines(device)), [core.pe.pending for core in device.cores]
    for core in device.cores:
        core.pe.pending = {}
    bound = [engine.bound for engine in engines]
    for engine in engines:
        engine.bound = TimedWords(engine)
    device.dma.moves_data = False
    while device.steps < steps and not device.finished:
        advance()
    device.dma.moves_data = True
    for engine, words in zip(engines, bound, strict=True):
        engine.bound = words
        for at, flight in enumerate(engine.in_flight):
            engine.in_flight[at] = flight._replace(action=words.action_of(flight.loaded))
    for core, pending in zip(device.cores, products, strict=True):
        core.pe.pending = pending
