"""Where the operations of the given module lie in the compiled program: what the file tells a debugger.

Source of the format: `formats/neff/operations.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from formats.neff.operations import OPERATIONS, Form, Held, Operation, Piece, write_operations
from neurontools.compiler.element_types import element_type
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.kernels import Part
from neurontools.compiler.lowering import Lowering
from neurontools.compiler.placing import VIEWS
from neurontools.compiler.precision import Cast

__all__ = ["operation_tables", "operations_of"]


def operation_tables(rows: Sequence[Operation], cores: int) -> dict[str, bytes]:
    """Return the members that hold the operations, the same for each core."""
    table = write_operations(rows)
    return {f"sg{core:02d}/{OPERATIONS}": table for core in range(cores)}


def operations_of(graph: Graph, lowering: Lowering, casts: Iterable[Cast]) -> list[Operation]:
    """Return the operations of a graph that has been lowered, those of bodies behind the loop or branch they are in."""
    return list(_walk(graph, lowering, {one.operation: one.target for one in casts}))


def _walk(graph: Graph, lowering: Lowering, casts: dict[str, str]) -> Iterator[Operation]:
    for one in graph.named:
        name, file, line = one.origin
        results = tuple(_held(lowering, value, name) for value in one.results if value is not None)
        if len(results) != len(one.results):
            results = ()
        yield Operation(name, one.path, one.opcode, file, line, results, casts.get(name, ""))
        first = next((value for value in one.results if value is not None), None)
        if one.opcode in ("while", "conditional") and first is not None and first.node.opcode == one.opcode:
            for body in _bodies(first):
                yield from _walk(body, lowering, casts)


def _bodies(value: Value) -> Iterator[Graph]:
    for attribute in value.node.attrs.values():
        for one in attribute if isinstance(attribute, list) else (attribute,):
            if isinstance(one, Graph):
                yield one


def _held(lowering: Lowering, value: Value, name: str) -> Held:
    storage, maker = element_type(value.dtype).storage, _maker(value)
    base = Held(value.dtype, value.shape, storage.numpy_name, "" if maker == name else maker)
    array = lowering.values.get(value)
    if array is not None:
        return base._replace(kept=array.dtype.numpy_name, tensor=array.allocation.name, offset=array.offset,
                             strides=array.strides)  # fmt: skip
    number = lowering.splats.get(value)
    if number is not None:
        return base._replace(number=number)
    parts = lowering.parts.get(value, ())
    kept = {part.tile.dtype for part in parts}
    if len(kept) != 1:
        return base
    return base._replace(kept=kept.pop().numpy_name, pieces=tuple(map(_piece, parts)))


def _maker(value: Value) -> str:
    """Return the operation whose instructions make a value: of a view, that of what it shows."""
    while value.node.opcode in VIEWS:
        value = value.node.operands[0]
    return value.node.origin.name


def _piece(part: Part) -> Piece:
    tile = part.tile
    return Piece(tile.allocation.name, tile.partition, tile.offset, part.first,
                 Form(tile.dims, part.rows, part.inner), part.core)  # fmt: skip
