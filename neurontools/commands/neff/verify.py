"""`neurontools neff verify`: every consistency rule that needs no execution."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json, NeffFile, Quiet
from neurontools.exits import ExitStatus
from neurontools.files import open_neff_file
from neurontools.output import report


def verify(file: NeffFile, json: Json = False, quiet: Quiet = False, error_exitcode: ErrorExitCode = None) -> None:
    """Check that a NEFF is whole and consistent.

    Hash, sizes, streams, debug entries, queues and semaphores, variables, DMA extents and constants are checked.
    The exit status is 1 when a rule is broken.
    """
    from neurontools.render.table import count

    with report("neff verify", json, quiet=quiet, file=file) as out:
        problems = open_neff_file(file).verify()
        broken = [p for p in problems if p.severity == "error"]
        out.result = {
            "ok": not broken,
            "problems": [{"severity": p.severity, "where": p.where, "message": p.message} for p in problems],
        }
        out.lines = lambda: [
            *(f"{p.severity}: {p.where}: {p.message}" for p in problems),
            f"{file.name}: {count(len(broken), 'error')}, {count(len(problems) - len(broken), 'remark')}"
            if problems
            else f"{file.name}: ok",
        ]
        if broken:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(verify)
