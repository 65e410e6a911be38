"""Gather, scatter, and select-and-scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formats.errors import FormatError
from formats.hlo import Computation, Instruction
from neurontools.hlo_interpreter.mapped import is_assignment
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, operation
from neurontools.hlo_interpreter.windows import spread, view

__all__: list[str] = []


def _vectors(indices: Array, vector_dim: int) -> Array:
    """Return the indices with the vectors in the last dimension, as int64; huge unsigned ones stay out of bounds."""
    whole = np.asarray(indices)
    if whole.dtype.name == "uint64":
        whole = np.minimum(whole, np.uint64((1 << 63) - 1))
    whole = whole.astype(np.int64)
    return whole[..., None] if vector_dim == whole.ndim else np.moveaxis(whole, vector_dim, -1)


def _starts(
    vectors: Array, operand_dims: Sequence[int], batching: Sequence[int], index_batching: Sequence[int],
    vector_dim: int, rank: int,
) -> Array:  # fmt: skip
    """Return for each vector where its slice begins in every dimension of the operand."""
    starts = np.zeros((*vectors.shape[:-1], rank), np.int64)
    for position, dim in enumerate(operand_dims):
        starts[..., dim] = vectors[..., position]
    for dim, index_dim in zip(batching, index_batching, strict=True):
        axis = index_dim - (index_dim > vector_dim)
        shape = [1] * (vectors.ndim - 1)
        shape[axis] = vectors.shape[axis]
        starts[..., dim] = np.arange(vectors.shape[axis]).reshape(shape)
    return starts


@operation("gather")
def gather(instruction: Instruction, operands: list[Value], _: Evaluator) -> Value:
    """Take a slice for each index vector, as far in as it fits."""
    values, numbers, sizes = operands[0], instruction.gather, instruction.gather_slice_sizes
    vectors = _vectors(operands[1], numbers.index_vector_dim)
    starts = _starts(vectors, numbers.start_index_map, numbers.operand_batching_dims,
                     numbers.start_indices_batching_dims, numbers.index_vector_dim, values.ndim)  # fmt: skip
    starts = np.clip(starts, 0, np.array(values.shape, np.int64) - np.array(sizes, np.int64))
    away = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [dim for dim in range(values.ndim) if dim not in away]
    batch_rank = starts.ndim - 1
    index = []
    for dim in range(values.ndim):
        place = starts[..., dim].reshape(starts.shape[:-1] + (1,) * len(kept))
        if dim in kept:
            shape = [1] * (batch_rank + len(kept))
            shape[batch_rank + kept.index(dim)] = sizes[dim]
            place = place + np.arange(sizes[dim]).reshape(shape)
        index.append(place)
    whole = (*starts.shape[:-1], *(sizes[dim] for dim in kept))
    found = np.broadcast_to(values[tuple(index)] if index else values, whole)
    # Batch dimensions come first here; the instruction says where the slices' go.
    rank = instruction.shape.rank
    batch_dims = [dim for dim in range(rank) if dim not in numbers.offset_dims]
    return found.transpose(np.argsort([*batch_dims, *numbers.offset_dims]))


@operation("scatter")
def scatter(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Combine updates into copies of the operands, in the order of the updates (compiler.md 3.5).

    An update whose window does not lie wholly inside is left out.
    """
    count = (len(operands) - 1) // 2
    results = [each.copy() for each in operands[:count]]
    numbers = instruction.scatter
    updates = operands[count + 1 :]
    shape = results[0].shape
    rank = len(shape)
    vectors = _vectors(operands[count], numbers.index_vector_dim)
    starts = _starts(vectors, numbers.scatter_dims_to_operand_dims, numbers.input_batching_dims,
                     numbers.scatter_indices_batching_dims, numbers.index_vector_dim, rank)  # fmt: skip
    away = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [dim for dim in range(rank) if dim not in away]
    batch_dims = [dim for dim in range(updates[0].ndim) if dim not in numbers.update_window_dims]
    order = [*batch_dims, *numbers.update_window_dims]
    updates = [each.transpose(order).reshape(-1) for each in updates]
    sizes = [1] * rank
    for dim, update_dim in zip(kept, numbers.update_window_dims, strict=True):
        sizes[dim] = operands[count + 1].shape[update_dim]
    inside = np.ones(starts.shape[:-1], bool)
    for dim in range(rank):
        inside &= (starts[..., dim] >= 0) & (starts[..., dim] <= shape[dim] - sizes[dim])
    window = [sizes[dim] for dim in kept]
    flat = np.zeros((*starts.shape[:-1], *window), np.int64)
    step = 1
    for dim in reversed(range(rank)):
        place = np.where(inside, starts[..., dim], 0).reshape(starts.shape[:-1] + (1,) * len(kept))
        if dim in kept:
            along = [1] * flat.ndim
            along[starts.ndim - 1 + kept.index(dim)] = sizes[dim]
            place = place + np.arange(sizes[dim]).reshape(along)
        flat = flat + place * step
        step *= shape[dim]
    used = np.broadcast_to(inside.reshape(inside.shape + (1,) * len(kept)), flat.shape).reshape(-1)
    return _combined(instruction, results, flat.reshape(-1)[used], [each[used] for each in updates], evaluator)


def _combined(
    instruction: Instruction, results: list[Array], places: Array, updates: list[Array], evaluator: Evaluator
) -> Value:
    _put(instruction.to_apply, results, places, updates, evaluator)
    return tuple(results) if instruction.shape.is_tuple else results[0]


def _put(
    body: Computation, results: list[Array], places: Array, updates: list[Array], evaluator: Evaluator
) -> None:  # fmt: skip
    """Combine each update with what is at its place: in turns, each with one update a place, in their order."""
    flat = [each.reshape(-1) for each in results]
    if len(flat) == 1 and is_assignment(body):
        flat[0][places] = updates[0]  # the last one stays, as NumPy has it too
    else:
        for turn in _turns(places):
            where = places[turn]
            value = evaluator.mapped(body, [*(each[where] for each in flat), *(each[turn] for each in updates)])
            for target, element in zip(flat, value if isinstance(value, tuple) else (value,), strict=True):
                target[where] = element
    for result, each in zip(results, flat, strict=True):
        result[...] = each.reshape(result.shape)


def _turns(places: Array) -> list[Array]:
    """Return the numbers of the updates in groups: the first of every place, the second, and so on."""
    if not places.size:
        return []
    order = np.argsort(places, kind="stable")
    ranked = places[order]
    first = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    begins = np.flatnonzero(first)
    nth = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    return [order[nth == turn] for turn in range(int(nth.max()) + 1)]


@operation("select-and-scatter")
def select_and_scatter(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Choose one element in each place of a window, and combine the sources at the chosen ones."""
    values, source, initial = operands
    window = instruction.window
    places = np.arange(values.size).reshape(values.shape)
    # Padding takes part in no choice: where it lies has no place (-1), and loses to whatever has one.
    chosen = spread(values, window, np.zeros((), values.dtype))
    where = spread(places, window, np.array(-1))
    for dim, each in enumerate(window):
        chosen, where = view(chosen, dim, each), view(where, dim, each)
    shape = chosen.shape[: values.ndim]
    chosen, where = chosen.reshape((*shape, -1)), where.reshape((*shape, -1))
    best, at = chosen[..., 0], where[..., 0]
    for number in range(1, chosen.shape[-1]):
        here, there = chosen[..., number], where[..., number]
        better = np.asarray(evaluator.mapped(instruction.select, [best, here]))
        if better.dtype != bool:
            raise FormatError(f"%{instruction.name}", expected="a selection that gives pred", got=str(better.dtype))
        keep = better & (at >= 0) | (there < 0)
        best, at = np.where(keep, best, here), np.where(keep, at, there)
    result = np.full(values.shape, initial, source.dtype)
    inside = at.reshape(-1) >= 0
    _put(instruction.scatter_body, [result], at.reshape(-1)[inside], [source.reshape(-1)[inside]], evaluator)
    return result
