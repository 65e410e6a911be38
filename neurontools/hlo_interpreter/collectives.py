"""Collectives among one rank: every group is that rank alone, and what it gets is what it gave."""

from __future__ import annotations

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import Instruction
from neurontools.hlo_interpreter.registry import Evaluator, Value, operation

__all__: list[str] = []


@operation(
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast", "ragged-all-to-all",
    "all-reduce-start", "all-gather-start",
)  # fmt: skip
def among_one(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Give back what one rank gave."""
    if any(len(group) > 1 for group in instruction.replica_groups):
        raise UnsupportedError(f"%{instruction.name}: {instruction.opcode} among several ranks is not evaluated here")
    return tuple(operands) if instruction.shape.is_tuple else operands[0]


@operation("collective-permute", "collective-permute-start")
def permute(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Give back what one rank sends to itself, zeros where nobody sends."""
    if any(source or target for source, target in instruction.source_target_pairs):
        raise UnsupportedError(f"%{instruction.name}: collective-permute among several ranks is not evaluated here")
    return operands[0] if instruction.source_target_pairs else np.zeros_like(operands[0])


@operation("all-reduce-done", "all-gather-done", "collective-permute-done", "async-done", "async-update")
def done(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Pass on what the start gave."""
    return operands[0]
