"""Computations of single elements, applied to whole arrays at once; and folds by such computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from formats.hlo import Computation, Instruction, dtype_of
from neurontools.hlo_interpreter.numbers import exact, is_float, rounded
from neurontools.hlo_interpreter.registry import ELEMENTWISE, OPERATIONS, Array, Evaluator, Value

__all__ = ["fold", "fold_present", "is_assignment", "map_computation", "simple_opcode"]

_STRUCTURE = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "call", "fusion", "broadcast", "reshape")
)
_COMMUTATIVE = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def simple_opcode(computation: Computation) -> str:
    """Return the opcode of a computation that is one operation of its two parameters, '' for others."""
    root = computation.root
    if root.opcode == "tuple" and len(root.operands) == 1:
        root = root.operands[0]
    if len(root.operands) != 2 or {each.opcode for each in root.operands} != {"parameter"}:
        return ""
    return root.opcode if {each.parameter_number for each in root.operands} == {0, 1} else ""


def is_assignment(computation: Computation) -> bool:
    """Return whether a computation of two values gives the second one."""
    root = computation.root
    while root.opcode in ("copy", "tuple") and len(root.operands) == 1:
        root = root.operands[0]
    return root.opcode == "parameter" and root.parameter_number == 1


def _is_mappable(computation: Computation) -> bool:
    return all(
        (each.opcode in ELEMENTWISE or each.opcode in _STRUCTURE)
        and not each.shape.dimensions
        and all(map(_is_mappable, each.called))
        for each in computation.instructions
    )


def map_computation(computation: Computation, arguments: Sequence[Array], evaluator: Evaluator) -> Value:
    """Return what the computation gives for each element; a tuple of arrays where it gives a tuple."""
    if _is_mappable(computation):
        return _whole_arrays(computation, arguments, evaluator)
    return _one_by_one(computation, arguments, evaluator)


def _whole_arrays(computation: Computation, arguments: Sequence[Array], evaluator: Evaluator) -> Value:
    values: dict[Instruction, Value] = {}
    for each in computation.instructions:
        operands = [values[operand] for operand in each.operands]
        values[each] = _mapped_value(each, operands, arguments, evaluator)
    return values[computation.root]


def _mapped_value(each: Instruction, operands: list[Value], arguments: Sequence[Array], evaluator: Evaluator) -> Value:
    if each.opcode == "parameter":
        return arguments[each.parameter_number]
    if each.opcode == "tuple":
        return tuple(operands)
    if each.opcode == "get-tuple-element":
        return operands[0][each.tuple_index]
    if each.opcode in ("broadcast", "reshape"):
        return operands[0]
    if each.called:
        return _whole_arrays(each.called[0], operands, evaluator)
    return OPERATIONS[each.opcode](each, operands, evaluator)


def _one_by_one(computation: Computation, arguments: Sequence[Array], evaluator: Evaluator) -> Value:
    whole = np.broadcast_arrays(*arguments)
    shape = whole[0].shape
    result = computation.root.shape
    parts = result.tuple_shapes if result.is_tuple else (result,)
    found = [np.empty(shape, dtype_of(part.element_type)) for part in parts]
    for index in np.ndindex(shape):
        value = evaluator.call(computation, [each[index] for each in whole])
        for target, element in zip(found, value if result.is_tuple else (value,), strict=True):
            target[index] = element
    return tuple(found) if result.is_tuple else found[0]


def fold(
    computation: Computation, arrays: Sequence[Array], initial: Sequence[Array], evaluator: Evaluator
) -> tuple[Array, ...]:
    """Combine the elements along the last dimension, beginning with `initial`, in their order.

    Floating point sums and products are made in float64 and rounded once; others by halves, which keeps the order.
    """
    simple = _COMMUTATIVE.get(simple_opcode(computation))
    if simple is not None and len(arrays) == 1:
        return (_simple_fold(simple, arrays[0], initial[0]),)
    values = [np.asarray(each) for each in arrays]
    while (length := values[0].shape[-1]) > 1:
        # Neighbours pair by pair, an odd one out stays for the next turn: the order of operands is kept, the turns are
        # few.
        even = length // 2 * 2
        left, right = [each[..., 0:even:2] for each in values], [each[..., 1:even:2] for each in values]
        combined = _tuple(evaluator.mapped(computation, [*left, *right]))
        values = [
            np.concatenate([part, each[..., even:]], axis=-1) if even < length else part
            for part, each in zip(combined, values, strict=True)
        ]
    if not length:
        shape = values[0].shape[:-1]
        return tuple(np.broadcast_to(each, shape) for each in initial)
    return _tuple(evaluator.mapped(computation, [*initial, *(each[..., 0] for each in values)]))


def fold_present(
    computation: Computation, arrays: Sequence[Array], there: Array, evaluator: Evaluator
) -> tuple[list[Array], Array]:
    """Combine those elements along the last dimension that are there; return them, and whether any were.

    Where none is, the value means nothing.
    """
    identity = _identity(simple_opcode(computation), arrays[0].dtype)
    if identity is not None and len(arrays) == 1:
        filled = arrays[0] if there.all() else np.where(there, arrays[0], identity).astype(arrays[0].dtype)
        return [_simple_fold(_COMMUTATIVE[simple_opcode(computation)], filled, identity)], np.asarray(there.any(-1))
    values = list(arrays)
    while (length := values[0].shape[-1]) > 1:
        even = length // 2 * 2
        left, right = [each[..., 0:even:2] for each in values], [each[..., 1:even:2] for each in values]
        in_left, in_right = there[..., 0:even:2], there[..., 1:even:2]
        both = _tuple(evaluator.mapped(computation, [*left, *right]))
        combined = [
            np.where(in_left & in_right, c, np.where(in_left, a, b)).astype(a.dtype)
            for c, a, b in zip(both, left, right, strict=True)
        ]
        values = [
            np.concatenate([part, each[..., even:]], axis=-1) for part, each in zip(combined, values, strict=True)
        ]
        there = np.concatenate([in_left | in_right, there[..., even:]], axis=-1)
    return [each[..., 0] for each in values], there[..., 0]


def _identity(opcode: str, kind: np.dtype[Any]) -> Array | None:
    """Return the value that an operation leaves others alone with; None where there is none of the type."""
    if kind == np.bool_:
        return {"add": np.array(False), "or": np.array(False), "maximum": np.array(False), "xor": np.array(False),
                "multiply": np.array(True), "and": np.array(True), "minimum": np.array(True)}.get(opcode)  # fmt: skip
    if opcode in ("add", "or", "xor"):
        # Of floating point numbers it is the negative zero that changes no sign.
        return np.array(-0.0 if is_float(kind) else 0).astype(kind)
    if opcode == "multiply":
        return np.array(1).astype(kind)
    if opcode in ("maximum", "minimum") and is_float(kind) and np.isinf(np.array(np.inf).astype(kind)):
        return np.array(-np.inf if opcode == "maximum" else np.inf).astype(kind)
    if opcode in ("maximum", "minimum") and kind.kind in "iu":
        return np.array(np.iinfo(kind).min if opcode == "maximum" else np.iinfo(kind).max, kind)
    return np.array(-1).astype(kind) if opcode == "and" and kind.kind in "iu" else None


def _simple_fold(function: Callable[..., Any], values: Array, initial: Array) -> Array:
    kind = values.dtype
    if kind == np.bool_ and function in (np.add, np.maximum):
        function = np.logical_or
    elif kind == np.bool_ and function in (np.multiply, np.minimum):
        function = np.logical_and
    carrier = exact(values) if is_float(kind) or kind.kind == "c" else values
    start = exact(initial) if carrier is not values else initial
    if values.dtype.name in ("int4", "uint4", "int2", "uint2", "int1", "uint1"):
        carrier, start = exact(values), exact(initial)
    reduced = getattr(function, "reduce")(carrier, axis=-1, dtype=carrier.dtype) if values.shape[-1] else start  # noqa: B009
    return rounded(np.asarray(np.broadcast_to(function(start, reduced), values.shape[:-1])), kind)


def _tuple(value: Value) -> tuple[Array, ...]:
    return value if isinstance(value, tuple) else (value,)
