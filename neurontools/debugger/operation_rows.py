"""`info ops`: every operation of the graph, how far it is, and where its result lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from formats.errors import NotFoundError
from formats.neff.operations import Operation
from neurontools.debugger.graph_values import stands
from neurontools.debugger.graphs import held_text
from neurontools.debugger.names import parse_number
from neurontools.debugger.results import OperationRow

if TYPE_CHECKING:
    from neurontools.debugger.execution import Execution

__all__ = ["operation_rows"]


def operation_rows(execution: Execution, wanted: str = "") -> tuple[OperationRow, ...]:
    """Return the operations of the focus core's graph, all or those that a name or a source line asks for.

    None where the file has no graph. Raises NotFoundError for what is asked for and is not there.
    """
    core = execution.focus[0]
    found = execution.program.graphs.of(core)
    if found is None:
        if not wanted:
            return ()
        raise NotFoundError("the file has no graph: it was not compiled from one here")
    chosen = list(_chosen(execution, found.rows, wanted, core))
    return tuple(_row(execution, row, core) for row in chosen)


def _chosen(execution: Execution, rows: tuple[Operation, ...], wanted: str, core: int) -> Iterator[Operation]:
    if not wanted:
        yield from rows
        return
    if wanted.startswith("%"):
        yield execution.program.graphs.find(wanted, core)[0]
        return
    file, _, line = wanted.rpartition(":")
    number = parse_number(line, "a line: %NAME or FILE:LINE")
    parts = PurePath(file).parts
    here = [row for row in rows if row.line == number and PurePath(row.file).parts[-len(parts) :] == parts]
    if not here:
        raise NotFoundError(f"no operation comes from {wanted}")
    yield from here


def _row(execution: Execution, row: Operation, core: int) -> OperationRow:
    words = execution.program.graphs.all_words(core).get(row.name, {})
    done = {engine: sum(pc < stands(execution.device, core, engine) for pc in pcs) for engine, pcs in words.items()}
    counts = {engine: len(pcs) for engine, pcs in words.items()}
    state = "-" if not words else "done" if done == counts else "at" if any(done.values()) else ""
    held = ", ".join(dict.fromkeys(held_text(one).removeprefix("lies in ") for one in row.results))
    kind = ", ".join(one.text for one in row.results)
    return OperationRow(core, row.name, row.path, row.opcode, kind, row.file, row.line, counts, state,
                        held or held_text(None))  # fmt: skip
