"""`neurontools neff vars`: the variables that words and descriptors refer to."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile, SubgraphNumber
from neurontools.files import open_neff_file
from neurontools.output import report


def vars_(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the variables of a subgraph.

    A virtual variable lies in the shared scratchpad at its offset; a dge-table lists the variables that a table index
    names.
    """
    from neurontools.render import neff as render

    with report("neff vars", json, file=file, subgraph=subgraph) as out:
        graph = render.pick_subgraph(open_neff_file(file), subgraph)
        out.result = {"subgraph": graph.name, "variables": render.variables(graph)}
        out.lines = lambda: render.variable_lines(out.result["variables"])


app = command_app(vars_)
