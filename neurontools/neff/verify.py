"""`neurontools neff verify`: every consistency rule that needs no execution."""

from __future__ import annotations

from typing import Literal

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, NeffFile, Quiet
from neurontools.command.output import report
from neurontools.text.table import count


class ProblemRow(NamedTuple):
    """One broken rule, or something unusual."""

    severity: Literal["error", "warning"]
    where: str
    message: str


class Verification(NamedTuple):
    """The result of `neff verify`."""

    ok: bool
    problems: list[ProblemRow]


def view(name: str, found: Verification) -> list[str]:
    """Return the problems for people, and their number."""
    errors = sum(one.severity == "error" for one in found.problems)
    lines = [f"{one.severity}: {one.where}: {one.message}" for one in found.problems]
    if not lines:
        return [f"{name}: ok"]
    return [*lines, f"{name}: {count(errors, 'error')}, {count(len(lines) - errors, 'remark')}"]


def verify(file: NeffFile, json: Json = False, quiet: Quiet = False, error_exitcode: ErrorExitCode = None) -> None:
    """Check that a NEFF is whole and consistent.

    Hash, sizes, JSON, streams, debug entries, queues and semaphores, variables, DMA extents and constants are checked.
    The exit status is 1 when a rule is broken.
    """
    with report("neff verify", json, quiet=quiet, file=file) as out:
        problems = [ProblemRow(*one) for one in open_neff_file(file).verify()]
        found = Verification(all(one.severity != "error" for one in problems), problems)
        out.result = found
        out.lines = lambda: view(file.name, found)
        if not found.ok:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(verify, result=Verification)
