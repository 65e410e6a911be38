"""Dots: sums of products over any dimensions."""

from __future__ import annotations

import math

import numpy as np

from formats.hlo import Instruction
from formats.hlo.attributes import DotDimensionNumbers
from neurontools.hlo_interpreter.numbers import exact, rounded
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, dtype, operation

__all__ = ["dotted"]


def _free(rank: int, *used: tuple[int, ...]) -> list[int]:
    taken = {dim for each in used for dim in each}
    return [dim for dim in range(rank) if dim not in taken]


def dotted(a: Array, b: Array, numbers: DotDimensionNumbers) -> Array:
    """Return batches, free dimensions of the left and of the right; summed in the operands' own type."""
    batch_a, batch_b = numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions
    sum_a, sum_b = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    free_a, free_b = _free(a.ndim, batch_a, sum_a), _free(b.ndim, batch_b, sum_b)
    batch = [a.shape[dim] for dim in batch_a]
    rows, columns = [a.shape[dim] for dim in free_a], [b.shape[dim] for dim in free_b]
    depth = math.prod(a.shape[dim] for dim in sum_a)
    count = math.prod(batch)
    left = a.transpose([*batch_a, *free_a, *sum_a]).reshape(count, math.prod(rows), depth)
    right = b.transpose([*batch_b, *sum_b, *free_b]).reshape(count, depth, math.prod(columns))
    return np.asarray(np.matmul(left, right)).reshape([*batch, *rows, *columns])


def _operands(instruction: Instruction, operands: list[Value]) -> tuple[Array, Array]:
    """Return both operands in the type that products are summed in: exact for numbers, the result's for integers."""
    kind = dtype(instruction)
    a, b = operands[0], operands[1]
    if instruction.shape.element_type.is_integral:
        carrier = np.int64 if kind.kind == "i" or kind.name.startswith("int") else np.uint64
        return exact(a).astype(carrier), exact(b).astype(carrier)
    a, b = exact(a), exact(b)
    if kind.kind == "c":
        return a.astype(np.complex128), b.astype(np.complex128)
    return (a, b) if kind == np.bool_ else (a.astype(np.float64), b.astype(np.float64))


@operation("dot")
def dot(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Sum products in float64 or 64-bit integers, and round or wrap once."""
    a, b = _operands(instruction, operands)
    return rounded(dotted(a, b, instruction.dot), dtype(instruction))


@operation("ragged-dot")
def ragged_dot(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Multiply each group of rows by its own right operand; rows beyond the last group are 0 (compiler.md 3.4)."""
    numbers = instruction.ragged_dot
    a, b = _operands(instruction, operands)
    sizes = np.asarray(operands[2])
    inner = numbers.dot_dimension_numbers
    ragged = numbers.lhs_ragged_dimensions[0]
    result = np.zeros(instruction.shape.dimensions, a.dtype)
    if ragged in inner.lhs_contracting_dimensions:
        return rounded(_ragged_sum(a, b, sizes, inner, ragged), dtype(instruction))
    if ragged in inner.lhs_batch_dimensions:
        return rounded(dotted(a, b, inner), dtype(instruction))
    group = numbers.rhs_group_dimensions[0]
    moved = DotDimensionNumbers(
        inner.lhs_contracting_dimensions,
        tuple(dim - (dim > group) for dim in inner.rhs_contracting_dimensions),
        inner.lhs_batch_dimensions,
        tuple(dim - (dim > group) for dim in inner.rhs_batch_dimensions),
    )
    free = _free(a.ndim, inner.lhs_batch_dimensions, inner.lhs_contracting_dimensions)
    row = len(inner.lhs_batch_dimensions) + free.index(ragged)
    positions = np.arange(a.shape[ragged])
    for number in range(b.shape[group]):
        product = dotted(a, np.take(b, number, axis=group), moved)
        # Sizes are one list, or one for each batch before the ragged dimension.
        end = np.cumsum(sizes, axis=-1)[..., number]
        start = end - sizes[..., number]
        inside = (positions >= start[..., None]) & (positions < end[..., None])
        shape = [1] * product.ndim
        shape[row] = len(positions)
        for axis, size in enumerate(inside.shape[:-1]):
            shape[axis] = size
        result = np.where(inside.reshape(shape), product, result)
    return rounded(result, dtype(instruction))


def _ragged_sum(a: Array, b: Array, sizes: Array, inner: DotDimensionNumbers, ragged: int) -> Array:
    """Return one product for each group of the dimension that is summed over, the groups first.

    Sizes are one list, or one for each batch, and for each place along the summed dimensions before the ragged one.
    """
    pairs = list(zip(inner.lhs_contracting_dimensions, inner.rhs_contracting_dimensions, strict=True))
    other = dict(pairs)[ragged]
    before = [pair for pair in sorted(pairs) if pair[0] < ragged]
    left = [*inner.lhs_batch_dimensions, *(dim for dim, _ in before)]
    right = [*inner.rhs_batch_dimensions, *(dim for _, dim in before)]
    positions, ends = np.arange(a.shape[ragged]), np.cumsum(sizes, axis=-1)
    parts = []
    for number in range(sizes.shape[-1]):
        start, end = (ends - sizes)[..., number, None], ends[..., number, None]
        inside = (positions >= start) & (positions < end)
        # Zeros on both sides: a zero times an infinity of another group would be NaN.
        parts.append(dotted(_only(a, inside, [*left, ragged]), _only(b, inside, [*right, other]), inner))
    return np.stack(parts)


def _only(values: Array, inside: Array, dims: list[int]) -> Array:
    """Return values that are 0 outside; the last dimension of `inside` is the last of `dims`, the others the first."""
    dims = [*dims[: inside.ndim - 1], dims[-1]]
    shape = [1] * values.ndim
    for dim, size in zip(dims, inside.shape, strict=True):
        shape[dim] = size
    return np.where(inside.transpose(np.argsort(dims)).reshape(shape), values, 0)
