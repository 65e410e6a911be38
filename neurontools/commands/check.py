"""`neurontools check`: races, undefined bytes, bounds and waits of a script, a NEFF or a .s program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import (
    Act,
    ErrorExitCode,
    Json,
    Lnc,
    Nki,
    ProgramFile,
    Quiet,
    ScriptArguments,
    Seed,
    TargetName,
    check_act,
    check_nki,
)
from neurontools.exits import ExitStatus
from neurontools.output import report


def check(
    file: ProgramFile,
    arguments: ScriptArguments = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="NAME",
            help="memcheck, initcheck, racecheck, synccheck or all; may be given more than once. Default: all.",
            show_default=False,
        ),
    ] = None,
    target: TargetName = None,
    lnc: Lnc = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="Inputs of a NEFF by name (.npz).", show_default=False),
    ] = None,
    seed: Seed = None,
    act: Act = "exact",
    nki: Nki = "auto",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", metavar="SEVERITY", help="Least severity that fails: note, warning, error, or never."
        ),
    ] = "warning",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="text, json, sarif, junit, or dot: the graph of a hang."),
    ] = "text",
    suppressions: Annotated[
        Path | None,
        typer.Option(
            "--suppressions", metavar="FILE", help="Findings to accept, a pattern a line.", show_default=False
        ),
    ] = None,
    notes: Annotated[bool, typer.Option("--notes", help="Show notes too: odd, and no reason to fail.")] = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Find races, undefined bytes, bad accesses and waits that never end.

    memcheck looks at every operand and transfer, executed or not; initcheck follows bytes that nothing wrote to the
    outputs; racecheck finds accesses to the same bytes that nothing orders, in any schedule; synccheck judges waits and
    signals.  The exit status is 1 when something was found.
    """
    from neurontools import checking

    check_nki(nki)
    if form not in checking.FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(checking.FORMATS)}", param_hint="--format")
    if fail_on not in (*checking.SEVERITIES, "never"):
        raise typer.BadParameter(f"{fail_on!r} is none of note, warning, error, never", param_hint="--fail-on")
    json = json or form == "json"
    with report(
        "check", json, quiet=quiet, file=file, arguments=arguments or None, tool=tool, target=target, lnc=lnc,
        inputs=inputs, seed=seed, fail_on=fail_on, suppressions=suppressions,
    ) as out:  # fmt: skip
        from neurontools.uninterrupted import import_numpy

        import_numpy()

        from emulator.checks.registry import tools_of
        from emulator.errors import InputError

        try:
            tools = tools_of(tool or ["all"])
        except InputError as error:
            raise typer.BadParameter(str(error), param_hint="--tool") from None
        script = file.suffix == ".py"
        if script and inputs is not None:
            raise typer.BadParameter("a script makes its own inputs; --inputs is for a NEFF", param_hint="--inputs")
        if arguments and not script:
            raise typer.BadParameter("only a script takes arguments", param_hint="ARGS")
        wanted = checking.Request(
            file, arguments or [], tools, target, lnc, inputs, seed, nki, fail_on, form, suppressions, notes,
            check_act(act),
        )
        checking.check(wanted, out)
        if out.status in (ExitStatus.FINDING, ExitStatus.FAULT):
            out.exit_code = error_exitcode


app = command_app(check)
