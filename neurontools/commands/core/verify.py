"""`neurontools core verify`: is the dump whole, and did the engines have the words of the NEFF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.core.arguments import CoreFile, open_core_file, tell_damage
from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json
from neurontools.exits import ExitStatus
from neurontools.files import open_neff_file
from neurontools.output import report


def verify(
    file: CoreFile,
    neff: Annotated[
        Path | None,
        typer.Option("--neff", metavar="FILE", help="The NEFF that ran: its words must be those in the dump."),
    ] = None,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Check a core dump, and its instructions against a NEFF.

    Without `--neff` every part must be there and readable. With it the identity must be the file's, each instruction in
    the dump must be, byte for byte, what loading the file puts there, and each word that the loader replaced as in the
    file.
    """
    from neurontools import core_verify
    from neurontools.render import core_verify as render

    with report("core verify", json, file=file, neff=neff) as out:
        core = open_core_file(file)
        opened = None if neff is None else open_neff_file(neff)
        found = core_verify.verify(core, opened)
        out.result = render.data(found)
        tell_damage(out, core)
        out.lines = lambda: render.lines(file.name, found)
        if found.problems:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(verify)
