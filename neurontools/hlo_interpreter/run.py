"""Evaluate a module: one instruction after the other, with NumPy, and without any lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import Computation, Instruction, Module, Shape, dtype_of
from formats.hlo.verify import need_valid
from neurontools.hlo_interpreter.mapped import map_computation
from neurontools.hlo_interpreter.registry import OPERATIONS, Array, Value

__all__ = ["Interpreter", "Observer", "evaluate"]

Observer = Callable[[Instruction, Value], None]
_MOST_BYTES = 8 << 30  # of one value
_MOST_DEPTH = 200  # calls within calls


def evaluate(module: Module, arguments: Sequence[Any], observe: Observer | None = None) -> Value:
    """Return the value of a module's entry: an array, or a tuple of values.

    `observe` is told the value of each instruction of every computation that is called as a whole, in the order in
    which they are computed; bodies that are applied to many elements at once are not shown. Raises FormatError for
    arguments of other shapes than the parameters, UnsupportedError for what is not modelled.
    """
    return Interpreter(observe).run(module, arguments)


class Interpreter:
    """Evaluates computations."""

    def __init__(self, observe: Observer | None = None) -> None:
        self.observe = observe
        self.rank, self.ranks = 0, 1
        self._last_uses: dict[Computation, dict[Instruction, list[Instruction]]] = {}
        self._depth = 0

    def run(self, module: Module, arguments: Sequence[Any]) -> Value:
        """Return the value of the entry for these arguments."""
        need_valid(module)
        parameters = module.entry.parameters
        if len(parameters) != len(arguments):
            raise FormatError("the module takes other arguments", field=module.entry.name,
                              expected=len(parameters), got=len(arguments))  # fmt: skip
        values = [_argument(each.shape, given, each.name) for each, given in zip(parameters, arguments, strict=True)]
        with np.errstate(all="ignore"):
            return self.call(module.entry, values)

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Return the value of a computation."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise UnsupportedError(f"%{computation.name}: computations call each other more than {_MOST_DEPTH} deep")
        values: dict[Instruction, Value] = {}
        dead = self._dead_after(computation)
        for each in computation.instructions:
            if each.opcode == "parameter":
                value = arguments[each.parameter_number]
            else:
                value = self._computed(each, [values[operand] for operand in each.operands])
            values[each] = value
            if self.observe is not None:
                self.observe(each, value)
            for gone in dead.get(each, ()):
                del values[gone]
        self._depth -= 1
        return values[computation.root]

    def met(self, instruction: Instruction, given: Value) -> list[Value]:
        """Return what each rank gives to a collective: there is one, unless `evaluate_ranks` has made more."""
        return [given]

    def mapped(self, computation: Computation, arguments: Sequence[Array]) -> Value:
        """Return what a computation of scalars gives for each element."""
        return map_computation(computation, arguments, self)

    def _computed(self, instruction: Instruction, operands: list[Value]) -> Value:
        function = OPERATIONS.get(instruction.opcode)
        if function is None:
            raise UnsupportedError(f"%{instruction.name}: the interpreter does not know {instruction.opcode!r}")
        if instruction.shape.is_dynamic:
            raise UnsupportedError(f"%{instruction.name}: dynamic dimensions are not modelled")
        if instruction.shape.nbytes > _MOST_BYTES:
            raise UnsupportedError(f"%{instruction.name}: a value of {instruction.shape.nbytes:,} bytes is too large")
        value = function(instruction, operands, self)
        _need(instruction, instruction.shape, value)
        return value

    def _dead_after(self, computation: Computation) -> dict[Instruction, list[Instruction]]:
        """Return, for each instruction, those whose values nobody needs once it is done."""
        found = self._last_uses.get(computation)
        if found is None:
            last: dict[Instruction, Instruction] = {}
            for each in computation.instructions:
                for operand in each.operands:
                    last[operand] = each
            found = {}
            for value, user in last.items():
                if value is not computation.root:
                    found.setdefault(user, []).append(value)
            self._last_uses[computation] = found
        return found


def _argument(shape: Shape, given: Any, name: str) -> Value:
    """Return an argument as a value of a parameter's shape."""
    if shape.is_tuple:
        if not isinstance(given, tuple | list) or len(given) != len(shape.tuple_shapes):
            raise FormatError("an argument is no tuple of its parameter's length", field=name,
                              expected=len(shape.tuple_shapes))  # fmt: skip
        return tuple(_argument(part, each, name) for part, each in zip(shape.tuple_shapes, given, strict=True))
    if not shape.is_array:
        return None
    array = np.asarray(given)
    if array.shape != shape.dimensions or array.dtype != dtype_of(shape.element_type):
        raise FormatError("an argument has another shape than its parameter", field=name, expected=shape,
                          got=f"{array.dtype.name}{list(array.shape)}")  # fmt: skip
    return array


def _need(instruction: Instruction, shape: Shape, value: Value) -> None:
    """Refuse a value that is not of the shape that the instruction states: what follows would compute nonsense."""
    if shape.is_tuple:
        if isinstance(value, tuple) and len(value) == len(shape.tuple_shapes):
            for part, each in zip(shape.tuple_shapes, value, strict=True):
                _need(instruction, part, each)
            return
    elif not shape.is_array:
        return
    elif not isinstance(value, tuple):
        array = np.asarray(value)
        if array.shape == shape.dimensions and array.dtype == dtype_of(shape.element_type):
            return
        raise FormatError("the instruction states another shape than its result has", field=instruction.name,
                          expected=shape, got=f"{array.dtype.name}{list(array.shape)}")  # fmt: skip
    raise FormatError("the instruction states another shape than its result has", field=instruction.name,
                      expected=shape)  # fmt: skip
