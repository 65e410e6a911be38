"""`neurontools ntff compare`: a capture beside the emulator's run of its NEFF, each word and transfer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Inputs, Json
from neurontools.command.output import report, write_whole
from neurontools.ntff.arguments import CoreNumber, NtffFile
from neurontools.ntff.capture import open_both
from neurontools.ntff.compare_view import csv_text, view
from neurontools.ntff.compared import Compared, compare_capture


def compare(
    file: NtffFile,
    neff: Annotated[Path, typer.Argument(metavar="NEFF", help="The NEFF that was captured.", show_default=False)],
    inputs: Inputs = None,
    core: CoreNumber = None,
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", min=0, help="Rows of each table; 0 for all.")
    ] = 20,
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Plot how the ratios spread.")] = True,
    table: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Write every word and transfer there.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Compare a capture with the emulator's run of its NEFF, word by word and transfer by transfer.

    Words are matched by engine, compiler's pc and execution, transfers by queue and order. Ratios are emulated over
    captured time, medians over the row; the first row is off by most time in all. Words that only wait
    (EVENT_SEMAPHORE) are counted, not compared.
    """
    with report("ntff compare", json, file=file, neff=neff, inputs=inputs, core=core, csv=table) as out:
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        if table is not None:
            need_place(table)
        ntff, program, odd = open_both(file, neff)
        out.warn(*odd)
        found, rows = compare_capture(ntff, core, program, inputs)
        if table is not None:
            with write_whole(table) as beside:
                beside.write_text(csv_text(rows), encoding="utf-8")
        out.result = found
        out.lines = lambda: view(found, count, plot=plot)


app = command_app(compare, result=Compared)
