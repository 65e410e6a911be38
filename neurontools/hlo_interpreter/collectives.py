"""Collectives: what each rank of a group gets of what all of them gave.  A rank that is alone gets what it gave.

Ranks that replica groups and pairs name are those that evaluate the module together (`ranks`).
"""

from __future__ import annotations

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import Instruction
from neurontools.hlo_interpreter.registry import Array, Evaluator, Value, operation, pending

__all__: list[str] = []


def _group(instruction: Instruction, evaluator: Evaluator) -> tuple[int, ...]:
    """Return the ranks of this rank's group; () where it is in none."""
    groups = instruction.replica_groups or (tuple(range(evaluator.ranks)),)
    every = [rank for group in groups for rank in group]
    if len(set(every)) != len(every):
        raise FormatError("a rank is in two replica groups", field=instruction.name)
    if any(not 0 <= rank < evaluator.ranks for rank in every):
        raise UnsupportedError(f"%{instruction.name}: {instruction.opcode} among several ranks; {evaluator.ranks} "
                               "evaluate the module")  # fmt: skip
    return next((tuple(group) for group in groups if evaluator.rank in group), ())


def _gathered(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> list[list[Array]]:
    """Return what the ranks of the group gave, in the group's order."""
    group = _group(instruction, evaluator)
    given = evaluator.met(instruction, operands)
    if not group:
        raise UnsupportedError(f"%{instruction.name}: rank {evaluator.rank} is in no replica group")
    return [given[rank] for rank in group]


def _result(operands: list[Value], values: list[Array]) -> Value:
    return tuple(values) if len(operands) > 1 else values[0]


def _folded(instruction: Instruction, given: list[list[Array]], evaluator: Evaluator) -> list[Array]:
    """Return the reduction of every operand, in the order of the ranks."""
    found = []
    for parts in zip(*given, strict=True):
        total = parts[0]
        for part in parts[1:]:
            total = np.asarray(evaluator.mapped(instruction.to_apply, [total, part]))
        found.append(total.astype(parts[0].dtype).reshape(parts[0].shape))
    return found


@operation("all-reduce", "all-reduce-start")
def all_reduce(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give every rank of a group the reduction of all."""
    found = _folded(instruction, _gathered(instruction, operands, evaluator), evaluator)
    return tuple(found) if instruction.shape.is_tuple else found[0]


@operation("reduce-scatter")
def reduce_scatter(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give each rank of a group its part of the reduction."""
    given = _gathered(instruction, operands, evaluator)
    place = _group(instruction, evaluator).index(evaluator.rank)
    totals = _folded(instruction, given, evaluator)
    found = [_cut(instruction, one, len(given))[place] for one in totals]
    return tuple(found) if instruction.shape.is_tuple else found[0]


def _cut(instruction: Instruction, array: Array, count: int) -> list[Array]:
    """Return an array in parts along the instruction's dimension."""
    along = instruction.dimensions[0]
    if array.shape[along] % count:
        raise FormatError(f"{array.shape[along]} elements among {count} ranks", field=instruction.name)
    return np.split(array, count, along)


@operation("all-gather", "all-gather-start")
def all_gather(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give every rank of a group all parts, one behind the other."""
    given = _gathered(instruction, operands, evaluator)
    along = instruction.dimensions[0]
    found = [np.concatenate(parts, along) for parts in zip(*given, strict=True)]
    if instruction.opcode == "all-gather":
        return tuple(found) if instruction.shape.is_tuple else found[0]
    return pending(instruction, _result(operands, operands), _result(operands, found))


@operation("all-to-all", "ragged-all-to-all")
def all_to_all(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give each rank of a group its part of what every rank has: an operand for each rank, or one that is cut."""
    given = _gathered(instruction, operands, evaluator)
    if len(given) == 1:
        return tuple(operands) if instruction.shape.is_tuple else operands[0]
    if instruction.opcode != "all-to-all":
        raise UnsupportedError(f"%{instruction.name}: {instruction.opcode} among several ranks is not evaluated here")
    place = _group(instruction, evaluator).index(evaluator.rank)
    if instruction.shape.is_tuple:
        if len(operands) != len(given):
            raise FormatError(f"{len(operands)} parts among {len(given)} ranks", field=instruction.name)
        return tuple(parts[place] for parts in given)
    return np.concatenate([_cut(instruction, parts[0], len(given))[place] for parts in given],
                          instruction.dimensions[0])  # fmt: skip


@operation("collective-broadcast")
def broadcast(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give every rank of a group what its first one has."""
    first = _gathered(instruction, operands, evaluator)[0]
    return tuple(first) if instruction.shape.is_tuple else first[0]


@operation("collective-permute", "collective-permute-start")
def permute(instruction: Instruction, operands: list[Value], evaluator: Evaluator) -> Value:
    """Give each rank what its source sends, zeros where nobody does."""
    pairs = instruction.source_target_pairs
    if any(not 0 <= rank < evaluator.ranks for pair in pairs for rank in pair):
        raise UnsupportedError(f"%{instruction.name}: {instruction.opcode} among several ranks; {evaluator.ranks} "
                               "evaluate the module")  # fmt: skip
    given = evaluator.met(instruction, operands)
    source = next((source for source, target in pairs if target == evaluator.rank), None)
    found = [np.zeros_like(one) for one in operands] if source is None else given[source]
    if instruction.opcode == "collective-permute":
        return tuple(found) if instruction.shape.is_tuple else found[0]
    return pending(instruction, _result(operands, operands), _result(operands, found))


@operation("all-reduce-done", "async-update")
def passed_on(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Pass on what there is."""
    return operands[0]


@operation("all-gather-done", "collective-permute-done", "async-done")
def done(_: Instruction, operands: list[Value], __: Evaluator) -> Value:
    """Take the results of what was started."""
    return operands[0][1]
