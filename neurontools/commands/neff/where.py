"""`neurontools neff where`: the instructions of a kernel line, and where an instruction comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def where(
    file: NeffFile,
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE",
            help="A line (58), a line of a file (kernel.py:58), a file, or an instruction (PE:12).",
            show_default=False,
        ),
    ],
    subgraph: Annotated[
        int | None,
        typer.Option("--subgraph", "-g", metavar="N", min=0, help="Of one subgraph only.", show_default=False),
    ] = None,
    shown: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Instructions to show per engine, 0 for all.")
    ] = 20,
    json: Json = False,
) -> None:
    """Find the instructions of a source line, and where they come from.

    The chain of the file's debug info is shown level by level: framework operation, HLO, Penguin, BIR.  The exit status
    is 4 where no instruction comes from the place; the message says which places there are.
    """
    from neurontools.render.neff import pick_subgraph
    from neurontools.render.neff_where import parse_place, where_lines
    from neurontools.render.neff_where import where as found

    with report("neff where", json, file=file, place=place, subgraph=subgraph) as out:
        neff = open_neff_file(file)
        numbers = list(range(len(neff.subgraphs))) if subgraph is None else [pick_subgraph(neff, subgraph).index]
        result = found(neff, parse_place(place), numbers, None if json or not shown else shown)
        out.result = result
        out.lines = lambda: where_lines(result, shown or len(result["instructions"]))


app = command_app(where)
