"""`neurontools core engines`: where every engine stood."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, CoreNumber, EngineName, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def engines(
    file: CoreFile,
    core: CoreNumber = None,
    engine: EngineName = None,
    registers: Annotated[bool, typer.Option("--registers", "-r", help="Print registers that are not zero.")] = False,
    json: Json = False,
) -> None:
    """Show where every engine stood, and its registers.

    The word shown is the oldest one that had not completed.
    """
    from neurontools.render import core as render

    with report("core engines", json, file=file, core=core, engine=engine) as out:
        dump = open_core_file(file)
        out.result = render.engines(dump, core, engine)
        tell_damage(out, dump)
        out.lines = lambda: render.engine_lines(out.result, registers)


app = command_app(engines)
