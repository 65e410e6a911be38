"""Words that take the marks of one tile to another, and do nothing else to them: worked out once for a kind."""

from __future__ import annotations

from typing import Any

from emulator.action import Action, operands_of
from emulator.checks.bands import Band
from emulator.checks.flow import Flow, goes_by_data, outputs_of
from emulator.checks.mark_rows import MarkRows, Stencil
from emulator.checks.undefined import BandedPlanes
from emulator.core import Core
from formats import isa
from formats.isa import Dataflow
from formats.isa.behaviour import EngineState
from formats.neuron_core import PARTITIONS

__all__ = ["Courses"]


class _Course:
    """What words of a kind do: `made` is what becomes of a stencil, by the operand, -1 for the weights; None: ask."""

    __slots__ = ("is_product", "made", "size", "sizes")

    def __init__(self, sizes: tuple[int, ...], size: int, is_product: bool) -> None:
        self.sizes, self.size, self.is_product = sizes, size, is_product
        self.made: dict[tuple[int, Stencil], Stencil | None] = {}


class Courses:
    """The courses of a run's words, by the template that each was bound by."""

    def __init__(self, planes: BandedPlanes) -> None:
        self._planes = planes
        self._known: dict[Any, _Course | None] = {}

    def take(self, core: Core, engine: str, word: isa.Instruction, action: Action, flow: Flow) -> bool:
        """Give the output of a word its marks; return False, with nothing done, where that takes a closer look.

        All that the word reads was written.
        """
        template = action.template
        if template in self._known:
            course = self._known[template]
        else:
            course = self._known[template] = _course(core, engine, word, action)
        if course is None or flow.accumulators or flow.generators:
            return False
        planes, index = self._planes, core.index
        at, given = -1, None
        if course.is_product:
            given = flow.weights.get(flow.current)
            if given is not None and given.stencil is None:
                return False
        try:
            for number, (space, _, _, _, low, nbytes, _) in enumerate(action.read_places):
                bands = planes.bands_of(index, space)
                band = None if bands is None else bands.exactly(low, low + nbytes)
                if band is None:
                    continue
                which, rows, start, unit, one, stencil, numbers = band
                if given is not None or stencil is None or course.is_product:
                    return False
                if start or unit != course.sizes[number] or unit * rows.shape[1] != nbytes:
                    return False
                at, given = number, MarkRows(which, rows, one, stencil, numbers)
            space, _, _, _, low, nbytes, _ = action.write_places[0]
            bands = planes.bands_of(index, space)
            if given is None or not given.is_any:
                return given is None and (bands is None or bands.exactly(low, low + nbytes) is None)
        except LookupError:
            return False
        stencil = given.stencil
        assert stencil is not None
        if (at, stencil) in course.made:
            made = course.made[at, stencil]
        else:
            made = course.made[at, stencil] = _made(core, engine, word, action, flow, at, given)
        if made is None:
            return False
        marks = given if made is stencil else made.marks(*given.numbers)
        if bands is None:
            bands = planes.made(core, space)
        bands.replace(low, low + nbytes, Band(marks.which, marks.rows, 0, course.size, *marks[2:]))
        return True


def _course(core: Core, engine: str, word: isa.Instruction, action: Action) -> _Course | None:
    """Return the course of words of a kind, None where each takes a closer look."""
    cls = type(word)
    is_product = cls.DATAFLOW is Dataflow.PRODUCT
    if cls.REGISTERS or cls.STATE is not EngineState.NONE or cls.KEEPS or word.adds or goes_by_data(cls):
        return None
    if cls.DATAFLOW in (Dataflow.WEIGHTS, Dataflow.ACCUMULATORS, Dataflow.PERMUTATION):
        return None
    if is_product and not getattr(word, "transpose_mode", 0):
        return None
    operands = operands_of(core.engines[engine], word, action)
    outputs = [operand for name, operand in operands.items() if name not in action.read_names]
    if len(operands) != len(action.reads) + 1 or len(outputs) != 1 or len(action.writes) != 1 or not action.reads:
        return None
    for operand in operands.values():
        view = operand.view
        row = view[0]
        if view.shape[0] != PARTITIONS or not row.flags.c_contiguous or operand.regions[0].nbytes != row.nbytes:
            return None
    sizes = tuple([operands[name].view.itemsize for name in action.read_names])
    return _Course(sizes, outputs[0].view.itemsize, is_product)


def _made(
    core: Core, engine: str, word: isa.Instruction, action: Action, flow: Flow, at: int, given: MarkRows
) -> Stencil | None:
    """Return what becomes of the stencil of an operand, where each of its numbers is in it again; else None."""
    operands = operands_of(core.engines[engine], word, action)
    inputs: dict[str, MarkRows | None] = dict.fromkeys(action.read_names)
    if at >= 0:
        inputs[action.read_names[at]] = given
    outputs = {name: operand for name, operand in operands.items() if name not in inputs}
    (marks,) = outputs_of(flow, word, engine, inputs, outputs, core).values()
    return None if marks is None or marks.numbers != given.numbers else marks.stencil
