"""Words of one kind on one engine: what is left to do for each of them is to look where its operands lie.

Words of a program are mostly few words over and over, in other places.  The first of a kind is bound in full; from the
second on, its steps are put together over the operands of each (`emulator.kind`).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand
from emulator.action import Action, WordPort, cost_of_word
from emulator.cost import Claim
from emulator.engines.recipe import ACCUMULATORS, Cut, items_of
from emulator.engines.registry import bind_unguarded, is_lasting
from emulator.kind import Kind, Spec, kind_of
from emulator.scratch import arena_of
from formats import isa
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.regions import Region, RegionParts

if TYPE_CHECKING:
    from emulator.context import EngineContext

__all__ = ["Template", "template_of"]

_address = Struct("<I").unpack_from
_made = tuple.__new__  # a named tuple in half the time
Step = Callable[[], object]


class _Slot(NamedTuple):
    """An operand and its memory: `most` partitions may lie before it, `bank` is what it may not cross."""

    at: int
    base: int
    partition_stride: int
    width: int
    most: int
    shift: int
    reach: int
    size: int
    bank: int
    space: str
    partitions: int
    pattern: Any


class Template:
    """The words of one kind on one engine; `bind` makes the action of each."""

    def __init__(self, engine: EngineContext, word: isa.Instruction, kind: Kind) -> None:
        self._memory = memory = engine.core.memory
        cost = cost_of_word(engine, word)  # which a device may have figures of its own for
        self._cost, self._interval, self._latency = cost, cost.interval_ps, max(cost.latency_ps, 1)
        cls = type(word)
        self._lasting = kind.recipe is not None or is_lasting(cls)
        self._serial, self._drain = cls.BRANCHES, cls.DRAINS
        self._waits, self._signals = kind.waits, kind.signals
        self._specs, self._recipe = kind.specs, kind.recipe
        self._writes = [at for at, spec in enumerate(kind.specs) if spec.writes]
        reads = [at for at, spec in enumerate(kind.specs) if spec.reads]
        self._reads = reads + self._writes if word.adds else reads
        self._read_names = tuple([kind.specs[at].name for at in self._reads])
        self._read, self._written = items_of(self._reads), items_of(self._writes)
        self._arrays = [memory.laid("SBUF" if spec.on_sbuf else "PSUM") for spec in kind.specs]
        self._slots = [self._slot(engine, spec) for spec in kind.specs]
        self._values: list[Any] = []
        self._cuts: list[tuple[int, int, Cut]] = []
        if kind.recipe is not None:
            self._values += kind.recipe.constants
            for cut in kind.recipe.cuts:
                if isinstance(cut.owner, int):
                    self._cuts.append((len(self._values), cut.owner, cut))
                    self._values.append(None)
                elif cut.owner == ACCUMULATORS:
                    self._values.append(cut.of(engine.accumulators, 0))
                else:
                    self._values.append(cut.of(arena_of(engine.core).buffer(*cut.owner), 0))
        self._bank = memory.psum_bank
        self._timed = engine.device.timing
        self._sbuf = any(spec.on_sbuf for spec in kind.specs)
        self._claims: dict[tuple[int, ...], Claim | None] = {}

    def _slot(self, engine: EngineContext, spec: Spec) -> _Slot:
        memory = self._memory
        space, base, stride = (
            ("SBUF", 0, SBUF_PARTITION_STRIDE) if spec.on_sbuf else ("PSUM", PSUM_BASE, PSUM_PARTITION_STRIDE)
        )
        partitions, shape = spec.counts[0], spec.shape
        bank = engine.core.resolver.bank if spec.writes and engine.name == "PE" else 0
        width, most = memory.laid(space).shape[1], memory.partitions - partitions
        return _Slot(spec.at, base, stride, width, most, shape.shift, shape.reach, spec.dtype.itemsize, bank, space,
                     partitions, shape.pattern)  # fmt: skip

    def bind(self, engine: EngineContext, word: isa.Instruction) -> Action | None:
        """Return the action of a word of the kind, for an engine on the same memories.

        None for what has to be bound in full, to say what is wrong.
        """
        raw = word.raw
        starts: list[int] = []
        found: list[RegionParts] = []
        banks: list[int] = []
        core, bank = self._memory.core, self._bank
        for at, base, stride, width, most, shift, reach, size, whole, space, partitions, pattern in self._slots:
            first, byte = divmod(_address(raw, at)[0] - base, stride)
            low = byte + shift
            high = low + reach
            if first > most or low < 0 or high > width or byte % size:
                return None
            if whole and low // whole != (high - 1) // whole:
                return None
            starts.append(first * width + byte)
            found.append((space, core, first, partitions, low, reach, pattern))
            if base:
                banks += range(low // bank, -(-high // bank))
        places = tuple(found)
        action = Action(self._effect(engine, word, starts), self._interval, self._latency)
        known, other = self._memory.extents.get, self._memory.extent_of
        extents = tuple([known(place) or other(place) for place in places])
        action.reads, action.read_names, action.writes = self._read(extents), self._read_names, self._written(extents)
        action.read_places, action.write_places = self._read(places), self._written(places)
        action.serial, action.drain, action.lasting = self._serial, self._drain, self._lasting
        action.waits, action.signals, action.template = self._waits, self._signals, self
        if self._timed:
            asked = tuple(banks)
            if asked not in self._claims:
                claim = engine.core.contention.claim(engine.name, self._cost, set(banks), self._sbuf)
                self._claims[asked] = claim
            action.claim = self._claims[asked]
            action.apart, action.lag = self._cost.apart_ps, self._cost.lag_ps
        return action

    def operands(self, action: Action) -> dict[str, Operand]:
        """Return the operands of an action that was bound here, by name."""
        found: dict[str, Operand] = {}
        touched = zip((*self._reads, *self._writes), (*action.read_places, *action.write_places),
                      (*action.reads, *action.writes), strict=True)  # fmt: skip
        at = {number: (place, extent) for number, place, extent in touched}
        for number, (spec, array) in enumerate(zip(self._specs, self._arrays, strict=True)):
            place, extent = at[number]
            width = array.shape[1]
            start = place[2] * width + place[4] - spec.shape.shift
            view: npt.NDArray[Any] = np.ndarray(spec.counts, spec.dtype, array, start, (width, *spec.strides))
            found[spec.name] = _made(Operand, (spec.name, view, (_made(Region, place),), (extent,)))
        return found

    def _effect(self, engine: EngineContext, word: isa.Instruction, starts: list[int]) -> Step:
        """Return the effect of a word whose operands begin at some bytes of their memories."""
        arrays = self._arrays
        if self._recipe is not None:
            values = self._values.copy()
            for number, owner, (_, offset, shape, strides, dtype) in self._cuts:
                values[number] = np.ndarray(shape, dtype, arrays[owner], starts[owner] + offset, strides)
            return self._recipe.bind(values)
        operands: dict[str, Operand] = {}
        for spec, array, start in zip(self._specs, arrays, starts, strict=True):
            strides = (array.shape[1], *spec.strides)
            view: npt.NDArray[Any] = np.ndarray(spec.counts, spec.dtype, array, start, strides)
            operands[spec.name] = Operand(spec.name, view, (), ())
        return bind_unguarded(word, WordPort(engine, operands))


def template_of(engine: EngineContext, word: isa.Instruction, key: bytes) -> Template | None:
    """Return the template of a word's kind for an engine; None where the word has to be bound in full."""
    kind = kind_of(engine, word, key)
    return None if kind is None else Template(engine, word, kind)
