"""`neurontools neff tensors`: inputs, outputs and what else the tensor map names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile, SubgraphNumber
from neurontools.command.output import report
from neurontools.neff.rows import pick_subgraph, shape_text, tensor_row
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph, TensorInfo


class NamedTensor(NamedTuple):
    """One tensor that the file names, and the variable behind it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: Annotated[int | None, "bytes; null where the element type is not one of the hardware's"]
    kind: str
    var_id: int | None
    variable_bytes: int | None


class Tensors(NamedTuple):
    """The result of `neff tensors`."""

    subgraph: str
    tensors: list[NamedTensor]


def named_tensors(neff: Neff, graph: Subgraph) -> Tensors:
    """Return inputs and outputs in call order, then what else the tensor map has."""
    found: dict[str, tuple[TensorInfo, str]] = {}
    for kind, items in (("input", neff.inputs), ("output", neff.outputs)):
        found |= {item.name: (item, kind) for item in items}
    for item in graph.tensors.values():
        found.setdefault(item.name, (item, item.kind))
    return Tensors(graph.name, [_named(graph, item, kind) for item, kind in found.values()])


def _named(graph: Subgraph, item: TensorInfo, kind: str) -> NamedTensor:
    variable = graph.variables.get(item.name)
    behind = (None, None) if variable is None else (variable.var_id, variable.size)
    return NamedTensor(*tensor_row(item), kind, *behind)


def view(found: Tensors) -> list[str]:
    """Return the tensors for people."""
    rows = [
        [one.name, one.kind or "-", one.dtype, shape_text(one.shape), one.size, one.var_id] for one in found.tensors
    ]
    total = sum(one.size or 0 for one in found.tensors)
    return [
        *table(["tensor", "kind", "type", "shape", "bytes", "variable"], rows),
        f"{count(len(found.tensors), 'tensor')}, {bytes_text(total)}",
    ]


def tensors(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the tensors of a NEFF.

    Inputs and outputs come first, in call order; then what the tensor map of the subgraph names besides.
    """
    with report("neff tensors", json, file=file, subgraph=subgraph) as out:
        neff = open_neff_file(file)
        found = named_tensors(neff, pick_subgraph(neff, subgraph))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(tensors, result=Tensors)
