"""`neurontools neff tensors`: inputs, outputs and what else the tensor map names."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile, SubgraphNumber
from neurontools.files import open_neff_file
from neurontools.output import report


def tensors(file: NeffFile, subgraph: SubgraphNumber = 0, json: Json = False) -> None:
    """List the tensors of a NEFF.

    Inputs and outputs come first, in call order; then what the tensor map of the subgraph names besides.
    """
    from neurontools.render.neff import pick_subgraph
    from neurontools.render.neff_tensors import tensor_lines
    from neurontools.render.neff_tensors import tensors as found

    with report("neff tensors", json, file=file, subgraph=subgraph) as out:
        neff = open_neff_file(file)
        graph = pick_subgraph(neff, subgraph)
        rows = found(neff, graph)
        out.result = {"subgraph": graph.name, "tensors": rows}
        out.lines = lambda: tensor_lines(rows)


app = command_app(tensors)
