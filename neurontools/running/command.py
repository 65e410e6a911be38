"""`neurontools run`: a script with kernels, an assembler program or a NEFF, on the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_place
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
from neurontools.divergence.results import GoldenRun, GraphRun
from neurontools.program.configuration import RunConfiguration
from neurontools.running.ranked_results import RankedRun, RankedScriptRun
from neurontools.running.results import ProgramRun, ScriptRun


def run(
    context: typer.Context,
    file: ProgramFile,
    arguments: ScriptArguments = None,
    target: TargetName = None,
    lnc: Lnc = None,
    inputs: Inputs = None,
    inputs_from: InputsFrom = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--outputs",
            metavar="FILE",
            help="Write the outputs by name (.npz); of a script, those of the last launch.",
            show_default=False,
        ),
    ] = None,
    save_neff: Annotated[
        Path | None,
        typer.Option(
            "--save-neff",
            metavar="FILE",
            help="Write the NEFF that ran; a script's second launch goes to FILE-2, and so on.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    timing: Timing = True,
    nki: Nki = "auto",
    lenient: Lenient = False,
    schedule: Schedule = False,
    act: Act = "exact",
    hang_timeout_ps: HangTimeout = None,
    max_steps: MaxInstructions = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE|hlo",
            help="Compare tensors, and tiles by the names of kernel variables, with an .npz; of a script, those of "
            "its first launch. Names the first instruction whose result is wrong; the exit status is 1 then. With the "
            "word hlo, compare each operation of a compiled graph with the reference interpreter.",
            show_default=False,
        ),
    ] = None,
    rtol: Annotated[float, typer.Option("--rtol", metavar="X", min=0, help="Relative tolerance of --against.")] = 1e-3,
    atol: Annotated[float, typer.Option("--atol", metavar="X", min=0, help="Absolute tolerance of --against.")] = 1e-5,
    dump_dir: Annotated[
        Path | None,
        typer.Option(
            "--dump-dir",
            metavar="DIR",
            help="Have neuron-dump write a dump below DIR on a fault or hang; without it, "
            "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY and NEURON_RT_S3_CORE_DUMP_PREFIX decide.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Record the run, for `neurontools debug FILE`; further launches of a script go to FILE-2, FILE-3.",
            show_default=False,
        ),
    ] = None,
    ranks: RankCount = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
    time_only: Annotated[
        bool,
        typer.Option(
            "--time-only",
            help="With --ranks, of NEFFs: only the times, no data. Ranks that go the same way are emulated once, where "
            "data decide nothing.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="With --ranks: spread them over the workers of a Dask cluster: its scheduler's address, or local.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Run a script with NKI kernels, or a NEFF, on the emulator.

    A script runs as __main__ with the arguments after `--`; `import nki` gives this toolkit's package, and the
    script's own exit status passes through.  A NEFF takes its inputs from --inputs and reports outputs, time and
    faults.  The exit status is 5 when an execution faulted or hung.
    """
    options = given(context)
    with report(
        "run",
        json,
        quiet=quiet,
        file=file,
        arguments=arguments or None,
        target=target,
        lnc=lnc,
        seed=seed,
        inputs=inputs,
        inputs_from=inputs_from,
        outputs=outputs,
        ranks=ranks,
        instance=instance,
        cluster=cluster,
    ) as out:
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up
        from neurontools.running import files as running  # deferred: start-up

        import_numpy()
        # Before the run, which may take hours, and not when its results are to be written.
        for path in (outputs, save_neff, record):
            if path is not None:
                need_place(path)
        configuration = RunConfiguration(
            tuple(arguments or ()), target=target, lnc=lnc, inputs=inputs, inputs_from=inputs_from, seed=seed,
            timing=timing, act=act, hang_timeout_ps=hang_timeout_ps, max_steps=max_steps, limit_ps=limit_ps,
            max_seconds=max_seconds, nki=nki, dump_dir=dump_dir, record=record, lenient=lenient, schedule=schedule,
            given=options,
        )  # fmt: skip
        where = ranks_of(ranks, instance, nodes, options)
        if where is None:
            _refuse(options, "goes with --ranks", ("time_only", "cluster"))
        if where is not None:
            from neurontools.running.ranked import run_ranked, time_ranked  # deferred: start-up

            _refuse(options, "goes without --ranks", ("against", "rtol", "atol"))
            if time_only:
                _refuse(options, "--time-only has times and no data", ("outputs", "save_neff", "dump_dir", "cluster"))
                time_ranked(file, configuration, where, out)
            else:
                if cluster is not None:
                    _refuse(options, "dumps are of ranks in this process, not of those on a --cluster", ("dump_dir",))
                run_ranked(file, configuration, where, running.Kept(outputs, save_neff), out, cluster)
        elif against is not None:
            from neurontools.divergence import differing  # deferred: start-up

            _refuse(options, "--against writes nothing but its report", _WRITTEN)
            out.inputs["against"] = str(against)
            if str(against) == "hlo":
                # The interpreter's own tolerances are by type; the defaults of these options are float32's.
                chosen = (rtol, atol) if {"rtol", "atol"} & set(options) else None
                differing.against_graph(file, configuration, chosen, out)
            else:
                differing.against(file, configuration, against, rtol, atol, out)
        else:
            _refuse(options, "goes with --against", _OF_AGAINST)
            running.run_any(file, configuration, running.Kept(outputs, save_neff), out)
        # --error-exitcode is about the program: a file that cannot be read keeps its own status.
        if out.status is ExitStatus.FAULT or (against is not None and out.status is ExitStatus.FINDING):
            out.exit_code = error_exitcode


_WRITTEN = ("outputs", "save_neff", "dump_dir", "record")
_OF_AGAINST = ("rtol", "atol")


def _refuse(options: Mapping[str, str], why: str, names: tuple[str, ...]) -> None:
    """Refuse options that mean nothing together with the others."""
    for name in names:
        if name in options:
            raise typer.BadParameter(why, param_hint=options[name])


app = command_app(run, result=ProgramRun | ScriptRun | GoldenRun | GraphRun | RankedRun | RankedScriptRun)
