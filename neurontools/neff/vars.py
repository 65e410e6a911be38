"""`neurontools neff vars`: the variables that words and descriptors refer to."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile, SubgraphNumber
from neurontools.command.output import report
from neurontools.neff.rows import VariableRow, open_subgraph
from neurontools.text.table import table


class Variables(NamedTuple):
    """The result of `neff vars`, in file order."""

    subgraph: str
    variables: list[VariableRow]


def view(found: Variables) -> list[str]:
    """Return the variables for people, by their ids."""
    rows = []
    for one in sorted(found.variables, key=lambda one: one.var_id):
        where = []
        if one.file_name:
            where.append(f"file {one.file_name}")
        if one.backing_offset is not None:
            where.append(f"at scratch+0x{one.backing_offset:x}")
        if one.entries:
            where.append("variables " + ", ".join(map(str, one.entries)))
        rows.append([one.var_id, one.name, one.kind, one.size, one.alignment, "; ".join(where)])
    return table(["id", "name", "kind", "bytes", "align", "where"], rows)


def vars_(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the variables of a subgraph.

    A virtual variable lies in the shared scratchpad at its offset; a dge-table lists the variables that a table index
    names.
    """
    with report("neff vars", json, file=file, subgraph=subgraph) as out:
        graph = open_subgraph(file, subgraph)
        found = Variables(graph.name, [VariableRow(*one) for one in graph.variables.values()])
        out.result = found
        out.lines = lambda: view(found)


app = command_app(vars_, result=Variables)
