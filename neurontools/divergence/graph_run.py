"""A run against the graph that it was compiled from: operation by operation, automatically."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from formats.errors import NotFoundError, UnsupportedError
from formats.hlo import Module, PrimitiveType, Shape, dtype_of, read_hlo
from formats.neff.operations import GRAPH, Operation, Operations
from neurontools.debugger.graph_values import in_tensor, shown_type
from neurontools.debugger.results import TensorValue
from neurontools.divergence.array_difference import difference
from neurontools.divergence.graph_recorder import GraphRecorder
from neurontools.divergence.graph_reference import Gap, Reference
from neurontools.divergence.results import (
    Figures,
    GraphRun,
    OperationDifference,
    OperationGap,
    OperationOperand,
    Outcome,
    Untried,
)
from neurontools.running.rows import SourceRow

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["cast_errors", "compare_graph", "compare_operations"]


def _graph_of(session: Session) -> tuple[Module, Operations]:
    """Return the graph that a session's file carries; NotFoundError where it carries none."""
    neff = session.neff
    operations = neff.subgraphs[0].operations
    if operations is None or GRAPH not in neff.archive:
        raise NotFoundError(
            f"{neff.path or 'the file'} does not hold the graph it was compiled from; `neurontools compile model` puts "
            "it in"
        )
    return read_hlo(neff.need(GRAPH)), operations


def _recorded(session: Session, operations: Operations) -> GraphRecorder:
    """Run a session to its end and return what its operations made."""
    recorder = GraphRecorder(session, operations)
    session.device.observers.append(recorder)
    session.device.run()
    return recorder


def compare_graph(session: Session, chosen: tuple[float, float] | None = None) -> GraphRun:
    """Run a compiled graph and compare each operation with what the interpreter makes of the device's own operands.

    `chosen` are a relative and an absolute tolerance, instead of those that go with types and opcodes. Raises
    NotFoundError for a file without its graph, UnsupportedError for a graph that the interpreter cannot compute.
    """
    operations, reference = _referred(session, chosen)
    outcome = session.device.outcome
    names = list(dict.fromkeys(gap.row.key for gap in reference.gaps))
    untried = tuple(Untried(name, why) for name, why in reference.untried.items() if name not in reference.compared)
    first = _gap_row(session, reference.gaps[0]) if names else None
    return GraphRun(outcome == "finished" and not names, cast(Outcome, outcome), len(operations.rows),
                    len(reference.compared), first, tuple(names[1:]), untried, None)  # fmt: skip


def cast_errors(session: Session) -> dict[str, tuple[float, float]]:
    """Run a compiled graph; return, of operations whose operands were cast, how far that led: absolutely, as a share.

    The share is of the largest element of what the interpreter makes of operands that are not cast.
    """
    return _referred(session, None)[1].cast_errors


def _referred(session: Session, chosen: tuple[float, float] | None) -> tuple[Operations, Reference]:
    """Run a session, and the interpreter beside what it made."""
    module, operations = _graph_of(session)
    arguments = [_argument(session, operations, each.name, each.shape) for each in module.entry.parameters]
    reference = Reference(_recorded(session, operations), chosen)
    if session.device.outcome == "finished":
        try:
            reference.run(module, arguments)
        except UnsupportedError as error:
            if not reference.gaps:
                raise
            reference.untried.setdefault("what follows", str(error))
    return operations, reference


def compare_operations(one: Session, other: Session, rtol: float, atol: float) -> OperationDifference | None:
    """Run two compiled graphs and compare the values of operations of one name; None where a file has no operations."""
    mine, theirs = one.neff.subgraphs[0].operations, other.neff.subgraphs[0].operations
    if mine is None or theirs is None:
        return None
    here, there = _recorded(one, mine), _recorded(other, theirs)
    partners = {row.key: row for row in theirs.rows}
    compared, alone = 0, 0
    met: set[str] = set()
    for row in mine.rows:
        partner = partners.get(row.key)
        pairs = [] if partner is None else list(_values(here, row, there, partner))
        if not pairs:
            alone += 1
            continue
        compared += 1
        met.add(row.key)
        for number, turn, (a, b) in pairs:
            gap = difference(a, b, rtol, atol)
            if gap is not None:
                words = tuple(_words(session, row.name) for session in (one, other))
                return OperationDifference(compared, (0, 0), row.key, SourceRow(row.file, row.line, row.name),
                                           row.results[number].text, turn, gap, words)  # fmt: skip
    return OperationDifference(compared, (alone, len(theirs.rows) - len(met)), None, None, "", None, None, ())


def _values(
    here: GraphRecorder, row: Operation, there: GraphRecorder, partner: Operation
) -> Iterator[tuple[int, int | None, tuple[Any, Any]]]:
    """Yield the number of each result, the turn of a loop or None, and its values on both sides."""
    loop = here.loop_of(row)
    turns = max(here.turns(loop), there.turns(loop)) if loop else 1
    for number, (a, b) in enumerate(zip(row.results, partner.results, strict=False)):
        if a.shape != b.shape:
            continue
        for turn in range(turns):
            found = here.value(row, number, turn), there.value(partner, number, turn)
            if found[0] is not None and found[1] is not None:
                yield number, turn if loop else None, found


def _words(session: Session, name: str) -> dict[str, tuple[int, ...]]:
    return {engine: tuple(pcs) for engine, pcs in session.program.graphs.all_words(0).get(name, {}).items()}


def _argument(session: Session, operations: Operations, name: str, shape: Shape) -> Any:
    """Return a parameter's value from the session's inputs."""
    row = next(one for one in operations.by_name[name] if not one.path)
    leaves = iter(row.results)

    def build(one: Shape) -> Any:
        if one.is_tuple:
            return tuple(build(each) for each in one.tuple_shapes)
        if one.element_type.is_complex:
            parts = one.with_type(PrimitiveType.F32)
            return np.stack([build(parts), build(parts)], -1).view(dtype_of(one.element_type)).reshape(one.dimensions)
        held, kind = next(leaves, None), dtype_of(one.element_type)
        given = None if held is None else session.inputs.get(held.tensor)
        if held is None or given is None:  # nothing reads it, or it has no elements, which no file has a tensor of
            return np.zeros(one.dimensions, kind)
        if held.dtype in ("s64", "u64"):
            return np.asarray(given).reshape(one.dimensions).astype(kind)
        raw = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
        values = shown_type(in_tensor(held, raw, None)[0], held)
        return values if values.dtype == kind else values.view(kind)

    return build(shape)


def _gap_row(session: Session, gap: Gap) -> OperationGap:
    row = gap.row
    operands = tuple(_operand(name, value) for name, value in gap.operands)
    return OperationGap(row.key, gap.opcode, SourceRow(row.file, row.line, row.name), gap.number,
                        row.results[gap.number].text, gap.turn if gap.in_loop else None, gap.tolerance, gap.difference,
                        operands, _words(session, row.name))  # fmt: skip


def _operand(name: str, value: Any) -> OperationOperand:
    if isinstance(value, tuple) or value is None:
        return OperationOperand(name, "a tuple" if isinstance(value, tuple) else "a token", None)
    array = np.asarray(value)
    text = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    return OperationOperand(name, text, Figures(*TensorValue("", "", "", array, 0).statistics))
