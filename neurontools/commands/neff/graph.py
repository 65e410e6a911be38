"""`neurontools neff graph`: the node graph, as text, JSON or DOT."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def graph(
    file: NeffFile,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph in the DOT language of Graphviz.")] = False,
    json: Json = False,
) -> None:
    """Show the node graph of a NEFF.

    Inputs, compiled parts with their subgraphs, outputs.
    """
    from neurontools.render import neff_graph as render

    if dot and json:
        raise typer.BadParameter("give --dot or --json, not both", param_hint="--dot")
    with report("neff graph", json, file=file) as out:
        found = render.graph(open_neff_file(file))
        out.result = found
        out.lines = lambda: render.dot_lines(found) if dot else render.graph_lines(found)


app = command_app(graph)
