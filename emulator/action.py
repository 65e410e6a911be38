"""Words made ready to run: effect, regions, cost; and the port through which executors reach the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from emulator import activation_functions
from emulator.access import Operand, plan_of
from emulator.activation_tables import bind_table
from emulator.cost import Claim, Cost
from emulator.engines import PeState, bind_unguarded
from emulator.engines.registry import is_lasting
from emulator.extents import Extent
from emulator.faults import fault_error
from emulator.port import ActivationCall, Array
from formats import isa
from formats.errors import UnsupportedError
from formats.isa.signals import SECOND_SLOT
from formats.regions import Region, RegionParts

if TYPE_CHECKING:
    from emulator.context import CoreContext, EngineContext, ResolvingEngine

_made = tuple.__new__  # a named tuple in half the time

__all__ = [
    "Action", "BoundBy", "WordPort", "cost_of_word", "make_action", "operands_of", "regions_of_word", "second_slot",
]  # fmt: skip


class BoundBy(Protocol):
    """What words of a kind are bound by."""

    def operands(self, action: Action) -> dict[str, Operand]:
        """Return the operands of an action that was bound by this, by name."""
        ...


class Action:
    """What a word does, bound to one engine; shared by every word with the same operands.

    `reads` and `writes` are extents, `read_names` the operands of the former; `serial` words decide what comes next,
    `drain` words wait for everything before, `barrier` words meet the other core, `claim` is what they share with other
    engines; `waits` and `signals` are those of a second slot. A `lasting` one does for the next device on the same
    memories, too: its effect asks nothing of this one. An effect runs with NumPy's warnings off. Times are picoseconds;
    `apart` and `lag` are those of `Cost`. `operands` are those of a word that does something itself, by name, once
    somebody asked for them (`operands_of`).
    """

    __slots__ = (
        "_read_regions",
        "_write_regions",
        "apart",
        "barrier",
        "claim",
        "drain",
        "effect",
        "interval",
        "lag",
        "lasting",
        "latency",
        "operands",
        "read_names",
        "read_places",
        "reads",
        "serial",
        "signals",
        "template",
        "waits",
        "write_places",
        "writes",
    )
    _read_regions: tuple[Region, ...]
    _write_regions: tuple[Region, ...]

    def __init__(self, effect: Callable[[], object] | None, interval: int, latency: int) -> None:
        self.effect, self.interval, self.latency = effect, interval, latency
        self.reads: tuple[Extent, ...] = ()
        self.read_names: tuple[str, ...] = ()
        self.writes: tuple[Extent, ...] = ()
        self.read_places: tuple[RegionParts, ...] = ()
        self.write_places: tuple[RegionParts, ...] = ()
        self.waits: tuple[isa.Awaited, ...] = ()
        self.signals: tuple[isa.Signal, ...] = ()
        self.serial = self.drain = self.barrier = self.lasting = False
        self.claim: Claim | None = None
        self.operands: dict[str, Operand] | None = None
        self.template: BoundBy | None = None  # None where it was bound by itself
        self.apart = self.lag = 0

    def without_data(self) -> Action:
        """Return an action of the same course that neither reads nor writes."""
        bare = Action(None, self.interval, self.latency)
        bare.read_places, bare.write_places = self.read_places, self.write_places
        bare.waits, bare.signals = self.waits, self.signals
        bare.serial, bare.drain, bare.barrier, bare.claim = self.serial, self.drain, self.barrier, self.claim
        bare.apart, bare.lag = self.apart, self.lag
        return bare

    # Made for the first observer that asks; not by `__getattr__`, which makes all other attributes slow.
    @property
    def read_regions(self) -> tuple[Region, ...]:
        """Return the bytes that are read."""
        try:
            return self._read_regions
        except AttributeError:
            self._read_regions = found = tuple([_made(Region, place) for place in self.read_places])
            return found

    @property
    def write_regions(self) -> tuple[Region, ...]:
        """Return the bytes that are written."""
        try:
            return self._write_regions
        except AttributeError:
            self._write_regions = found = tuple([_made(Region, place) for place in self.write_places])
            return found


class WordPort:
    """The port of one word (see emulator.port.Port)."""

    __slots__ = ("_operands", "_sequencer")

    def __init__(self, sequencer: EngineContext, operands: Mapping[str, Operand]) -> None:
        self._sequencer, self._operands = sequencer, operands

    @property
    def engine(self) -> str:
        return self._sequencer.name

    @property
    def core(self) -> CoreContext:
        return self._sequencer.core

    @property
    def generation(self) -> str:
        return self._sequencer.device.target.generation

    @property
    def extended(self) -> bool:
        return self._sequencer.core.extended

    @property
    def registers(self) -> list[int]:
        return self._sequencer.registers

    @property
    def accumulators(self) -> npt.NDArray[np.float32]:
        return self._sequencer.accumulators

    @property
    def pe(self) -> PeState:
        return self._sequencer.core.pe

    def read(self, operand: str) -> Array:
        return self._view(operand)

    def write(self, operand: str) -> Array:
        return self._view(operand)

    def _view(self, operand: str) -> Array:
        found = self._operands.get(operand)
        if found is None:
            raise fault_error("operand", f"{operand}: the word has no such operand in use", operand=operand)
        return found.view

    def pointer(self, operand: str) -> Array | None:
        found = self._operands.get(operand)
        return None if found is None else found.view.reshape(-1, 1)

    def activation(self, function_id: int) -> ActivationCall:
        names = self._sequencer.core.activation
        if function_id not in names:
            known = ", ".join(f"{number} {name}" for number, name in sorted(names.items())) or "none"
            raise UnsupportedError(f"activation function {function_id} is not in the file's table ({known})")
        table = self._sequencer.core.tables.get(function_id)
        return activation_functions.bind(names[function_id]) if table is None else bind_table(*table)

    def branch(self, byte_offset: int) -> None:
        self._sequencer.branch(byte_offset)

    def set_semaphore(self, index: int, value: int) -> None:
        device = self._sequencer.device
        self._sequencer.core.semaphores.set(index, value, device.now_ps)

    def write_device(self, address: int, size: int, value: int) -> None:
        self._sequencer.device.write_device(address, size, value)

    def read_device(self, address: int, size: int) -> int:
        return self._sequencer.device.read_device(address, size)


def make_action(sequencer: EngineContext, word: isa.Instruction, starts_transfer: bool) -> Action:
    """Bind a word to its engine: operands resolved and checked, executor bound, cost looked up.

    Raises FaultError for operands that lie where they must not, FormatError for contradicting ones, UnsupportedError
    for what is not modelled.
    """
    cls = type(word)
    name, device = sequencer.name, sequencer.device
    if name not in cls.ENGINES and cls is not isa.Unknown:
        raise fault_error("operand", f"{word.NAME} does not run on {name}", expected=" or ".join(cls.ENGINES), got=name)
    if cls.MEETS and len(device.cores) < 2:
        raise fault_error("operand", f"{word.NAME} needs a second core", expected="2 cores", got=f"{len(device.cores)}")
    reads: list[Operand] = []
    writes: list[Operand] = []
    effect = None
    if not cls.MEETS and not starts_transfer:
        operands = _operands(sequencer, word, reads, writes)
        effect = bind_unguarded(word, WordPort(sequencer, operands))
    elif cls.DECIDES:
        _operands(sequencer, word, reads, writes)  # the engine itself reads the indices
    cost = cost_of_word(sequencer, word)
    action = Action(effect, cost.interval_ps, max(cost.latency_ps, 1))
    action.reads = tuple(extent for operand in reads for extent in operand.extents)
    action.read_names = tuple(operand.name for operand in reads for _ in operand.extents)
    action.writes = tuple(extent for operand in writes for extent in operand.extents)
    regions = tuple(region for operand in (*reads, *writes) for region in operand.regions)
    action.read_places = tuple(region for operand in reads for region in operand.regions)
    action.write_places = tuple(region for operand in writes for region in operand.regions)
    # Actions are shared by words whose headers differ: what stands in the header is read anew each time.
    action.waits, action.signals = second_slot(word)
    action.serial, action.drain, action.barrier = cls.BRANCHES, cls.DRAINS, cls.MEETS
    action.lasting = effect is None or is_lasting(cls)
    if device.timing:
        action.apart, action.lag = cost.apart_ps, cost.lag_ps
        bank = device.arch.psum_bank.whole
        banks = {
            at
            for region in regions
            if region.space == "PSUM"
            for at in range(region.byte // bank, -(-region.end // bank))
        }
        sbuf = any(region.space == "SBUF" for region in regions)
        action.claim = sequencer.core.contention.claim(name, cost, banks, sbuf)
    return action


def _operands(
    sequencer: ResolvingEngine,
    word: isa.Instruction,
    reads: list[Operand],
    writes: list[Operand],
) -> dict[str, Operand]:
    """Return a word's operands by name and sort them; a word that adds reads what it adds to."""
    resolve, engine = sequencer.core.resolver.resolve, sequencer.name
    found: dict[str, Operand] = {}
    for plan in plan_of(type(word)):
        operand = resolve(word, plan, engine)
        if operand is not None:
            found[plan.name] = operand
            if plan.reads:
                reads.append(operand)
            if plan.writes:
                writes.append(operand)
    if word.adds:
        reads += writes
    return found


def operands_of(engine: ResolvingEngine, word: isa.Instruction, action: Action) -> dict[str, Operand]:
    """Return the operands of a word that is bound, by name."""
    found = action.operands
    if found is None:
        template = action.template
        found = _operands(engine, word, [], []) if template is None else template.operands(action)
        if action.effect is not None:  # words that start transfers share actions, whatever their addresses
            action.operands = found
    return found


def second_slot(word: isa.Instruction) -> tuple[tuple[isa.Awaited, ...], tuple[isa.Signal, ...]]:
    """Return what a word waits for and signals besides what its header says."""
    return (
        tuple([each for each in word.waits if each.by == SECOND_SLOT]),
        tuple([each for each in word.signals if each.by == SECOND_SLOT]),
    )


def cost_of_word(sequencer: EngineContext, word: isa.Instruction) -> Cost:
    """Return what a word costs; words that differ in addresses only, and not in memory, cost the same."""
    key = word.without_addresses()
    found = sequencer.costs.get(key)
    if found is None:
        found = sequencer.costs[key] = sequencer.device.costs.cost_of(word, sequencer.name)
    return found


def regions_of_word(engine: ResolvingEngine, word: isa.Instruction) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Return (reads, writes) of a word's operands, on a live device or in a dump; errors as in `make_action`."""
    reads: list[Operand] = []
    writes: list[Operand] = []
    _operands(engine, word, reads, writes)
    return tuple(each for one in reads for each in one.regions), tuple(each for one in writes for each in one.regions)
