"""`neurontools core diff`: what is different between two dumps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json
from neurontools.exits import ExitStatus
from neurontools.output import report


def diff(
    file: CoreFile,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Another core dump.", show_default=False)],
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Compare two core dumps.

    Status, fault, engines, registers, semaphores, queues, and of the memories what both dumps hold. When and where the
    dumps were taken is not compared.
    """
    from neurontools import core_compare
    from neurontools.render import core_diff as render

    with report("core diff", json, file=file, other=other) as out:
        one, two = open_core_file(file), open_core_file(other)
        found = core_compare.compare(one, two)
        out.result = render.data(found)
        tell_damage(out, one)
        tell_damage(out, two)
        out.lines = lambda: render.lines(found)
        if found.differences or found.memory:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(diff)
