"""Sort by any comparator, and top-k."""

from __future__ import annotations

import math

import numpy as np

from formats.hlo import Computation, Instruction
from neurontools.hlo_interpreter.binary import total_order
from neurontools.hlo_interpreter.numbers import is_float, wide
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, operation

__all__ = ["largest_first"]


@operation("sort")
def sort(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Sort rows along one dimension, stably, all operands by one comparator."""
    dim = instruction.dimensions[0]
    rows = [np.moveaxis(each, dim, -1) for each in operands]
    shape = rows[0].shape
    flat = [each.reshape(math.prod(shape[:-1]), shape[-1]) for each in rows]
    order = _order(flat, instruction.to_apply, evaluator)
    found = [
        np.moveaxis(np.take_along_axis(each, order, axis=-1).reshape(shape), -1, dim) for each in flat
    ]  # fmt: skip
    return tuple(found) if instruction.shape.is_tuple else found[0]


def _order(rows: list[Array], comparator: Computation, evaluator: Evaluator) -> Array:
    """Return the order of each row by merging runs of doubled lengths, every row and run at once.

    The place of an element among the other run's is found by halving, with the comparator on whole arrays.
    """
    count, length = rows[0].shape
    order = np.broadcast_to(np.arange(length), (count, length)).copy()
    positions = np.arange(length)
    run = 1
    while run < length:
        pair = positions // (2 * run)
        in_left = positions % (2 * run) < run
        other_start = np.where(in_left, pair * 2 * run + run, pair * 2 * run)
        other_end = np.minimum(other_start + run, length)
        low = np.broadcast_to(np.minimum(other_start, length), (count, length)).copy()
        first = low.copy()
        high = np.broadcast_to(np.maximum(other_end, np.minimum(other_start, length)), (count, length)).copy()
        while (active := low < high).any():
            middle = np.minimum((low + high) // 2, length - 1)
            mine = [np.take_along_axis(each, order, -1) for each in rows]
            theirs = [np.take_along_axis(each, np.take_along_axis(order, middle, -1), -1) for each in rows]
            before = _less(comparator, theirs, mine, evaluator)
            # Equal ones of the left run stay before those of the right: stable.
            tied_before = ~_less(comparator, mine, theirs, evaluator)
            goes_before = np.where(in_left, before, tied_before)
            low = np.where(active & goes_before, middle + 1, low)
            high = np.where(active & ~goes_before, middle, high)
        own = positions - np.where(in_left, pair * 2 * run, pair * 2 * run + run)
        target = pair * 2 * run + own + (low - first)
        merged = np.empty_like(order)
        np.put_along_axis(merged, target, order, -1)
        order = merged
        run *= 2
    return order


def _less(comparator: Computation, a: list[Array], b: list[Array], evaluator: Evaluator) -> Array:
    arguments = [each for pair in zip(a, b, strict=True) for each in pair]
    return np.broadcast_to(evaluator.mapped(comparator, arguments), a[0].shape)


def largest_first(values: Array, k: int, *, largest: bool = True) -> tuple[Array, Array]:
    """Return the k largest along the last dimension and where they are; of equal ones, the first."""
    keys = total_order(values) if is_float(values.dtype) else wide(values)
    order = np.argsort(~keys if largest else keys, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(values, order, -1), order.astype(np.int32)


@operation("topk")
def topk(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Return the largest elements of each row, and their positions."""
    return largest_first(operands[0], instruction.k, largest=instruction.largest)
