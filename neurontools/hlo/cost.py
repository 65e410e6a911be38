"""What an instruction costs in arithmetic and bytes, counted from its shapes alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from formats.hlo import Computation, Instruction, Module

__all__ = ["Cost", "Costs", "trip_count"]


class Cost(NamedTuple):
    """Floating point or integer operations, transcendental functions, and bytes that operands and results have."""

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0

    def times(self, count: int) -> Cost:
        """Return the cost of doing it so often."""
        return Cost(self.flops * count, self.transcendentals * count, self.bytes * count)

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both."""
        return Cost(self.flops + other.flops, self.transcendentals + other.transcendentals, self.bytes + other.bytes)


_FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "opt-barrier", "after-all"))


class Costs:
    """The costs of a module's computations, each counted once: calls of calls would multiply the work.

    Computations come in the module's order, which has callees first, so that no chain of calls is too long for Python.
    """

    def __init__(self, module: Module) -> None:
        self._known: dict[Computation, Cost] = {}
        for computation in module.computations:
            total = Cost()
            for each in computation.instructions:
                total = total.plus(self.of(each))
            self._known[computation] = total
        self.total = self._known[module.entry]

    def of(self, instruction: Instruction) -> Cost:
        """Return the cost of an instruction with all that it calls: loops as often as they are known to turn."""
        called = [self._known[each] for each in instruction.called]
        match instruction.opcode:
            case "while":
                return called[0].plus(called[1]).times(trip_count(instruction) or 1)
            case "call" | "fusion":
                return called[0]
            case "conditional":
                return max(called, key=lambda each: each.flops)
        return _own(instruction, called[0] if called else Cost())


def _own(instruction: Instruction, body: Cost) -> Cost:
    """Return the cost of an instruction whose body, if it has one, is carried out for its elements."""
    from formats.hlo.opcodes import OPCODES  # deferred: start-up

    opcode, shape = instruction.opcode, instruction.shape
    if opcode in _FREE:
        return Cost()
    moved = shape.nbytes + sum(each.shape.nbytes for each in instruction.operands)
    size = shape.tuple_shapes[0].size if shape.is_tuple and shape.tuple_shapes else shape.size
    kind = OPCODES[opcode].kind if opcode in OPCODES else ""
    if opcode == "dot":
        left = instruction.operands[0].shape
        depth = math.prod(left.dimensions[dim] for dim in instruction.dot.lhs_contracting_dimensions)
        return Cost(2 * size * depth, 0, moved)
    if opcode == "convolution":
        kernel = instruction.operands[1].shape
        depth = kernel.size // max(1, kernel.dimensions[instruction.convolution.kernel_output_feature_dimension])
        return Cost(2 * size * depth, 0, moved)
    if opcode == "reduce":
        return Cost(body.flops * (instruction.operands[0].shape.size - size), 0, moved)
    if opcode == "reduce-window":
        places = math.prod(each.size for each in instruction.window)
        return Cost(body.flops * size * (places - 1), 0, moved)
    if opcode in ("map", "scatter"):
        count = size if opcode == "map" else instruction.operands[-1].shape.size
        return Cost(body.flops * count, body.transcendentals * count, moved)
    if opcode == "sort":
        length = instruction.operands[0].shape.dimensions[instruction.dimensions[0]] if instruction.dimensions else 1
        return Cost(size * max(1, length - 1).bit_length() * max(1, body.flops), 0, moved)
    if kind == "transcendental":
        return Cost(0, size, moved)
    return Cost(size if kind in ("unary", "binary", "ternary") and opcode != "copy" else 0, 0, moved)


def trip_count(loop: Instruction) -> int | None:
    """Return how often a loop turns, where that is plain: it counts by a constant from one constant up to another."""
    condition, body = loop.condition.root, loop.body.root
    start = loop.operands[0]
    if condition.opcode != "compare" or body.opcode != "tuple" or start.opcode != "tuple":
        return None
    index = _element(condition.operands[0])
    limit, direction = _number(condition.operands[1]), condition.comparison_direction
    if index is None or limit is None or direction not in ("LT", "LE"):
        return None
    first, step = _number(start.operands[index]), _step(body.operands[index], index)
    if first is None or not step or step < 0:
        return None
    last = limit + (direction == "LE")
    return max(0, -(-(last - first) // step))


def _step(instruction: Instruction, index: int) -> int | None:
    if instruction.opcode != "add":
        return None
    for one, other in (instruction.operands, instruction.operands[::-1]):
        if _element(one) == index:
            return _number(other)
    return None


def _element(instruction: Instruction) -> int | None:
    if instruction.opcode == "get-tuple-element" and instruction.operands[0].opcode == "parameter":
        return instruction.tuple_index
    return None


def _number(instruction: Instruction) -> int | None:
    while instruction.opcode in ("copy", "convert") and instruction.operands:
        instruction = instruction.operands[0]
    literal = instruction.literal
    if literal is None or not literal.shape.is_scalar or not literal.shape.element_type.is_integral:
        return None
    return int(literal.array())
