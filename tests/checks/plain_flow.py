"""Where undefined bytes go, the plain way: a mark for each element of each partition, as NumPy arrays.

`emulator/checks/flow.py` has partitions that are alike once; tests compare what both make of the same marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emulator.access import Operand, plan_of
from emulator.checks.poison import Marks
from emulator.core import Core
from emulator.engines.indirection import column_places
from formats import isa
from formats.isa import KEPT, Dataflow, Fp32Pass, ReduceCommand
from formats.isa.behaviour import EngineState
from formats.neuron_core import PARTITIONS, QUADRANT

__all__ = ["Flow", "outputs_of"]

_GROUP = 16  # partitions of one GpSimd core
_WHOLE_PARTITIONS = (Dataflow.PARTITION, Dataflow.GROUP, Dataflow.LOOKUP)

Inputs = Mapping[str, "Marks | None"]


class Flow:
    """What engines of one core keep between words: weights, accumulators and random numbers, as marks."""

    def __init__(self) -> None:
        self.weights: dict[bool, Marks] = {}
        self._latched: isa.LoadWeights | None = None
        self.accumulators: dict[str, Marks] = {}
        self.generators: dict[str, Marks] = {}  # by engine, of each lane

    @property
    def dirty(self) -> bool:
        """Return whether an engine holds anything undefined."""
        if not (self.weights or self.accumulators or self.generators):
            return False  # asked at each word
        for held in (self.weights, self.accumulators, self.generators):
            for marks in held.values():
                if marks.any():
                    return True
        return False

    def held(self, word: Any, engine: str) -> tuple[Marks | None, ...]:
        """Return what of an engine a word's results depend on, besides its operands."""
        if word.DATAFLOW is Dataflow.PRODUCT:
            return (self.weights.get(self.current),)
        generators = self.generators.get(engine) if word.STATE is EngineState.GENERATOR else None
        return (self.accumulators.get(engine) if word.DATAFLOW is Dataflow.ACCUMULATORS else None, generators)

    def load(self, word: isa.LoadWeights, marks: Marks | None) -> None:
        """Latch the marks of a stationary tile; it arrives backwards."""
        self._latched = word
        if marks is not None:
            self.weights[self.current] = marks[:, ::-1].copy()
        elif self.weights:
            self.weights.pop(self.current, None)

    @property
    def current(self) -> bool:
        """Return which of the two tiles products use: that of the low half of fp32, or the other."""
        word = self._latched
        return word is not None and int(word.fp32_mode) == Fp32Pass.LOW and not word.transpose_mode

    def product(self, word: isa.MatMul, moving: Marks | None, before: Marks | None, size: int) -> Marks | None:
        """Return the marks of a product: column j depends on weights of column j, element n on moving column n."""
        weights = self.weights.get(self.current)
        shape = (word.cols, size)
        if word.transpose_mode:
            return None if weights is None else np.ascontiguousarray(weights.T[:, :size])
        found: Marks | None = None
        if weights is not None:
            found = np.broadcast_to(weights.max(0)[:, None], shape)
        if moving is not None:
            columns = np.broadcast_to(moving.max(0)[None, :], shape)
            found = columns if found is None else np.maximum(found, columns)
        if before is not None and word.adds:
            found = before if found is None else np.maximum(found, before)
        return found

    def seed(self, engine: str, word: Any, marks: Marks | None) -> None:
        """Give the generators of an engine the marks of what they are set from; one number sets those of all lanes."""
        lanes = self.generators[engine] = np.zeros(PARTITIONS, np.int16)
        if marks is not None and word.DATAFLOW is Dataflow.ALL:
            lanes[:] = marks.max()
        elif marks is not None:
            lanes[: marks.shape[0]] = marks.max(1)

    def fold(self, word: Any, engine: str, results: Marks | None) -> None:
        """Let a word that folds its results into accumulators do the same with marks."""
        command = int(getattr(word, "reduce_command", 0))
        if command == ReduceCommand.IDLE:
            return
        lanes = self.accumulators.setdefault(engine, np.zeros(PARTITIONS, np.int16))
        if command in (ReduceCommand.RESET, ReduceCommand.RESET_REDUCE, ReduceCommand.LOAD_REDUCE):
            lanes[:] = 0
        if command != ReduceCommand.RESET and results is not None:
            rows = results.max(1)
            lanes[: rows.size] = np.maximum(lanes[: rows.size], rows)


def outputs_of(
    flow: Flow, word: Any, engine: str, inputs: Inputs, outputs: Mapping[str, Operand], core: Core
) -> dict[str, Marks | None]:
    """Return the marks of each output of a word; `inputs` hold those of outputs that it may leave as they are, too."""
    if word.DATAFLOW is Dataflow.PRODUCT:
        view = outputs["dst"].view
        size = view.size // max(view.shape[0], 1)
        return {"dst": flow.product(word, inputs.get("src"), inputs.get("dst"), size)}
    if word.DATAFLOW is Dataflow.ACCUMULATORS:
        lanes = flow.accumulators.get(engine)
        return {name: None if lanes is None else lanes[: o.view.shape[0], None] for name, o in outputs.items()}
    random = word.STATE is EngineState.GENERATOR
    if random and not outputs:
        flow.seed(engine, word, inputs.get("src"))
        return {}
    lanes = flow.generators.get(engine) if random else None
    if all(name in outputs for name in inputs) and lanes is None:
        return dict.fromkeys(outputs)
    found: dict[str, Marks | None] = {}
    for name, operand in outputs.items():
        view = operand.view
        shape = (view.shape[0], view.size // max(view.shape[0], 1))
        found[name] = _one(
            word, {n: m for n, m in inputs.items() if n not in outputs}, inputs.get(name), operand, shape, core, engine
        )
        if lanes is not None:
            drawn, before = np.broadcast_to(lanes[: shape[0], None], shape), found[name]
            found[name] = drawn if before is None else np.maximum(before, drawn)
    flow.fold(word, engine, found.get("dst"))
    return found


def _one(
    word: Any, inputs: Inputs, before: Marks | None, operand: Operand, shape: tuple[int, int], core: Core, engine: str
) -> Marks | None:
    marks = {name: value for name, value in inputs.items() if value is not None}
    flow = word.DATAFLOW
    if flow is Dataflow.PERMUTATION:
        return _shuffled(word, marks.get("src"), before, shape)
    if flow is Dataflow.TRANSPOSE:
        return marks["src"].reshape(word.channels, word.columns).T if "src" in marks else None
    if flow is Dataflow.GATHER or flow is Dataflow.SCATTER:
        return _indirect(word, marks, before, shape, core, engine)
    if flow is Dataflow.CHOICE:
        return _chosen(word, marks, before, shape, core, engine)
    found: Marks | None = None
    asked: Marks = np.zeros(shape, np.int16)  # what comes of all inputs but the one that the word fills up
    for name, value in marks.items():
        shared = flow is Dataflow.GROUP or (flow is Dataflow.LOOKUP and name == "indices")
        spread = _spread(word, _grouped(value) if shared else value, shape)
        found = spread if found is None else np.maximum(found, spread)
        if name != "src":
            asked = np.maximum(asked, spread)
    if found is not None and word.FILL:
        value = np.asarray(getattr(word, word.FILL)).astype(operand.view.dtype)
        found = np.where(operand.view.reshape(shape) == value, asked, found)
    if before is not None and word.adds:
        found = before if found is None else np.maximum(found, before)
    return found


def _spread(word: Any, marks: Marks, shape: tuple[int, int]) -> Marks:
    """Return what one input contributes to each element of an output."""
    partitions, size = shape
    flow = word.DATAFLOW
    if flow is Dataflow.ALL or marks.shape[0] != partitions:
        return np.full(shape, marks.max(), np.int16)
    if flow is Dataflow.EARLIER and marks.shape == shape:
        return np.maximum.accumulate(marks, 1)
    if marks.shape == shape and flow not in _WHOLE_PARTITIONS:
        return marks
    if marks.shape[1] > size and marks.shape[1] % size == 0 and flow not in _WHOLE_PARTITIONS:
        folded: Marks = marks.reshape(partitions, size, -1).max(2)
        return folded
    return np.broadcast_to(marks.max(1)[:, None], shape)


def _grouped(marks: Marks) -> Marks:
    """Return marks with each partition marked as the whole of its group is."""
    rows = marks.max(1)
    starts = np.arange(0, rows.size, _GROUP)
    return np.repeat(np.maximum.reduceat(rows, starts), _GROUP)[: rows.size, None]


def _shuffled(word: Any, source: Marks | None, before: Marks | None, shape: tuple[int, int]) -> Marks:
    found = np.zeros(shape, np.int16) if before is None else before.copy()
    for p in range(shape[0]):
        chosen = word.mask[p % QUADRANT]
        if chosen != KEPT:
            found[p] = 0 if source is None else source[p - p % QUADRANT + chosen]
    return found


def _indirect(
    word: Any, marks: dict[str, Marks], before: Marks | None, shape: tuple[int, int], core: Core, engine: str
) -> Marks:
    """Return the marks of gathered or scattered columns, by the indices as they are; undefined ones spoil the whole."""
    plan = next(plan for plan in plan_of(type(word)) if plan.name == "indices")
    indices = core.resolver.resolve(word, plan, engine)
    asked = [marks[name].max() for name in ("indices", "predicate") if name in marks]
    if indices is None or asked:
        return np.full(shape, max((*asked, *(one.max() for one in marks.values())), default=0), np.int16)
    rows, source = indices.view.reshape(shape[0], -1), marks.get("src")
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
    word: Any, marks: dict[str, Marks], before: Marks | None, shape: tuple[int, int], core: Core, engine: str
) -> Marks:
    """Return the marks of a choice between two inputs, by the predicate as it is; what is left out does not matter."""
    plan = next(plan for plan in plan_of(type(word)) if plan.name == "predicate")
    predicate = core.resolver.resolve(word, plan, engine)
    nothing = np.zeros(shape, np.int16)
    if predicate is None:
        return nothing
    test = predicate.view.reshape(predicate.view.shape[0], -1).astype(bool)
    if test.shape[0] != shape[0] or test.shape[1] not in (1, shape[1]):
        whole: Marks = np.stack([nothing, *(_spread(word, value, shape) for value in marks.values())]).max(0)
        return whole
    holds = np.broadcast_to(test, shape)
    if getattr(word, "reverse", 0):
        holds = ~holds
    others = [marks[name] for name in marks if name not in ("predicate", "src")]
    stays = before if before is not None else nothing
    other = _spread(word, others[0], shape) if others else stays
    chosen = np.where(holds, _spread(word, marks["src"], shape) if "src" in marks else nothing, other)
    asked = marks.get("predicate")
    found: Marks = chosen if asked is None else np.maximum(chosen, _spread(word, asked, shape))
    return found
