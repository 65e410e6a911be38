"""Which undefined bytes of a result come from which of the inputs, by the dataflow that each class declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emulator.access import Operand, plan_of
from emulator.checks.mark_rows import MarkRows, folded, larger, of_lanes, transposed, uniform, used
from emulator.checks.poison import Marks
from emulator.core import Core
from emulator.engines.indirection import column_places
from formats import isa
from formats.isa import KEPT, Dataflow, Fp32Pass, ReduceCommand
from formats.isa.behaviour import EngineState
from formats.neuron_core import PARTITIONS, QUADRANT

__all__ = ["Flow", "goes_by_data", "outputs_of"]

_GROUP = 16  # partitions of one GpSimd core
_BY_DATA = (Dataflow.GATHER, Dataflow.SCATTER, Dataflow.CHOICE)
_SHARED = (Dataflow.GROUP, Dataflow.LOOKUP)
_WHOLE_PARTITIONS = (Dataflow.PARTITION, Dataflow.GROUP, Dataflow.LOOKUP)

Inputs = Mapping[str, "MarkRows | None"]


class Flow:
    """What engines of one core keep between words: weights, accumulators and random numbers, as marks."""

    def __init__(self) -> None:
        self.weights: dict[bool, MarkRows] = {}
        self.current = False  # which of the two tiles products use: that of the low half of fp32, or the other
        self.accumulators: dict[str, Marks] = {}
        self.generators: dict[str, Marks] = {}  # by engine, of each lane
        self.looks_at_data = False  # whether any marks went where data said

    def reaches(self, word: Any) -> bool:
        """Return whether an engine holds anything undefined that a word may change or make something of."""
        if word.DATAFLOW is Dataflow.PRODUCT:
            return bool(self.weights) and any(weights.is_any for weights in self.weights.values())
        if not (self.accumulators or self.generators):
            return False
        for held in (self.accumulators, self.generators):
            for marks in held.values():
                if marks.any():
                    return True
        return False

    def held(self, word: Any, engine: str) -> tuple[MarkRows | None, ...]:
        """Return what of an engine a word's results depend on, besides its operands."""
        if word.DATAFLOW is Dataflow.PRODUCT:
            return (self.weights.get(self.current),)
        if word.STATE is not EngineState.GENERATOR and word.DATAFLOW is not Dataflow.ACCUMULATORS:
            return ()
        generators = self.generators.get(engine) if word.STATE is EngineState.GENERATOR else None
        accumulators = self.accumulators.get(engine) if word.DATAFLOW is Dataflow.ACCUMULATORS else None
        return tuple([None if lanes is None else of_lanes(lanes) for lanes in (accumulators, generators)])

    def load(self, word: isa.LoadWeights, marks: MarkRows | None) -> None:
        """Latch the marks of a stationary tile; it arrives backwards."""
        self.current = int(word.fp32_mode) == Fp32Pass.LOW and not word.transpose_mode
        if marks is not None:
            if marks.stencil is not None:
                marks = marks.stencil.backwards.marks(*marks.numbers)
            else:
                marks = MarkRows(marks.which, marks.rows[:, ::-1].copy(), marks.number)
            self.weights[self.current] = marks
        elif self.weights:
            self.weights.pop(self.current, None)

    def product(self, word: isa.MatMul, moving: MarkRows | None, before: MarkRows | None, size: int) -> MarkRows | None:
        """Return the marks of a product: column j depends on weights of column j, element n on moving column n."""
        weights = self.weights.get(self.current)
        if word.transpose_mode:
            if weights is None:
                return None
            turned = transposed(weights)
            if turned.rows.shape[1] <= size:
                return turned
            return MarkRows(turned.which, turned.rows[:, :size], turned.number)
        found: MarkRows | None = None
        if weights is not None:
            found = _wide(of_lanes(weights.rows.max(0), weights.number), size)
        if moving is not None:
            columns = uniform(word.cols, moving.rows.max(0), moving.number)
            found = columns if found is None else larger(found, columns)
        if before is not None and word.adds:
            found = before if found is None else larger(found, before)
        return found

    def seed(self, engine: str, word: Any, marks: MarkRows | None) -> None:
        """Give the generators of an engine the marks of what they are set from; one number sets those of all lanes."""
        lanes = self.generators[engine] = np.zeros(PARTITIONS, np.int16)
        if marks is not None and word.DATAFLOW is Dataflow.ALL:
            lanes[:] = marks.rows.max()
        elif marks is not None:
            lanes[: marks.which.size] = marks.lanes()

    def fold(self, word: Any, engine: str, results: MarkRows | None) -> None:
        """Let a word that folds its results into accumulators do the same with marks."""
        command = int(getattr(word, "reduce_command", 0))
        if command == ReduceCommand.IDLE:
            return
        lanes = self.accumulators.setdefault(engine, np.zeros(PARTITIONS, np.int16))
        if command in (ReduceCommand.RESET, ReduceCommand.RESET_REDUCE, ReduceCommand.LOAD_REDUCE):
            lanes[:] = 0
        if command != ReduceCommand.RESET and results is not None:
            rows = results.lanes()
            lanes[: rows.size] = np.maximum(lanes[: rows.size], rows)


def goes_by_data(cls: type[isa.Instruction]) -> bool:
    """Return whether data decide where words of a class take undefined bytes."""
    return bool(cls.FILL) or cls.DATAFLOW in _BY_DATA


def _wide(marks: MarkRows, size: int) -> MarkRows:
    """Return marks of one element as those of several."""
    return MarkRows(marks.which, np.broadcast_to(marks.rows, (marks.rows.shape[0], size)), marks.number)


def outputs_of(
    flow: Flow, word: Any, engine: str, inputs: Inputs, outputs: Mapping[str, Operand], core: Core
) -> dict[str, MarkRows | None]:
    """Return the marks of each output of a word; `inputs` hold those of outputs that it may leave as they are, too."""
    if word.DATAFLOW is Dataflow.PRODUCT:
        view = outputs["dst"].view
        size = view.size // max(view.shape[0], 1)
        return {"dst": flow.product(word, inputs.get("src"), inputs.get("dst"), size)}
    if word.DATAFLOW is Dataflow.ACCUMULATORS:
        held = flow.accumulators.get(engine)
        return {name: None if held is None else of_lanes(held[: o.view.shape[0]]) for name, o in outputs.items()}
    random = word.STATE is EngineState.GENERATOR
    if random and not outputs:
        flow.seed(engine, word, inputs.get("src"))
        return {}
    lanes = flow.generators.get(engine) if random else None
    if goes_by_data(type(word)):
        flow.looks_at_data = True
    if all(name in outputs for name in inputs) and lanes is None:
        return dict.fromkeys(outputs)
    found: dict[str, MarkRows | None] = {}
    marks = {name: value for name, value in inputs.items() if value is not None}
    given = {name: value for name, value in marks.items() if name not in outputs}
    for name, operand in outputs.items():
        view = operand.view
        shape = (view.shape[0], view.size // max(view.shape[0], 1))
        # Nothing undefined makes nothing undefined, whatever the word does.
        made = _one(word, given, marks.get(name), operand, shape, core, engine) if marks else None
        if lanes is not None:
            drawn = _wide(of_lanes(lanes[: shape[0]]), shape[1])
            made = drawn if made is None else larger(made, drawn)
        found[name] = made
    flow.fold(word, engine, found.get("dst"))
    return found


def _one(
    word: Any,
    marks: dict[str, MarkRows],
    before: MarkRows | None,
    operand: Operand,
    shape: tuple[int, int],
    core: Core,
    engine: str,
) -> MarkRows | None:
    flow = word.DATAFLOW
    if flow is Dataflow.PERMUTATION:
        return _shuffled(word, marks.get("src"), before, shape)
    if flow is Dataflow.TRANSPOSE:
        return _turned(word, marks["src"]) if "src" in marks else None
    if flow is Dataflow.GATHER or flow is Dataflow.SCATTER or flow is Dataflow.CHOICE:
        stays = None if before is None else before.spread()
        decide = _chosen if flow is Dataflow.CHOICE else _indirect
        return folded(decide(word, marks, stays, shape, core, engine))
    found: MarkRows | None = None
    asked: MarkRows | None = None  # what comes of all inputs but the one that the word fills up
    if len(marks) == 1 and not word.FILL and before is None and flow not in _SHARED:
        (value,) = marks.values()
        return _spread(word, value, shape)
    for name, value in marks.items():
        shared = flow is Dataflow.GROUP or (flow is Dataflow.LOOKUP and name == "indices")
        wide = _spread(word, _grouped(value) if shared else value, shape)
        found = wide if found is None else larger(found, wide)
        if name != "src":
            asked = wide if asked is None else larger(asked, wide)
    if found is not None and word.FILL:
        fill = np.asarray(getattr(word, word.FILL)).astype(operand.view.dtype)
        left = np.zeros(shape, np.int16) if asked is None else asked.spread()
        found = folded(np.where(operand.view.reshape(shape) == fill, left, found.spread()))
    if before is not None and word.adds:
        found = before if found is None else larger(found, before)
    return found


def _spread(word: Any, marks: MarkRows, shape: tuple[int, int]) -> MarkRows:
    """Return what one input contributes to each element of an output."""
    partitions, size = shape
    flow, (which, rows, number) = word.DATAFLOW, marks[:3]
    elements = rows.shape[1]
    if flow is Dataflow.ALL or which.size != partitions:
        return uniform(partitions, np.full(size, rows.max(), np.int16), number)
    if flow not in _WHOLE_PARTITIONS:
        if elements == size:
            return MarkRows(which, np.maximum.accumulate(rows, 1), number) if flow is Dataflow.EARLIER else marks
        if elements > size and elements % size == 0:
            return MarkRows(which, rows.reshape(-1, size, elements // size).max(2), number)
    return _wide(MarkRows(which, rows.max(1)[:, None], number), size)


def _grouped(marks: MarkRows) -> MarkRows:
    """Return marks with each partition marked as the whole of its group is."""
    lanes = marks.lanes()
    starts = np.arange(0, lanes.size, _GROUP)
    return of_lanes(np.repeat(np.maximum.reduceat(lanes, starts), _GROUP)[: lanes.size], marks.number)


def _turned(word: Any, source: MarkRows) -> MarkRows:
    """Return marks with partitions and elements exchanged."""
    if source.which.size == word.channels:
        return transposed(source)
    return folded(np.ascontiguousarray(source.spread().reshape(word.channels, word.columns).T))


def _shuffled(word: Any, source: MarkRows | None, before: MarkRows | None, shape: tuple[int, int]) -> MarkRows:
    none = uniform(shape[0], np.zeros(shape[1], np.int16))
    numbers = {one.number for one in (source, before) if one is not None}
    source, before = source or none, before or none
    places = np.arange(shape[0])
    chosen = np.asarray(word.mask, np.intp)[places % QUADRANT]
    stays = chosen == KEPT
    moved = source.which[np.where(stays, 0, places - places % QUADRANT + chosen)]
    which = np.where(stays, before.which + source.rows.shape[0], moved)
    return used(which, np.concatenate((source.rows, before.rows)), numbers.pop() if len(numbers) == 1 else 0)


def _indirect(
    word: Any, marks: dict[str, MarkRows], before: Marks | None, shape: tuple[int, int], core: Core, engine: str
) -> Marks:
    """Return the marks of gathered or scattered columns, by the indices as they are; undefined ones spoil the whole."""
    plan = next(plan for plan in plan_of(type(word)) if plan.name == "indices")
    indices = core.resolver.resolve(word, plan, engine)
    asked = [marks[name].rows.max() for name in ("indices", "predicate") if name in marks]
    if indices is None or asked:
        return np.full(shape, max((*asked, *(one.rows.max() for one in marks.values())), default=0), np.int16)
    rows, source = indices.view.reshape(shape[0], -1), marks["src"].spread() if "src" in marks else None
    if word.DATAFLOW is Dataflow.GATHER:
        places = column_places(rows, word.group, shape[1])
        return np.zeros(shape, np.int16) if source is None else np.take_along_axis(source, places, 1)
    found = np.zeros(shape, np.int16) if before is None else before.copy()
    count = word.src.elements
    places = column_places(rows, word.group, count)
    added = np.zeros(places.shape, np.int16) if source is None else source
    if word.accumulate or word.uses("predicate"):
        np.maximum.at(found, (np.arange(shape[0])[:, None], places), added)
    else:
        np.put_along_axis(found, places, added, 1)
    return found


def _chosen(
    word: Any, marks: dict[str, MarkRows], before: Marks | None, shape: tuple[int, int], core: Core, engine: str
) -> Marks:
    """Return the marks of a choice between two inputs, by the predicate as it is; what is left out does not matter."""
    plan = next(plan for plan in plan_of(type(word)) if plan.name == "predicate")
    predicate = core.resolver.resolve(word, plan, engine)
    nothing = np.zeros(shape, np.int16)
    if predicate is None:
        return nothing
    test = predicate.view.reshape(predicate.view.shape[0], -1).astype(bool)
    if test.shape[0] != shape[0] or test.shape[1] not in (1, shape[1]):
        whole: Marks = np.stack([nothing, *(_spread(word, value, shape).spread() for value in marks.values())]).max(0)
        return whole
    holds = np.broadcast_to(test, shape)
    if getattr(word, "reverse", 0):
        holds = ~holds
    others = [marks[name] for name in marks if name not in ("predicate", "src")]
    stays = before if before is not None else nothing
    other = _spread(word, others[0], shape).spread() if others else stays
    chosen = np.where(holds, _spread(word, marks["src"], shape).spread() if "src" in marks else nothing, other)
    asked = marks.get("predicate")
    found: Marks = chosen if asked is None else np.maximum(chosen, _spread(word, asked, shape).spread())
    return found
