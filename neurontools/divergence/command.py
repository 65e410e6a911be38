"""`neurontools diff-run`: two executions side by side, up to the first result that differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    ErrorExitCode,
    Inputs,
    InputsFrom,
    Json,
    Limit,
    MaxInstructions,
    MaxTime,
    Quiet,
    complete_target,
    given,
)
from neurontools.command.output import report
from neurontools.divergence.results import RunDifference
from neurontools.program.configuration import RunConfiguration


def _target(side: str) -> Any:
    return typer.Option(
        f"--target-{side}", metavar="CHIP", autocompletion=complete_target, show_default=False,
        help=f"Chip of {side.upper()}; of a script any.",
    )  # fmt: skip


def _seed(side: str) -> Any:
    return typer.Option(
        f"--seed-{side}", metavar="N", min=0, show_default=False, help=f"Shake the schedule of {side.upper()}."
    )


def _lnc(side: str) -> Any:
    return typer.Option(
        f"--lnc-{side}", metavar="N", min=1, max=2, show_default=False, help=f"Physical cores of {side.upper()}."
    )


def _precise(side: str) -> Any:
    return typer.Option(
        f"--precise-fp-{side}", metavar="0|1", min=0, max=1, show_default=False,
        help=f"NKI_PRECISE_FP for {side.upper()}; of a script.",
    )  # fmt: skip


def diff_run(
    context: typer.Context,
    one: Annotated[Path, typer.Argument(metavar="A", help="A Python script, a NEFF, a .s program, or a recording.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="The same; A once more without it.", show_default=False)
    ] = None,
    inputs: Inputs = None,
    inputs_from: InputsFrom = None,
    target_a: Annotated[str | None, _target("a")] = None,
    target_b: Annotated[str | None, _target("b")] = None,
    seed_a: Annotated[int | None, _seed("a")] = None,
    seed_b: Annotated[int | None, _seed("b")] = None,
    lnc_a: Annotated[int | None, _lnc("a")] = None,
    lnc_b: Annotated[int | None, _lnc("b")] = None,
    precise_fp_a: Annotated[int | None, _precise("a")] = None,
    precise_fp_b: Annotated[int | None, _precise("b")] = None,
    max_steps: MaxInstructions = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    rtol: Annotated[
        float, typer.Option("--rtol", metavar="X", min=0, help="Relative tolerance, to the value of B.")
    ] = 0.0,
    atol: Annotated[float, typer.Option("--atol", metavar="X", min=0, help="Absolute tolerance.")] = 0.0,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Find the first instruction whose result differs in two runs.

    Two files, or one with two targets, two seeds, or two values of NKI_PRECISE_FP; of a script the first kernel that it
    launches.  Shows the instruction on both sides, its source line, its inputs and outputs, how they differ, and the
    commands that stop there in the debugger.  Where the streams of an engine differ, words are matched by opcode,
    source line and tile name, and the report says so.  Equal means equal bits, unless --rtol or --atol allow more.  The
    exit status is 1 when something differs.
    """
    second = one if other is None else other
    with report(
        "diff-run", json, quiet=quiet, a=one, b=second, inputs=inputs, target_a=target_a, target_b=target_b,
        seed_a=seed_a, seed_b=seed_b, lnc_a=lnc_a, lnc_b=lnc_b, precise_fp_a=precise_fp_a, precise_fp_b=precise_fp_b,
        rtol=rtol, atol=atol,
    ) as out:  # fmt: skip
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up
        from neurontools.divergence.differing import compare  # deferred: start-up
        from neurontools.program.kinds import Kind, fitting, kind_of, refuse_misplaced  # deferred: start-up

        import_numpy()
        takers = [file for file in (one, second) if kind_of(file) in (Kind.ASSEMBLY, Kind.NEFF)]
        sides = []
        for letter, file, target, seed, lnc, precise in (
            ("a", one, target_a, seed_a, lnc_a, precise_fp_a), ("b", second, target_b, seed_b, lnc_b, precise_fp_b),
        ):  # fmt: skip
            spelled = given(context, letter)
            configuration = RunConfiguration(
                target=target, seed=seed, lnc=lnc, inputs=inputs, inputs_from=inputs_from,
                max_steps=max_steps, limit_ps=limit_ps, max_seconds=max_seconds,
                precise_fp=None if precise is None else str(precise), given=spelled,
            )  # fmt: skip
            # Both share the inputs, and a script or a recording beside a NEFF has its own.
            sides.append((file, fitting(file, configuration, ("inputs", "inputs_from") if takers else ())))
        for side in sides:
            refuse_misplaced(*side)
        compare(sides[0], sides[1], rtol, atol, out)
        if out.status is ExitStatus.FINDING:
            out.exit_code = error_exitcode


app = command_app(diff_run, result=RunDifference)
