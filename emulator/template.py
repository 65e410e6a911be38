"""Words bound once for all addresses: what is left to do for each is to look where its operands lie.

Words of a program are mostly few words over and over, in other places.  The first of a kind is bound in full; from the
second on, the steps that an executor made for stand-ins are put together over the operands (`emulator.engines.recipe`).
What a kind's steps are does not depend on the device, so that runs of one process share them.
"""

from __future__ import annotations

import mmap
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emulator.access import Operand, Plan, plan_of
from emulator.action import Action, WordPort, cost_of_word, second_slot
from emulator.cost import Claim, Cost
from emulator.dtypes import numpy_dtype
from emulator.engines.recipe import ACCUMULATORS, Cut, Place, Recipe, address_of, recipe_of
from emulator.engines.registry import executor_of, is_movable
from emulator.scratch import Arena, arena_of, taking_from
from formats import isa
from formats.errors import NeuronError
from formats.isa.operand import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE, AccessPattern
from formats.regions import Shape, shape_of

if TYPE_CHECKING:
    from emulator.context import EngineContext

__all__ = ["Template", "is_worth_asking", "template_of"]

_KINDS = 1 << 13  # kinds of words that a process remembers
_LINE = 64
_address = Struct("<I").unpack_from


class _Spec(NamedTuple):
    """An operand of a kind of words: where its address stands, and all but the address."""

    name: str
    at: int
    on_sbuf: bool
    partitions: int
    size: int
    shape: Shape
    reads: bool
    writes: bool


class _Kind(NamedTuple):
    """What words that differ in addresses only have in common, on any device of a chip."""

    specs: tuple[_Spec, ...]
    recipe: Recipe


_SEEN: set[tuple[Any, ...]] = set()
_FOUND: dict[tuple[Any, ...], _Kind | None] = {}


def template_of(engine: EngineContext, word: isa.Instruction, key: bytes) -> Template | None:
    """Return the template of a word's kind for an engine; None where the word has to be bound in full."""
    kind = _kind_of(engine, word, key)
    return None if kind is None else Template(engine, word, kind)


def is_worth_asking(cls: type[isa.Instruction]) -> bool:
    """Return whether words of a class can have a template."""
    return is_movable(cls) and not (cls.MEETS or cls.DECIDES)


def _kind_of(engine: EngineContext, word: isa.Instruction, key: bytes) -> _Kind | None:
    """Return a kind; None for the first of its words, and where it has to be bound in full each time."""
    core = engine.core
    if core.tables:
        return None
    function = core.activation.get(int(word.fields["function"])) if "function" in word.FIELDS else None
    known = (key, engine.name, core.device.target.name, core.extended, function)
    if known in _FOUND:
        return _FOUND[known]
    if known not in _SEEN:
        if len(_SEEN) >= _KINDS:
            _SEEN.clear()
        _SEEN.add(known)
        return None
    if len(_FOUND) >= _KINDS:
        _FOUND.clear()
    found = _FOUND[known] = _make(engine, word)
    return found


@cache
def _stand_in(nbytes: int) -> npt.NDArray[np.uint8]:
    """Return memory that takes none: nothing reads or writes it."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def _make(engine: EngineContext, word: isa.Instruction) -> _Kind | None:
    specs: list[_Spec] = []
    operands: dict[str, Operand] = {}
    places: list[Place] = []
    taken = {True: 0, False: 0}
    for plan in plan_of(type(word)):
        if not plan.field.enabled(word.raw):
            continue
        made = _spec(engine, word, plan, taken)
        if made is None:
            return None
        spec, view, place = made
        places.append(place._replace(owner=len(specs)))
        specs.append(spec)
        operands[plan.name] = Operand(plan.name, view, (), ())
    executor = executor_of(type(word))
    if executor is None:
        return None
    arena, accumulators = Arena(), np.zeros_like(engine.accumulators)
    try:
        with taking_from(arena):
            step = executor(word, _StandInPort(engine, operands, accumulators))
    except NeuronError:
        return None  # bound in full, the word says so itself
    places.append(_whole(ACCUMULATORS, accumulators))
    places += [_whole(number, buffer) for number, buffer in _numbered(arena)]
    recipe = recipe_of(step, places)
    return None if recipe is None else _Kind(tuple(specs), recipe)


def _numbered(arena: Arena) -> list[tuple[tuple[str, int, int], npt.NDArray[np.uint8]]]:
    return [(("scratch", number, buffer.size), buffer) for number, buffer in enumerate(arena.buffers)]


def _whole(owner: Any, array: npt.NDArray[Any]) -> Place:
    address = address_of(array)
    return Place(owner, address, address, array.nbytes, array.nbytes, array.nbytes)


def _spec(
    engine: EngineContext, word: isa.Instruction, plan: Plan, taken: dict[bool, int]
) -> tuple[_Spec, npt.NDArray[Any], Place] | None:
    """Return an operand, its stand-in and where that lies; None where it is empty or of no usual kind."""
    field, raw = plan.field, word.raw
    if field.lanes:
        return None
    value: Any = field.read(raw)
    pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
    partitions, dtype = int(plan.partitions.read(raw)), numpy_dtype(int(word.dtype_of(field)))
    size = dtype.itemsize
    counts = tuple(reversed(pattern.counts))
    strides = tuple([step * size for step in reversed(pattern.steps)])
    if not partitions or 0 in counts:
        return None
    shape = shape_of(zip(strides, counts, strict=True), size, unit=1)
    on_sbuf = pattern.address < PSUM_BASE
    memory = engine.core.memory.array("SBUF" if on_sbuf else "PSUM")
    width = memory.shape[1]
    column = taken[on_sbuf]
    taken[on_sbuf] = column + -(-shape.reach // _LINE) * _LINE
    if taken[on_sbuf] > width:
        return None
    stand_in = _stand_in(memory.nbytes)
    view: npt.NDArray[Any] = np.ndarray((partitions, *counts), dtype, stand_in, column - shape.shift, (width, *strides))
    low = address_of(stand_in) + column
    place = Place(None, low - shape.shift, low, shape.reach, width, memory.nbytes - column)
    return _Spec(plan.name, field.offset, on_sbuf, partitions, size, shape, plan.reads, plan.writes), view, place


class _StandInPort(WordPort):
    """The port of a word whose operands are nowhere yet."""

    __slots__ = ("_accumulators",)

    def __init__(
        self, engine: EngineContext, operands: dict[str, Operand], accumulators: npt.NDArray[np.float32]
    ) -> None:
        super().__init__(engine, operands)
        self._accumulators = accumulators

    @property
    def accumulators(self) -> npt.NDArray[np.float32]:
        return self._accumulators


class _Slot(NamedTuple):
    """An operand of the words of one engine: `spec` unpacked, with the figures of its memory."""

    at: int
    base: int
    stride: int
    width: int
    last: int  # the first partition lies there at most
    shift: int
    reach: int
    size: int
    space: str
    partitions: int
    pattern: Any
    memory: npt.NDArray[np.uint8]


class Template:
    """The words of one kind on one engine."""

    def __init__(self, engine: EngineContext, word: isa.Instruction, kind: _Kind) -> None:
        memory = engine.core.memory
        self._memory = memory
        self._cost: Cost = cost_of_word(engine, word)
        cls = type(word)
        self._serial, self._drain = cls.BRANCHES, cls.DRAINS
        self._waits, self._signals = second_slot(word)
        self._recipe = kind.recipe
        specs = kind.specs
        self._reads = tuple((spec.name, at) for at, spec in enumerate(specs) if spec.reads)
        self._writes = tuple(at for at, spec in enumerate(specs) if spec.writes)
        if word.adds:
            self._reads += tuple((specs[at].name, at) for at in self._writes)
        self._slots: list[_Slot] = []
        for spec in specs:
            space = "SBUF" if spec.on_sbuf else "PSUM"
            array = memory.array(space)
            base, stride = (0, SBUF_PARTITION_STRIDE) if spec.on_sbuf else (PSUM_BASE, PSUM_PARTITION_STRIDE)
            shape = spec.shape
            self._slots.append(
                _Slot(spec.at, base, stride, array.shape[1], memory.partitions - spec.partitions, shape.shift,
                      shape.reach, spec.size, space, spec.partitions, shape.pattern, array)
            )  # fmt: skip
        self._values: list[Any] = list(kind.recipe.constants)
        self._cuts: list[tuple[int, int, Cut]] = []
        arena = arena_of(engine.core)
        for cut in kind.recipe.cuts:
            owner = cut.owner
            if isinstance(owner, int):
                self._cuts.append((len(self._values), owner, cut))
                self._values.append(None)
            else:
                held = engine.accumulators if owner == ACCUMULATORS else arena.buffer(owner[1], owner[2])
                self._values.append(cut.of(held, 0))
        self._engine = engine
        self._bank = memory.psum_bank
        self._timed = engine.device.timing
        self._sbuf = any(spec.on_sbuf for spec in specs)
        self._claims: dict[tuple[int, ...], Claim | None] = {}

    def bind(self, raw: bytes) -> Action | None:
        """Return the action of a word of the kind; None for what has to be bound in full, to say what is wrong."""
        starts, places = [], []
        banks: list[int] = []
        memory = self._memory
        core, bank = memory.core, self._bank
        for at, base, stride, width, last, shift, reach, size, space, partitions, pattern, _ in self._slots:
            first, byte = divmod(_address(raw, at)[0] - base, stride)
            low = byte + shift
            if first > last or low < 0 or low + reach > width or byte % size:
                return None
            starts.append(first * width + byte)
            places.append((space, core, first, partitions, low, reach, pattern))
            if base:
                banks += range(low // bank, -(-(low + reach) // bank))
        values = self._values.copy()
        slots = self._slots
        for number, owner, cut in self._cuts:
            _, offset, shape, strides, dtype = cut
            values[number] = np.ndarray(shape, dtype, slots[owner].memory, starts[owner] + offset, strides)
        cost = self._cost
        action = Action(self._recipe.bind(values), cost.interval_ps, max(cost.latency_ps, 1))
        known, extents = memory.extents, []
        for place in places:
            extents.append(known.get(place) or memory.extent_of(place))
        action.reads = tuple([(name, extents[at]) for name, at in self._reads])
        action.writes = tuple([extents[at] for at in self._writes])
        action.read_places = tuple([places[at] for _, at in self._reads])
        action.write_places = tuple([places[at] for at in self._writes])
        action.serial, action.drain = self._serial, self._drain
        action.waits, action.signals = self._waits, self._signals
        if self._timed:
            asked = tuple(banks)
            if asked in self._claims:
                action.claim = self._claims[asked]
            else:
                engine = self._engine
                action.claim = self._claims[asked] = engine.core.contention.claim(
                    engine.name, cost, set(banks), self._sbuf
                )
        return action
