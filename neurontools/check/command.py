"""`neurontools check`: races, undefined bytes, bounds and waits of a script, a NEFF or a .s program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.errors import NeuronError
from neurontools.check.rows import CheckResult
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    Act,
    ErrorExitCode,
    HangTimeout,
    Inputs,
    InputsFrom,
    InstanceType,
    Json,
    Lenient,
    Limit,
    Lnc,
    MaxInstructions,
    MaxTime,
    Nki,
    NodeCount,
    ProgramFile,
    Quiet,
    RankCount,
    Schedule,
    ScriptArguments,
    Seed,
    TargetName,
    Timing,
    given,
    ranks_of,
)
from neurontools.command.output import report
from neurontools.program.configuration import RunConfiguration


def check(
    context: typer.Context,
    file: ProgramFile,
    arguments: ScriptArguments = None,
    checks: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="NAME",
            help="memcheck, initcheck, racecheck, synccheck, all (these four), nancheck or lint; may be given more "
            "than once. Default: all.",
            show_default=False,
        ),
    ] = None,
    target: TargetName = None,
    lnc: Lnc = None,
    ranks: RankCount = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
    inputs: Inputs = None,
    inputs_from: InputsFrom = None,
    seed: Seed = None,
    timing: Timing = True,
    act: Act = "exact",
    hang_timeout_ps: HangTimeout = None,
    max_steps: MaxInstructions = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    nki: Nki = "auto",
    lenient: Lenient = False,
    schedule: Schedule = False,
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
    signals; nancheck, where it is asked for, follows NaN and infinities of outputs back to where they began; lint,
    where it is asked for, gives advice.  The exit status is 1 when something was found.
    """
    from neurontools.check import checking  # deferred: start-up

    if form not in checking.FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(checking.FORMATS)}", param_hint="--format")
    if fail_on not in (*checking.SEVERITIES, "never"):
        raise typer.BadParameter(f"{fail_on!r} is none of note, warning, error, never", param_hint="--fail-on")
    if json and form not in ("text", "json"):
        raise typer.BadParameter(f"--format {form} is another one", param_hint="--json")
    json = json or form == "json"
    with report(
        "check", json, quiet=quiet, file=file, arguments=arguments or None, tool=checks, target=target, lnc=lnc,
        inputs=inputs, seed=seed, fail_on=fail_on, suppressions=suppressions, ranks=ranks, instance=instance,
    ) as out:  # fmt: skip
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()

        from emulator.checks.registry import tools_of  # deferred: start-up
        from emulator.errors import InputError  # deferred: start-up

        try:
            tools = tools_of(checks or ["all"])
        except InputError as error:
            raise typer.BadParameter(str(error), param_hint="--tool") from None
        configuration = RunConfiguration(
            tuple(arguments or ()), target=target, lnc=lnc, inputs=inputs, inputs_from=inputs_from, seed=seed,
            timing=timing, act=act, hang_timeout_ps=hang_timeout_ps, max_steps=max_steps, limit_ps=limit_ps,
            max_seconds=max_seconds, nki=nki, checks=tools, lenient=lenient, schedule=schedule, given=given(context),
        )  # fmt: skip
        where = ranks_of(ranks, instance, nodes, configuration.given)
        try:
            checking.check(file, configuration, checking.Judging(fail_on, form, suppressions, notes), out, where)
        except (NeuronError, OSError) as error:
            if not quiet:
                checking.tell_refused(file, form, error)
            raise
        if out.status in (ExitStatus.FINDING, ExitStatus.FAULT):
            out.exit_code = error_exitcode


app = command_app(check, result=CheckResult)
