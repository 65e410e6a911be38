"""`neurontools top`: a dashboard as neuron-top."""

from __future__ import annotations

import sys
from pathlib import Path
from time import sleep
from typing import Annotated

import typer

from formats.errors import NotFoundError
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.top.figures import ALL, Figures, figures, tabs_of
from neurontools.top.lines import text_lines
from neurontools.top.source import source_of


def top(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PLACE]",
            help="Folder of sessions, file of one, or reports; what NEURONTOOLS_MACHINE names unless given.",
            show_default=False,
        ),
    ] = None,
    instance: Annotated[
        str, typer.Option("--instance", metavar="TYPE", help="Instance type, where no session says.")
    ] = "trn2.48xlarge",
    tab: Annotated[str, typer.Option("--tab", metavar="TAG", help="Show one program; all without.")] = ALL,
    once: Annotated[bool, typer.Option("--once", help="Print the dashboard as text, and end.")] = False,
    width: Annotated[int, typer.Option("--width", metavar="N", min=40, max=1000, help="Columns of --once.")] = 100,
    period: Annotated[float, typer.Option("--period", metavar="S", min=0.1, help="Seconds between two looks.")] = 1.0,
    json: Json = False,
) -> None:
    """Show cores, CPUs and memory of running programs on a dashboard, as neuron-top.

    Of emulated sessions as they run, or of a recorded stream of reports, of a real machine too.  Keys: 1 to 9, a and d
    choose a tab, f shows teraflops, x opens the tree, comma and full stop step through a recording, q ends.  Without a
    terminal it prints the dashboard once.
    """
    with report("top", json, place=place, instance=instance, tab=tab) as out:
        source = source_of(place, instance)
        if not (once or json) and sys.stdout.isatty():
            from neurontools.top.app import TopApp  # deferred: start-up

            out.streamed = True
            app = TopApp(source, period)
            app.tab = tab
            app.run()
            return
        first = source.report()
        if not source.recorded and first["neuron_runtime_data"]:
            sleep(min(1.0, period))
            first = source.report()
        if tab not in (known := tabs_of(first)):
            raise NotFoundError(f"no program {tab!r}; there is {', '.join(known)}")
        found = figures(first, tab)
        out.result = found
        out.lines = lambda: text_lines(found, width)


app = command_app(top, result=Figures)
