"""The way of a program that nothing steers: what its next run on the same memories does, in order, and its end.

What is written when, and who reads what nothing wrote, is the same in each run that begins with the same tensors
written.  So a run that is known carries out effects and moves, and nothing else; written bytes and warnings are those
of its end.  One that stops on the way is brought to where its memories are: times, counters and written bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ReferenceType, ref

from emulator.action import Action
from emulator.arch import Arch
from emulator.context import DeviceContext, Log
from emulator.core import Core
from emulator.cost.contention import ContentionState
from emulator.device_memory import Allocation, Coverage, DeviceMemory
from emulator.dma.binding import Copy, bytes_of, copy_of, written_by
from emulator.dma.regions import regions_of
from emulator.dma.system import DmaState, DmaSystem
from emulator.dma.transfer import Side, Transfer
from emulator.engines import PeState
from emulator.events import WARNINGS, Notice
from emulator.extents import Extent
from emulator.memory import Bytes
from emulator.semaphores import CountersState
from emulator.sequencer import Sequencer
from emulator.standing import Flow
from emulator.timed_words import TimedWords
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.loaded import LoadedModel
    from emulator.workspace import Workspace
    from formats.neff import Neff

__all__ = ["Found", "KnownWay", "Memories", "RepeatingDevice", "Step", "engines_of"]

Step = Callable[[], object]
Around = Callable[[Step], object]  # carries out a step
_LARGEST = 1 << 26  # bytes of device memory that moves of a program may keep views of


class RepeatingDevice(DeviceContext, Protocol):
    """A device, as far as its run can be left out."""

    warnings: tuple[Notice, ...]
    replays: bool
    interrupted: bool
    observers: list[Any]
    way: KnownWay | None

    @property
    def cores(self) -> Sequence[Core]: ...
    @property
    def dma(self) -> DmaSystem: ...
    @property
    def model(self) -> LoadedModel | None: ...
    @property
    def unseen(self) -> bool: ...
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


class Memories(Protocol):
    """What the steps of a program need of a device; its `cores` may be workspaces."""

    @property
    def arch(self) -> Arch: ...
    @property
    def hbm(self) -> DeviceMemory: ...
    @property
    def cores(self) -> Sequence[Any]: ...


class Found(NamedTuple):
    """What checks find in every run that goes a way, as long as its data give these answers.

    An answer is which store of transfers, which of its sides in device memory, and whether it changed anything there.
    """

    findings: list[Any]
    answers: list[tuple[int, int, bool]]


class _CoreEnd(NamedTuple):
    """How a core stands at the end; of its memories, which extents are written."""

    semaphores: CountersState
    events: CountersState
    contention: ContentionState
    flows: tuple[Flow, ...]
    written: tuple[Extent, ...]


class _Carried(NamedTuple):
    """A transfer of a program: it has no device; `settled` are the cores whose products it met."""

    transfer: Transfer
    settled: tuple[int, ...]

    def step(self, device: Memories) -> Step:
        """Return what moves the bytes, for devices whose memories are where this one's are."""
        whole: Any = device  # nothing but memories is asked for
        move, sides = bytes_of(whole, self.transfer), self.transfer.writes
        if not self.settled or not any(side.space == "SBUF" for side in sides):
            return move
        regions = regions_of(sides, device.arch.sbuf_bytes.whole)
        met = [(device.cores[at].pe, [each for each in regions if each.core == at]) for at in self.settled]

        def settled() -> None:
            for products, taken in met:
                products.settle((), taken)
            move()

        return settled

    def copy(self, device: Memories) -> Copy | None:
        """Return what it does on any memories; None for what is no copy, or meets products."""
        whole: Any = device
        return None if self.settled else copy_of(whole, self.transfer)

    def tensors(self, device: RepeatingDevice) -> tuple[list[int], list[int]]:
        """Return the addresses of the tensors that the transfer reads and of those that it writes."""
        return _tensors(device, self.transfer.reads), _tensors(device, self.transfer.writes)


class KnownWay:
    """A program under conditions, on memories; `steps` are effects, and None for what moves bytes or does nothing."""

    def __init__(self, device: RepeatingDevice, model: LoadedModel, condition: tuple[Any, ...], log: Log) -> None:
        self.neff: ReferenceType[Neff] = ref(model.neff)
        self._condition = condition
        self._workspaces: list[ReferenceType[Workspace]] = [ref(core.workspace) for core in device.cores]
        self._words = [_raw(engine) for engine in engines_of(device)]
        self.steps: list[Step | None] = []
        self._carried: dict[int, _Carried] = {}
        self._writes: list[tuple[Extent, ...]] = []  # of words
        self._notices: list[tuple[int, Notice]] = []  # before which step
        self._note(log)
        # Whether no step takes anything from bytes that none before it has written.
        self._overwrites = not self._notices and not any(
            type(each.word).KEEPS for engine in engines_of(device) for each in engine.words
        )
        self._now_ps = device.now_ps
        self._cores = [
            _CoreEnd(
                core.semaphores.snapshot(), core.events.snapshot(), core.contention.snapshot(),
                tuple([engine.flow() for engine in core.engines.values()]), core.memory.notes.all_written,
            )
            for core in device.cores
        ]  # fmt: skip
        self._dma: DmaState = device.dma.snapshot()
        self._hbm: list[tuple[int, Coverage]] = [
            (address, found)
            for address, each in device.hbm.allocations.items()
            if (found := each.coverage()) is not None
        ]
        # The tensors in the order in which they are touched, by which transfers; those that the program writes.
        self.touched: dict[int, list[int]] = {}
        self.written: set[int] = set()
        for at, carried in self._carried.items():
            reads, writes = carried.tensors(device)
            for address in dict.fromkeys((*reads, *writes)):
                self.touched.setdefault(address, []).append(at)
            self.written.update(writes)
        self._copies: dict[int, Copy | None] = {}  # what transfers do wherever tensors lie, as far as they are copies
        self._bound: list[Step | None] = []  # the steps, where the tensors lie as they did last time
        self._tensors: dict[int, Bytes] = {}
        self.run: Any = None  # what is known of all of a run that goes this way (emulator.runtime.known_runs)
        self.findings: dict[tuple[str, ...], Found] = {}  # of checks, by their names (emulator.checks.again)

    def _note(self, log: Log) -> None:
        """Note what completed, in order."""
        for owner, what, more in log:
            if isinstance(owner, Notice):
                self._notices.append((len(self.steps), owner))
            elif isinstance(owner, Transfer):
                self._carried[len(self.steps)] = _Carried(_without_device(owner), what)
                self.steps.append(None)
                self._writes.append(())
            else:
                action: Action = what
                self.steps.append(_settling(owner.core.pe, action) if more else action.effect)
                self._writes.append(action.writes)

    def is_of(self, device: RepeatingDevice, condition: tuple[Any, ...]) -> bool:
        """Return whether the program of a device, as it is loaded, is this one."""
        model = device.model
        return (
            model is not None
            and self.neff() is model.neff
            and self._condition == condition
            and len(self.steps) <= device.max_steps
            and self._now_ps <= device.limit_ps
            and self.goes_on([core.workspace for core in device.cores])
            and self._words == [_raw(engine) for engine in engines_of(device)]
        )

    def follow(self, device: RepeatingDevice, run: Callable[[], str], advance: Callable[[], None]) -> str:
        """Carry out a run on a device that stands at its beginning; return how it ended."""
        untouched = [each for each in device.hbm.allocations.values() if not each.touched]
        tensors = device.hbm.allocations
        for address in self.written:
            if tensors[address].is_borrowed:
                tensors[address].writable  # noqa: B018  (which copies it)
        stale = self._take_memories(device)
        lent = frozenset([address for address in self.touched if tensors[address].is_borrowed])
        steps = self._steps_on(device, lent)
        done, whole = 0, False
        for core in device.cores:
            core.pe.defer(True)
        try:
            for step in steps:
                if device.interrupted:
                    break
                if step is not None:
                    step()
                done += 1
            whole = True
        except NeuronError:
            pass  # the run below meets it again, and says where
        finally:
            for core in device.cores:
                core.pe.defer(False)
            self._give_back(lent)
            if not whole:
                for core in device.cores:
                    core.memory.unaccounted = True  # a part of what the step writes may be written
                self._catch_up(device, done, advance, untouched, stale)
        if not whole:
            return run()
        if done < len(steps):
            device.interrupted = False
            self._catch_up(device, done, advance, untouched, stale)
            device.interrupt()
            return run()
        for core, end in zip(device.cores, self._cores, strict=True):
            core.semaphores.restore(end.semaphores)
            core.events.restore(end.events)
            core.contention.restore(end.contention)
            for engine, flow in zip(core.engines.values(), end.flows, strict=True):
                engine.restore_flow(flow)
            core.memory.notes.extents += end.written
        for address, coverage in self._hbm:
            device.hbm.allocations[address].cover(coverage)
        device.dma.restore(self._dma)
        self._warn(device, done)
        device.end(self._now_ps, done)
        device.way = self
        return device.outcome

    @property
    def stores(self) -> list[tuple[int, list[Side]]]:
        """Return which steps store to device memory, in order, and which of their sides lie there."""
        carried = self._carried.items()
        found = [(at, [side for side in each.transfer.writes if side.space == "HBM"]) for at, each in carried]
        return [each for each in found if each[1]]

    def carry_out(self, memories: Memories, lent: frozenset[int], around: Mapping[int, Around]) -> None:
        """Carry out all steps on memories that stand at the beginning, whose notes are those of the end after that.

        Tensors at the addresses `lent` are only read, and have their bytes for this once; some steps are called by who
        is `around` them. After an error bytes may be written that nothing tells of.
        """
        self._take_memories(memories)
        steps = self._steps_on(memories, lent)
        called = steps.copy() if around else steps
        for at, whoever in around.items():
            if (step := steps[at]) is not None:
                called[at] = partial(whoever, step)
        for core in memories.cores:
            core.pe.defer(True)
        try:
            for step in called:
                if step is not None:
                    step()
        except BaseException:
            for core in memories.cores:
                core.memory.unaccounted = True
            raise
        finally:
            for core in memories.cores:
                core.pe.defer(False)
            self._give_back(lent)
        for core, end in zip(memories.cores, self._cores, strict=True):
            core.memory.notes.extents += end.written

    def _give_back(self, lent: frozenset[int]) -> None:
        """Keep nothing of tensors that are lent."""
        for address in lent if self._bound else ():
            for at in self.touched.get(address, ()):
                self._bound[at] = None

    def goes_on(self, workspaces: Sequence[Workspace]) -> bool:
        """Return whether these are the memories of the program, those of as many cores."""
        return all(held() is each for held, each in zip(self._workspaces, workspaces, strict=True))

    def _take_memories(self, device: Memories) -> list[Allocation]:
        """Return what is given to the steps as other runs left it, since they overwrite all of that."""
        found: list[Allocation] = []
        for core in device.cores:
            if not self._overwrites:
                core.memory.freshen()
        whole = {address for address, coverage in self._hbm if coverage is True} if self._overwrites else ()
        # In the order in which they are touched, so that those that are made now are those that were left last.
        for address in self.touched:
            held = device.hbm.allocations[address]
            if address in whole and not held.touched:
                held.take_unfilled()
                found.append(held)
            else:
                held.data  # noqa: B018  (which makes it)
        return found

    def _steps_on(self, device: Memories, lent: frozenset[int] = frozenset()) -> list[Step | None]:
        """Return the steps, with moves bound to where the tensors of a device lie; `lent` ones are not kept."""
        touched = {address: device.hbm.allocations[address].data for address in self.touched}
        moved = {address for address, array in touched.items() if self._tensors.get(address) is not array}
        if self._bound and not moved:
            return self._bound
        steps = (self._bound or self.steps).copy()
        changed = (at for address in moved for at in self.touched[address]) if self._bound else self._carried
        for at in changed:
            if at not in self._copies:
                self._copies[at] = self._carried[at].copy(device)
            copy = self._copies[at]
            steps[at] = self._carried[at].step(device) if copy is None else copy.move(touched[copy.tensor])
        self._bound, self._tensors = [], {}
        kept = {address: array for address, array in touched.items() if address not in lent}
        if sum([array.nbytes for array in kept.values()]) <= _LARGEST:
            self._bound, self._tensors = steps, kept
        return steps

    def _catch_up(
        self,
        device: RepeatingDevice,
        steps: int,
        advance: Callable[[], None],
        untouched: list[Allocation],
        stale: Sequence[Allocation],
    ) -> None:
        """Let a device whose memories are ahead of it come to where they are: times and counters, without data.

        Of the tensors that were `untouched`, those are again that no step has come to; what is `stale` holds bytes of
        other runs where nothing is written.
        """
        reached = {address for address, users in self.touched.items() if users[0] < steps}
        for each in untouched:
            if each.address not in reached:
                each.untouch()
        engines, products = list(engines_of(device)), [core.pe.pending for core in device.cores]
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
            for at, (loaded, _, issued, consumed) in enumerate(engine.flights):
                engine.flights[at] = loaded, words.bound(loaded), issued, consumed
        for core, pending in zip(device.cores, products, strict=True):
            core.pe.pending = pending
        for at, extents in enumerate(self._writes[:steps]):
            for extent in written_by(device, self._carried[at].transfer) if at in self._carried else extents:
                extent.mark()
        for memory in stale:
            memory.fill_unwritten()
        self._warn(device, steps)

    def _warn(self, device: RepeatingDevice, steps: int) -> None:
        """Give a device the warnings of so many steps."""
        device.warnings = tuple([notice for at, notice in self._notices if at < steps])
        device.checking = len(device.warnings) < WARNINGS


def _tensors(device: RepeatingDevice, sides: Sequence[Side]) -> list[int]:
    found = [device.hbm.find(side.address) for side in sides if side.space == "HBM"]
    return [each.address for each in found if each is not None]


def engines_of(device: RepeatingDevice) -> Iterator[Sequencer]:
    """Yield the engines of all cores."""
    for core in device.cores:
        yield from core.engines.values()


def _raw(engine: Sequencer) -> list[bytes]:
    return [each.word.raw for each in engine.words]


def _settling(products: PeState, action: Action) -> Step:
    """Return the effect of a word that meets products which wait for their other half."""

    def settled() -> None:
        products.settle(action.read_places, action.write_places)
        if action.effect is not None:
            action.effect()

    return settled


def _without_device(transfer: Transfer) -> Transfer:
    """Return a transfer that does the same on any device, as a thing to be bound and told of."""
    return Transfer(transfer.request)
