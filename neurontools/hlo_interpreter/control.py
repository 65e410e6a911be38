"""Tuples, calls, loops and branches; tokens, and operations that only order others."""

from __future__ import annotations

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import Instruction
from neurontools.hlo_interpreter.registry import Evaluator, Value, operation, pending

__all__: list[str] = []

_MOST_TURNS = 50_000_000


@operation("tuple")
def make_tuple(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Put values together."""
    return tuple(operands)


@operation("get-tuple-element")
def get_tuple_element(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take one value of a tuple."""
    return operands[0][instruction.tuple_index]


@operation("copy-start")
def copy_start(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Put a value, itself again and a context together."""
    return pending(instruction, operands[0], operands[0])


@operation("copy-done")
def copy_done(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Take the copy."""
    return operands[0][0]


@operation("async-start")
def async_start(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Compute another computation at once: what runs apart may be done at any time."""
    return pending(instruction, tuple(operands), evaluator.call(instruction.to_apply, operands))


@operation("call", "fusion")
def call(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Compute another computation."""
    return evaluator.call(instruction.to_apply, operands)


@operation("while")
def while_loop(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Repeat the body while the condition is true."""
    state = operands[0]
    for _ in range(_MOST_TURNS):
        if not bool(evaluator.call(instruction.condition, [state])):
            return state
        state = evaluator.call(instruction.body, [state])
    raise UnsupportedError(f"%{instruction.name}: the loop has not ended after {_MOST_TURNS:,} turns")


@operation("conditional")
def conditional(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Compute one branch: the first for true; by number, the last for one that is out of range (compiler.md 3.6)."""
    chosen = operands[0]
    if np.asarray(chosen).dtype == np.bool_:
        branch = 0 if chosen else 1
    else:
        last = len(instruction.called) - 1
        branch = int(chosen) if 0 <= int(chosen) <= last else last
    return evaluator.call(instruction.called[branch], [operands[1 + branch]])


@operation("opt-barrier", "domain", "add-dependency")
def first_operand(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Pass a value on."""
    return operands[0]


@operation("after-all")
def token(_: Instruction, __: list[Value], ___: Evaluator) -> Value:
    """Return a token."""
    return None


@operation("get-dimension-size")
def get_dimension_size(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the size of a dimension."""
    return np.array(operands[0].shape[instruction.dimensions[0]], np.int32)


@operation("partition-id", "replica-id")
def identity_of_device(_: Instruction, __: list[Value], evaluator: Evaluator) -> Value:
    """Return the number of the rank."""
    return np.array(evaluator.rank, np.uint32)
