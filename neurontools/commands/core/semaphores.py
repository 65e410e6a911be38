"""`neurontools core semaphores`: semaphores and events."""

from __future__ import annotations

from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def semaphores(
    file: CoreFile,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Zeros that nobody waits for, too.")] = False,
    json: Json = False,
) -> None:
    """List semaphores and events and who waits for them.

    Those that are zero and that nobody waits for are left out.
    """
    from neurontools.render import core as render

    with report("core semaphores", json, file=file) as out:
        dump = open_core_file(file)
        out.result = render.counters(dump, everything)
        tell_damage(out, dump)
        out.lines = lambda: render.counter_lines(out.result)


app = command_app(semaphores)
