"""Operations that move elements and compute none."""

from __future__ import annotations

import numpy as np

from formats.hlo import Instruction
from neurontools.hlo_interpreter.numbers import rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation

__all__ = ["padded"]


@operation("constant")
def constant(instruction: Instruction, _: list[Value], __: Evaluator) -> Value:
    """Return the elements of a literal."""
    literal = instruction.value()
    return tuple(part.array() for part in literal.parts) if literal.shape.is_tuple else literal.array()


@operation("iota")
def iota(instruction: Instruction, _: list[Value], __: Evaluator) -> Value:
    """Count along one dimension."""
    dimensions = instruction.shape.dimensions
    along = instruction.dimensions[0]
    shape = [size if dim == along else 1 for dim, size in enumerate(dimensions)]
    return np.broadcast_to(rounded(np.arange(dimensions[along]), dtype(instruction)).reshape(shape), dimensions)


@operation("broadcast")
def broadcast(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Repeat along new dimensions; `dimensions` says where the operand's are."""
    shape = [1] * instruction.shape.rank
    for dim, size in zip(instruction.dimensions, operands[0].shape, strict=True):
        shape[dim] = size
    order = sorted(range(len(instruction.dimensions)), key=instruction.dimensions.__getitem__)
    return np.broadcast_to(np.transpose(operands[0], order).reshape(shape), instruction.shape.dimensions)


@operation("reshape")
def reshape(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take the elements in the same order as another shape."""
    return np.reshape(operands[0], instruction.shape.dimensions)


@operation("transpose")
def transpose(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Reorder dimensions."""
    return np.transpose(operands[0], instruction.dimensions)


@operation("reverse")
def reverse(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Turn dimensions round."""
    return np.flip(operands[0], instruction.dimensions)


@operation("concatenate")
def concatenate(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Put arrays behind one another."""
    return np.concatenate(operands, axis=instruction.dimensions[0])


@operation("slice")
def strided_slice(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take a part of each dimension."""
    return operands[0][tuple(slice(part.start, part.limit, part.stride) for part in instruction.slices)]


def _starts(indices: list[Value], sizes: tuple[int, ...], whole: tuple[int, ...]) -> list[int]:
    """Return where a part begins: as far in as it fits.  Older modules give one array of starts."""
    given = list(np.asarray(indices[0]).tolist()) if len(indices) == 1 and np.ndim(indices[0]) == 1 else indices
    return [
        min(max(int(start), 0), total - size)
        for start, size, total in zip(given, sizes, whole, strict=True)
    ]  # fmt: skip


@operation("dynamic-slice")
def dynamic_slice(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take a part of given sizes from where the indices say."""
    sizes = instruction.dynamic_slice_sizes
    starts = _starts(operands[1:], sizes, operands[0].shape)
    return operands[0][tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


@operation("dynamic-update-slice")
def dynamic_update_slice(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Overwrite a part from where the indices say."""
    values, update = operands[0].copy(), operands[1]
    starts = _starts(operands[2:], update.shape, values.shape)
    values[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = update
    return values


def padded(values: Array, amounts: list[tuple[int, int, int]], fill: Array) -> Array:
    """Put (low, high, between) copies of `fill` around and between the elements of each dimension.

    Negative amounts take elements away, after those between have been put in.
    """
    sizes = [
        max(0, low + high + (size - 1) * (between + 1) + 1 if size else low + high)
        for size, (low, high, between) in zip(values.shape, amounts, strict=True)
    ]  # fmt: skip
    found = np.full(sizes, fill, values.dtype)
    source, target = [], []
    for size, total, (low, _, between) in zip(values.shape, sizes, amounts, strict=True):
        step = between + 1
        first = -(low // step) if low < 0 else 0
        last = min(size, (total - 1 - low) // step + 1)
        source.append(slice(first, max(first, last)))
        target.append(slice(low + first * step, max(low + (last - 1) * step + 1, low + first * step), step))
    found[tuple(target)] = values[tuple(source)]
    return found


@operation("pad")
def pad(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Put copies of a value around and between elements."""
    amounts = [(p.edge_padding_low, p.edge_padding_high, p.interior_padding) for p in instruction.padding]
    return padded(operands[0], amounts, operands[1])
