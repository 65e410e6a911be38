"""`neurontools profile run`: time by engine and line, the critical path, advice, and exports for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    Act,
    HangTimeout,
    Inputs,
    InputsFrom,
    InstanceType,
    Json,
    LaunchNumber,
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
    TargetName,
    given,
    ranks_of,
)
from neurontools.command.output import report
from neurontools.profile.ranked.results import RanksProfile
from neurontools.profile.results import Profile
from neurontools.program.configuration import RunConfiguration


def run(
    context: typer.Context,
    file: ProgramFile,
    arguments: ScriptArguments = None,
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="text, json, perfetto, chrome, csv or parquet (a folder)."),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the profile there.", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="Compare with another program, or with a profile saved as JSON, line by line.",
            show_default=False,
        ),
    ] = None,
    what_if: Annotated[
        str | None,
        typer.Option(
            "--what-if",
            metavar="CHANGE",
            help="Run the schedule again under other costs, such as dma=2x,pe_clock=2.8 or kernel.py:12=0.",
            show_default=False,
        ),
    ] = None,
    advice: Annotated[
        bool, typer.Option("--advice/--no-advice", help="Look for what would save time; runs the schedule again.")
    ] = True,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Lines and links that the text shows.")] = 10,
    ranks: RankCount = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            metavar="N",
            min=0,
            help="With --ranks: whose engines are shown; without, those of the slowest.",
            show_default=False,
        ),
    ] = None,
    launch: LaunchNumber = 1,
    target: TargetName = None,
    lnc: Lnc = None,
    inputs: Inputs = None,
    inputs_from: InputsFrom = None,
    act: Act = "exact",
    hang_timeout_ps: HangTimeout = None,
    max_steps: MaxInstructions = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    nki: Nki = "auto",
    lenient: Lenient = False,
    schedule: Schedule = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show where the time goes, and what would save some of it.

    The program runs on the emulator, whose times are a model: `is_simulation` is set wherever the format has a place
    for it.  The text has what every engine did and waited for, DMA and roofline, the critical path, which takes exactly
    as long as the run, the source lines by their part of it, and advice: each with the time that the schedule takes
    less when it is run again without the flaw.

    --what-if takes dma, dma_latency, dma_bandwidth, hbm, semaphore, an engine (pe, vector, scalar, gpsimd, sync), an
    opcode or FILE:LINE, each =Nx for N times as fast or =0 for no time at all, and the clocks pe_clock, vector_clock,
    scalar_clock and gpsimd_clock, as Nx or in GHz.

    --ranks N runs the program on N ranks of a machine: what each took, computed, and waited for others; every
    collective with who called it last, what compute hides of it and what is exposed; the links between ranks; and the
    critical path over all of them.  --against and --what-if compare such runs; advice is for one program alone.
    """
    from neurontools.profile import profiling  # deferred: start-up

    if form not in profiling.FORMATS:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(profiling.FORMATS)}", param_hint="--format")
    if form in ("perfetto", "parquet") and output is None:
        raise typer.BadParameter(f"{form} is not text: say where with --output FILE", param_hint="--format")
    if json and form not in ("text", "json"):
        raise typer.BadParameter(f"--format {form} is another one", param_hint="--json")
    json = json or (form == "json" and output is None)
    options = given(context)
    where = ranks_of(ranks, instance, nodes, options, alone=("rank",))
    if where is not None and "advice" in options:
        raise typer.BadParameter("goes without --ranks: advice runs the schedule of one program again",
                                 param_hint=options["advice"])  # fmt: skip
    with report(
        "profile run", json, quiet=quiet, file=file, arguments=arguments or None, format=form, output=output,
        against=against, what_if=what_if, launch=launch, target=target, lnc=lnc, inputs=inputs, ranks=ranks,
        instance=instance,
    ) as out:  # fmt: skip
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        if output is not None and not (form in ("csv", "parquet") and output.is_dir()):
            need_place(output)
        configuration = RunConfiguration(
            tuple(arguments or ()), launch, target, lnc, inputs, inputs_from, act=act,
            hang_timeout_ps=hang_timeout_ps, max_steps=max_steps, limit_ps=limit_ps, max_seconds=max_seconds, nki=nki,
            lenient=lenient, schedule=schedule, given=options,
        )  # fmt: skip
        wanted = profiling.Wanted(file, configuration, form, output, against, what_if, advice, top)
        if where is None:
            profiling.profile(wanted, out)
        else:
            from neurontools.profile.ranked.profiling import profile_ranks  # deferred: start-up

            profile_ranks(wanted, where, rank, out)


app = command_app(run, result=Profile | RanksProfile, default=True)
