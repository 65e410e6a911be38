"""The table of operations: what each opcode computes, and what a function of the table is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from formats.hlo import Computation, Instruction, dtype_of

__all__ = ["ELEMENTWISE", "OPERATIONS", "Array", "Evaluator", "Operation", "Value", "dtype", "elementwise", "operation",
           "pending"]  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any
"""An array, a tuple of values, or None for a token.  A union would make every operation ask which it has; the verifier
has answered that before anything is computed."""


class Evaluator(Protocol):
    """What an operation may ask of the interpreter."""

    @property
    def rank(self) -> int:
        """Return the number of the rank that is evaluated."""

    @property
    def ranks(self) -> int:
        """Return how many ranks evaluate the module together."""

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Return the value of a computation."""

    def met(self, instruction: Instruction, given: Value) -> list[Value]:
        """Return what each rank gives to a collective, once all of them have come to it."""

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


def pending(instruction: Instruction, given: Value, found: Value) -> Value:
    """Return what a start gives: operands, results, and contexts, of which nothing is known but their types."""
    contexts = (
        np.zeros(one.dimensions, dtype_of(one.element_type)) if one.is_array else None
        for one in instruction.shape.tuple_shapes[2:]
    )
    return (given, found, *contexts)
