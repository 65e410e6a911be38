"""Kinds of words: what words that differ in addresses only have in common, worked out once for a process.

The steps of a kind are those that an executor makes for stand-ins: operands in memory that nothing reads or writes.
"""

from __future__ import annotations

import mmap
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand, Plan, plan_of
from emulator.action import WordPort, make_action, second_slot
from emulator.dtypes import numpy_dtype
from emulator.engines.recipe import ACCUMULATORS, Place, Recipe, address_of, recipe_of
from emulator.engines.registry import executor_of, is_movable
from emulator.scratch import Arena, taking_from
from formats import isa
from formats.errors import NeuronError
from formats.isa.operand import AccessPattern
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE
from formats.regions import Shape, shape_of

if TYPE_CHECKING:
    from emulator.context import EngineContext

__all__ = ["Kind", "Spec", "is_worth_asking", "kind_of"]

_KINDS = 1 << 13  # kinds of words that a process remembers
_LINE = 64


class Spec(NamedTuple):
    """An operand: at which byte of a word its address stands, and all but the address."""

    name: str
    at: int
    on_sbuf: bool
    counts: tuple[int, ...]  # of partitions, and of the dimensions, outermost first
    strides: tuple[int, ...]  # of the dimensions
    dtype: np.dtype[Any]
    shape: Shape
    reads: bool
    writes: bool


class Kind(NamedTuple):
    """The operands that words use, and their steps; without a recipe, an executor is called for each word.

    `waits` and `signals` are those of a second slot.
    """

    specs: tuple[Spec, ...]
    recipe: Recipe | None
    waits: tuple[isa.Awaited, ...]
    signals: tuple[isa.Signal, ...]


_SEEN: set[tuple[Any, ...]] = set()
_FOUND: dict[tuple[Any, ...], Kind | None] = {}


def is_worth_asking(cls: type[isa.Instruction]) -> bool:
    """Return whether words of a class can be bound by their kind."""
    return not (cls.MEETS or cls.DECIDES or cls.CARRIED_OUT)


def kind_of(engine: EngineContext, word: isa.Instruction, key: bytes) -> Kind | None:
    """Return the kind of a word; None for the first of its words, and where each has to be bound in full."""
    core = engine.core
    if core.tables:
        return None
    field = word.FIELDS.get("function")
    function = None if field is None else core.activation.get(int(field.read(word.raw)))
    device = core.device
    known = (type(word), key, engine.name, device.target.name, device.timing, core.extended, function)
    if known in _FOUND:
        return _FOUND[known]
    if known not in _SEEN:
        if len(_SEEN) >= _KINDS:
            _SEEN.clear()
        _SEEN.add(known)
        return None
    try:
        make_action(engine, word, False)  # what no word of the kind may do is not for the kind to allow
    except NeuronError:
        return None
    if len(_FOUND) >= _KINDS:
        _FOUND.clear()
    found = _FOUND[known] = _make(engine, word)
    return found


def _make(engine: EngineContext, word: isa.Instruction) -> Kind | None:
    specs: list[Spec] = []
    for plan in plan_of(type(word)):
        if plan.field.enabled(word.raw):
            spec = _spec(word, plan)
            if spec is None:
                return None
            specs.append(spec)
    executor = executor_of(type(word))
    if executor is None:
        return None
    recipe = _recipe(engine, word, specs) if is_movable(type(word)) else None
    return Kind(tuple(specs), recipe, *second_slot(word))


def _spec(word: isa.Instruction, plan: Plan) -> Spec | None:
    """Return an operand; None where it is empty, or has partitions that are left alone."""
    field, raw = plan.field, word.raw
    value: Any = field.read(raw)
    pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
    partitions, dtype = int(plan.partitions.read(raw)), numpy_dtype(int(word.dtype_of(field)))
    counts = (partitions, *reversed(pattern.counts))
    if 0 in counts or field.lanes:
        return None
    size = dtype.itemsize
    strides = tuple([step * size for step in reversed(pattern.steps)])
    shape = shape_of(zip(strides, counts[1:], strict=True), size, unit=1)
    on_sbuf = pattern.address < PSUM_BASE
    return Spec(plan.name, field.offset, on_sbuf, counts, strides, dtype, shape, plan.reads, plan.writes)


@cache
def _stand_in(nbytes: int) -> npt.NDArray[np.uint8]:
    """Return memory that takes none, since nothing reads or writes it."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def _recipe(engine: EngineContext, word: isa.Instruction, specs: list[Spec]) -> Recipe | None:
    """Return the steps of a kind, made for operands side by side in each partition; None where they do not fit."""
    operands: dict[str, Operand] = {}
    places: list[Place] = []
    columns = {True: 0, False: 0}
    for number, spec in enumerate(specs):
        memory = engine.core.memory.laid("SBUF" if spec.on_sbuf else "PSUM")
        width, column, shape = memory.shape[1], columns[spec.on_sbuf], spec.shape
        columns[spec.on_sbuf] = column + -(-shape.reach // _LINE) * _LINE
        if columns[spec.on_sbuf] > width:
            return None
        stand_in = _stand_in(memory.nbytes)
        view: npt.NDArray[Any] = np.ndarray(
            spec.counts, spec.dtype, stand_in, column - shape.shift, (width, *spec.strides)
        )
        low = address_of(stand_in) + column
        places.append(Place(number, low - shape.shift, low, shape.reach, width, memory.nbytes - column))
        operands[spec.name] = Operand(spec.name, view, (), ())
    arena, accumulators = Arena(), np.zeros_like(engine.accumulators)
    executor = executor_of(type(word))
    if executor is None:
        return None
    try:
        with taking_from(arena):
            step = executor(word, _StandInPort(engine, operands, accumulators))
    except NeuronError:
        return None  # each word says so itself
    places.append(_whole(ACCUMULATORS, accumulators))
    places += [_whole((number, buffer.size), buffer) for number, buffer in enumerate(arena.buffers)]
    return recipe_of(step, places)


def _whole(owner: Any, array: npt.NDArray[Any]) -> Place:
    address = address_of(array)
    return Place(owner, address, address, array.nbytes, array.nbytes, array.nbytes)


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
