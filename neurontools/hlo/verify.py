"""`neurontools hlo verify`: references, operands and shapes of a module."""

from __future__ import annotations

from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.text.table import count


class RuleRow(NamedTuple):
    """One broken rule."""

    computation: str
    instruction: str
    what: str
    source: Annotated[str, "file and line of the model, '' where the module does not say"]


class HloVerification(NamedTuple):
    """The result of `hlo verify`."""

    ok: bool
    problems: tuple[RuleRow, ...]


def verify(file: HloFile, json: Json = False, quiet: Quiet = False, error_exitcode: ErrorExitCode = None) -> None:
    """Check that a module is whole and keeps the rules of shapes.

    Every operand, called computation and alias must be there, and the shape that each instruction states must be the
    one that its operands give. The exit status is 1 when a rule is broken.
    """
    with report("hlo verify", json, quiet=quiet, file=file) as out:
        from formats.hlo.verify import verify as verify_module  # deferred: start-up

        broken = verify_module(open_module(file))
        found = HloVerification(not broken, tuple(RuleRow(*each) for each in broken))
        out.result = found
        ending = [f"{file.name}: {count(len(broken), 'error') if broken else 'ok'}"]
        out.lines = lambda: [*(f"error: {each}" for each in broken), *ending]
        if broken:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(verify, result=HloVerification)
