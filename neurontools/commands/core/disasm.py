"""`neurontools core disasm`: instructions around where engines stood."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, CoreNumber, EngineName, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def disasm(
    file: CoreFile,
    core: CoreNumber = None,
    engine: EngineName = None,
    around: Annotated[
        int | None, typer.Option("--around", metavar="PC", min=0, help="Words around this pc, not where it stood.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Words of each engine.")] = 10,
    json: Json = False,
) -> None:
    """List the instructions around where an engine stood.

    With `--engine` that one; else the engine that faulted, or those that wait. Source lines come from the dump.
    """
    from neurontools.render import core_disasm as render

    with report("core disasm", json, file=file, core=core, engine=engine, around=around) as out:
        dump = open_core_file(file)
        out.result = render.words(dump, core, engine, around, count)
        tell_damage(out, dump)
        out.lines = lambda: render.lines(out.result)


app = command_app(disasm)
