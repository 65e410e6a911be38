"""`neurontools ntff timeline`: time by engine and queue, beside the emulator's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.ntff.arguments import CoreNumber, NtffFile
from neurontools.commands.options import Json
from neurontools.output import report


def timeline(
    file: NtffFile,
    core: CoreNumber = None,
    neff: Annotated[
        Path | None,
        typer.Option("--neff", metavar="FILE", help="The NEFF that was captured: run it on the emulator and compare.",
                     show_default=False),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="Inputs of the NEFF by name (.npz); needed only where data "
                     "decides what runs.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Show where the time went, beside the emulator's run.

    Counted are the compiler's words; an engine is active while one of them other than EVENT_SEMAPHORE runs, and the
    program lasts from its first word's begin to its last word's end. Ratios are emulated over captured time.
    """
    from neurontools.ntff import capture
    from neurontools.ntff import timeline as measure
    from neurontools.render import ntff as render

    with report("ntff timeline", json, file=file, core=core, neff=neff, inputs=inputs) as out:
        from neurontools.uninterrupted import import_numpy

        import_numpy()
        if inputs is not None and neff is None:
            raise typer.BadParameter("are of a NEFF: give it with --neff", param_hint="--inputs")
        opened, program, odd = capture.open_pair(file, neff)
        out.warn(*odd)
        result = measure.captured(opened, core)
        result |= {"name": opened.name, "target": opened.target.name, "emulated": None}
        if program is not None:
            arrays = None
            if inputs is not None:
                from neurontools.arrays import load_arrays
                from neurontools.files import need_file

                arrays = load_arrays(need_file(inputs))
            result["emulated"] = measure.compared(result, program, arrays)
        out.result = result
        out.lines = lambda: render.timeline_lines(out.result)


app = command_app(timeline)
