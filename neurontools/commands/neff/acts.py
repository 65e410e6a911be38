"""`neurontools neff acts`: activation functions, their tables, and the errors of these."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile, SubgraphNumber
from neurontools.files import open_neff_file
from neurontools.output import report


def acts(
    file: NeffFile,
    subgraph: SubgraphNumber = 0,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            "-p",
            metavar="FUNCTION",
            help="Plot the error of one function over its range.",
            show_default=False,
        ),
    ] = None,
    span: Annotated[
        str | None,
        typer.Option(
            "--range",
            "-r",
            metavar="LOW:HIGH",
            show_default=False,
            help="Compare there; the range between the table's own thresholds unless given.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the activation functions of a NEFF and how exact they are.

    Tables are piecewise cubics in fp32; the errors are the largest against the exact function, sampled over the range.
    """
    with report("neff acts", json, file=file, subgraph=subgraph, plot=plot, range=span) as out:
        ends = _ends(span)
        neff = open_neff_file(file)
        from neurontools.uninterrupted import import_numpy

        import_numpy()

        from neurontools.render.neff import pick_subgraph
        from neurontools.render.neff_acts import act_lines, plot_lines
        from neurontools.render.neff_acts import acts as found

        result = found(pick_subgraph(neff, subgraph), plot, ends)
        out.result = result
        out.lines = lambda: plot_lines(result["curve"]) if plot else act_lines(result)


def _ends(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not -1e38 < ends[0] < ends[1] < 1e38:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH", param_hint="--range")
    return ends


app = command_app(acts)
