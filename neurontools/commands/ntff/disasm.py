"""`neurontools ntff disasm`: the words that the runtime had loaded."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.ntff.arguments import CoreNumber, NeffOption, NtffFile
from neurontools.commands.options import Json
from neurontools.output import report


def disasm(
    file: NtffFile,
    core: CoreNumber = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", "-e", metavar="ENGINE", help="pe, act, pool, dve or sp; all by default.",
                     show_default=False),
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="Only the compiler's words, without what the runtime put around them.")
    ] = False,
    start: Annotated[int, typer.Option("--start", "-s", metavar="PC", min=0, help="First loaded word.")] = 0,
    count: Annotated[
        int | None, typer.Option("--count", "-n", metavar="N", min=1, help="Words of each engine.", show_default=False)
    ] = None,
    neff: NeffOption = None,
    json: Json = False,
) -> None:  # fmt: skip
    """List the instructions that the runtime had loaded.

    A line has the loaded pc, the compiler's pc (none for what the runtime inserted), how long the word took the last
    time it ran in the capture, and its text.
    """
    from neurontools.ntff import capture
    from neurontools.render import ntff as render

    with report("ntff disasm", json, file=file, core=core, engine=engine, neff=neff) as out:
        opened, program_file, odd = capture.open_pair(file, neff)
        out.warn(*odd)
        out.result = {"engines": capture.words(opened, program_file, core, engine, program, start, count)}
        out.lines = lambda: render.disasm_lines(out.result)


app = command_app(disasm)
