"""The table of operations: what each opcode computes, and what a function of the table is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from formats.hlo import Computation, Instruction, dtype_of

__all__ = ["ELEMENTWISE", "OPERATIONS", "Array", "Evaluator", "Operation", "Value", "dtype", "elementwise", "operation"]

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any
"""An array, a tuple of values, or None for a token.  A union would make every operation ask which it has; the verifier
has answered that before anything is computed."""


class Evaluator(Protocol):
    """What an operation may ask of the interpreter."""

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Return the value of a computation."""

    def mapped(self, computation: Computation, arguments: Sequence[Array]) -> Value:
        """Return what a computation of scalars gives for each element of arrays that broadcast together."""


Operation = Callable[[Instruction, list[Value], Evaluator], Value]

OPERATIONS: dict[str, Operation] = {}
ELEMENTWISE: set[str] = set()
"""Opcodes whose functions take arrays of any shape: they need not know the shape that the instruction states."""


def operation(*opcodes: str) -> Callable[[Operation], Operation]:
    """Enter a function in the table."""

    def enter(function: Operation) -> Operation:
        for opcode in opcodes:
            OPERATIONS[opcode] = function
        return function

    return enter


def elementwise(*opcodes: str) -> Callable[[Operation], Operation]:
    """Enter a function of single elements in the table."""
    ELEMENTWISE.update(opcodes)
    return operation(*opcodes)


def dtype(instruction: Instruction) -> np.dtype[Any]:
    """Return the NumPy type of an instruction's elements."""
    return dtype_of(instruction.shape.element_type)
