"""Each operation of a graph against the reference interpreter, given the operands that the device had.

The interpreter walks the graph with the device's own values: what an operation makes is computed from what the device
made of its operands, so a difference is the operation's own and nothing adds up on the way. Where the device holds no
value of its own (views are inputs of others, much becomes part of other operations), the interpreter's goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import Computation, Instruction, Shape, dtype_of
from formats.named_tuple import NamedTuple
from formats.neff.operations import Operation
from neurontools.divergence.array_difference import difference
from neurontools.divergence.graph_recorder import GraphRecorder
from neurontools.divergence.results import Difference
from neurontools.hlo_interpreter import Interpreter
from neurontools.hlo_interpreter.registry import Value

__all__ = ["Gap", "Reference", "Tolerance"]

# Relative differences between implementations of one function: compiler.md 4.1, ten times that of float32, whose
# functions the engines approximate.
_RELATIVE = {"float64": 1e-5, "float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}
_SMALL = 0.125  # of fp8, one unit of its last place
_CAST = {"bf16": 1e-2, "fp16": 1e-3, "tf32": 1e-3, "fp8_e4m3": _SMALL}
# Sums: a difference is measured by the sum of the terms' magnitudes, whatever cancels.
_SUMS = frozenset({"convolution", "dot", "reduce", "reduce-window"})
# What only moves, chooses or flips the sign of elements gives the same bits.
_EXACT = frozenset({
    "abs", "bitcast", "bitcast-convert", "broadcast", "call", "clamp", "concatenate", "conditional", "constant", "copy",
    "dynamic-slice", "dynamic-update-slice", "fusion", "gather", "get-tuple-element", "iota", "maximum", "minimum",
    "negate", "optimization-barrier", "pad", "parameter", "reshape", "reverse", "select", "slice", "sort", "transpose",
    "while",
})  # fmt: skip
# Arithmetic rounds once. Functions are approximated, and near their zeros only the absolute difference is small.
_ARITHMETIC = frozenset({"add", "convert", "divide", "multiply", "reduce-precision", "subtract"})
_CALLERS = frozenset({"call", "fusion", "async-start", "while", "conditional"})


class Tolerance(NamedTuple):
    """What was allowed: a text for people, and the numbers; `atol` may be given element by element."""

    text: str
    rtol: float
    atol: Any


class Gap(NamedTuple):
    """An operation whose result is not what its operands give."""

    row: Operation
    opcode: str
    number: int
    turn: int
    in_loop: bool
    tolerance: str
    difference: Difference
    operands: tuple[tuple[str, Any], ...]


class Reference(Interpreter):
    """Evaluates a module beside what was recorded of a run; `gaps` has the operations that differ, the first first.

    `chosen` replaces the tolerances by one relative and one absolute number.
    """

    def __init__(self, recorder: GraphRecorder, chosen: tuple[float, float] | None = None) -> None:
        super().__init__()
        self.recorder, self.chosen = recorder, chosen
        self.rows = {row.key: row for row in recorder.operations.rows}
        self.gaps: list[Gap] = []
        self.compared: set[str] = set()
        self.untried: dict[str, str] = {}
        self.cast_errors: dict[str, tuple[float, float]] = {}
        self._path: list[str] = []
        self._callers: list[Instruction] = []
        self._turn: list[int | None] = [0]
        self._made: dict[str, int] = {}
        self._slack: dict[Instruction, float] = {}

    # --- walking -----------------------------------------------------------------------------------------------------

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Return the value of a computation, in its turn where it is the body of a loop."""
        caller = self._callers[-1] if self._callers else None
        if caller is None or caller.opcode != "while":
            return super().call(computation, arguments)
        loop = "/".join(self._path)
        if computation is not caller.body:
            # A condition is computed in front of the loop as well, and only the last one is recorded.
            self._turn.append(None)
        else:
            turn = self._made.get(loop, 0)
            self._made[loop] = turn + 1
            self._turn.append(None if self._turn[-1] is None else turn)
        value = super().call(computation, arguments)
        self._turn.pop()
        return value

    def _computed(self, instruction: Instruction, operands: list[Value]) -> Value:
        calls = instruction.opcode in _CALLERS
        if calls:
            self._path.append(instruction.name)
            self._callers.append(instruction)
        depth, turns = self._depth, len(self._turn)
        try:
            value, reason = super()._computed(instruction, operands), ""
        except UnsupportedError as error:
            value, reason = None, str(error)
            self._depth = depth  # what raised left the calls below this one without their ends
            del self._turn[turns:]
        if calls:
            self._path.pop()
            self._callers.pop()
        return self._judged(instruction, operands, value, reason)

    def _judged(self, instruction: Instruction, operands: list[Value], value: Value, reason: str) -> Value:
        """Compare a value with the device's, and return the one to go on with."""
        self._slack[instruction] = self._slack_of(instruction)
        row = self.rows.get("/".join((*self._path, instruction.name)))
        turn = self._turn[-1]
        if row is None or not row.results or turn is None:
            if reason:
                raise UnsupportedError(reason)
            return value
        in_loop = bool(self.recorder.loop_of(row))
        leaves = [None] * len(row.results) if reason else _leaves(value)
        if len(leaves) != len(row.results):
            if any(leaf.element_type.is_complex for _, leaf in instruction.shape.leaves()):
                self.untried[row.key] = "its numbers are complex, and held as two parts"
            return value
        kept = []
        for number, (held, mine) in enumerate(zip(row.results, leaves, strict=True)):
            device = self.recorder.value(row, number, turn if in_loop else 0)
            kept.append(mine if device is None else self._one(instruction, operands, row, number, turn, mine, device))
            if device is None and reason:
                raise UnsupportedError(reason)
            if device is None and held.pieces:
                self.untried.setdefault(row.key, "its tiles were not seen whole")
        if reason:
            self.untried[row.key] = reason
        if all(one is not None for one in kept):
            self._slack[instruction] = 0
        found, _ = _rebuilt(instruction.shape, kept)
        return found

    def _one(self, instruction: Instruction, operands: list[Value], row: Operation, number: int, turn: int,
             mine: Any, device: Any) -> Any:  # fmt: skip
        """Compare one result; return the device's in the type that the graph states."""
        held = row.results[number]
        shapes = [leaf for _, leaf in instruction.shape.leaves()]
        kind = dtype_of(shapes[number].element_type)
        if mine is None:  # the interpreter cannot
            return _typed(device, kind)
        wide = held.dtype in ("s64", "u64")
        wanted, had = np.asarray(mine), device
        if wide:  # the device computes with the lower halves: compiler.md 5.2
            wanted, had = wanted.astype(np.int32), np.asarray(device).astype(np.int32)
        allowed = self._tolerance(instruction, row, operands, wanted)
        if allowed is None:
            self.untried[row.key] = "an operand that the device does not hold decides it"
            return mine
        self.compared.add(row.key)
        if held.dtype != "pred" and not wide:
            had = _typed(device, kind)
        if row.cast:
            self._note_cast(row, had, wanted)
        gap = difference(had, wanted.reshape(had.shape), allowed.rtol, allowed.atol)
        if gap is None:
            return mine if wide else _typed(device, kind)
        given = [(each.name, value) for each, value in zip(instruction.operands, operands, strict=True)]
        looped = bool(self.recorder.loop_of(row))
        self.gaps.append(Gap(row, instruction.opcode, number, turn, looped, allowed.text, gap, tuple(given)))
        return mine if wide else _typed(device, kind)

    def _note_cast(self, row: Operation, had: Any, wanted: Any) -> None:
        """Keep how far rounded operands led, absolutely and as a share of the largest element."""
        one, other = np.asarray(had).astype(np.float64).reshape(-1), wanted.astype(np.float64).reshape(-1)
        finite = np.isfinite(one) & np.isfinite(other)
        far = float(np.max(np.abs(one - other), where=finite, initial=0.0))
        largest = float(np.max(np.abs(other), where=finite, initial=0.0))
        before = self.cast_errors.get(row.key, (0.0, 0.0))
        self.cast_errors[row.key] = max(before, (far, far / largest if largest else 0.0))

    # --- tolerances --------------------------------------------------------------------------------------------------

    def _slack_of(self, instruction: Instruction) -> float:
        """Return how many operations led here from values that the device holds."""
        before = [self._slack.get(each, 0.0) for each in instruction.operands]
        if instruction.opcode in _CALLERS:
            before += [self._slack.get(each.root, 0.0) for each in instruction.called]
        here = 0 if instruction.opcode in _EXACT or instruction.opcode == "tuple" else 1
        return max(before, default=0.0) + here

    def _tolerance(self, instruction: Instruction, row: Operation, operands: list[Value],
                   wanted: Any) -> Tolerance | None:  # fmt: skip
        """Return what a result may differ by, None where that cannot be said."""
        operand_slack = max((self._slack.get(each, 0.0) for each in instruction.operands), default=0.0)
        if instruction.opcode in _CALLERS:
            operand_slack = self._slack[instruction]
        name = wanted.dtype.name
        if wanted.dtype.kind in "iub" or not name.startswith(("float", "bfloat")):
            return Tolerance("equal", 0.0, 0.0) if not operand_slack else None
        if self.chosen is not None:
            rtol, atol = self.chosen
            return Tolerance(f"{rtol:g} of the result and {atol:g}, as asked for", rtol, atol)
        share = _CAST.get(row.cast, 0.0) if row.cast else 0.0
        share = max(share, _RELATIVE.get(name, _SMALL))
        if instruction.opcode in _EXACT:
            if not operand_slack:
                return Tolerance("equal", 0.0, 0.0)
            share *= operand_slack
            return Tolerance(f"{share:g} of the result: {operand_slack:g} operations led to it", share, 0.0)
        share *= 1 + operand_slack
        if instruction.opcode in _SUMS:
            terms = self._magnitudes(instruction, operands)
            if terms is not None:
                return Tolerance(f"{share:g} of the sum of the terms' magnitudes", 0.0, share * terms.reshape(-1))
        finite = np.abs(wanted.astype(np.float64))
        largest = float(np.max(finite, where=np.isfinite(finite), initial=0.0))
        atol = share * (min(1.0, largest) if instruction.opcode in _ARITHMETIC else 1.0)
        return Tolerance(f"{share:g} of the result and {atol:.3g}", share, atol)

    def _magnitudes(self, instruction: Instruction, operands: list[Value]) -> Any:
        """Return the sum that a sum would be if none of its terms were negative."""
        given = [np.abs(each) if isinstance(each, np.ndarray | np.generic) else each for each in operands]
        try:
            found = super()._computed(instruction, given)
        except UnsupportedError:
            return None
        return None if isinstance(found, tuple) else np.nan_to_num(np.asarray(found).astype(np.float64), posinf=0.0)


def _leaves(value: Value) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _rebuilt(shape: Shape, leaves: list[Any]) -> tuple[Any, list[Any]]:
    """Return leaves as the value of a shape, and those that are left."""
    if not shape.is_tuple:
        return leaves[0], leaves[1:]
    parts = []
    for each in shape.tuple_shapes:
        part, leaves = _rebuilt(each, leaves)
        parts.append(part)
    return tuple(parts), leaves


def _typed(device: Any, kind: np.dtype[Any]) -> Any:
    """Return the device's elements in the type that the graph states."""
    array = np.asarray(device)
    return array if array.dtype == kind else array.astype(kind)
