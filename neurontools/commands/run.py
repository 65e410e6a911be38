"""`neurontools run`: a script with kernels, an assembler program or a NEFF, on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import (
    Act,
    ErrorExitCode,
    HangTimeout,
    Json,
    Lnc,
    Nki,
    ProgramFile,
    Quiet,
    ScriptArguments,
    Seed,
    TargetName,
    Timing,
    check_act,
    check_nki,
    picoseconds,
)
from neurontools.exits import ExitStatus
from neurontools.files import need_place
from neurontools.output import report


def run(
    file: ProgramFile,
    arguments: ScriptArguments = None,
    target: TargetName = None,
    lnc: Lnc = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="Inputs of a NEFF by name (.npz).", show_default=False),
    ] = None,
    inputs_from: Annotated[
        Path | None,
        typer.Option(
            "--inputs-from",
            metavar="DIR",
            help="Inputs of a NEFF as the Neuron runtime dumps them on errors: input0, input1, …, model_name.txt.",
            show_default=False,
        ),
    ] = None,
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
    act: Act = "exact",
    hang_timeout: HangTimeout = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Compare tensors, and tiles by the names of kernel variables, with an .npz; of a script, those of "
            "its first launch. Names the first instruction whose result is wrong; the exit status is 1 then.",
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
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Run a script with NKI kernels, or a NEFF, on the emulator.

    A script runs as __main__ with the arguments after `--`; `import nki` gives this toolkit's package, and the
    script's own exit status passes through.  A NEFF takes its inputs from --inputs and reports outputs, time and
    faults.  The exit status is 5 when an execution faulted or hung.
    """
    check_nki(nki)
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
    ) as out:
        from neurontools import running
        from neurontools.uninterrupted import import_numpy

        import_numpy()
        for path in (outputs, save_neff, record):
            if path is not None:
                need_place(path)
        wanted = running.Request(
            file, arguments or [], target, lnc, inputs, outputs, save_neff, seed, timing, nki,
            picoseconds(hang_timeout, "--hang-timeout"), dump_dir, inputs_from, check_act(act), record,
        )  # fmt: skip
        if inputs_from is not None and (file.suffix == ".py" or inputs is not None or against is not None):
            raise typer.BadParameter("goes with a NEFF, without --inputs or --against", param_hint="--inputs-from")
        if file.suffix == ".py" and inputs is not None:
            raise typer.BadParameter("a script makes its own inputs; --inputs is for a NEFF", param_hint="--inputs")
        if against is not None:
            from neurontools import differing

            if outputs is not None or save_neff is not None:
                raise typer.BadParameter("writes nothing but its report", param_hint="--against")
            out.inputs["against"] = str(against)
            choice = differing.Choice(file, tuple(arguments or ()), target, seed, lnc, inputs, timing, nki)
            differing.against(choice, against, rtol, atol, out)
        elif file.suffix == ".py":
            running.run_kernels(wanted, out)
        else:
            if arguments:
                raise typer.BadParameter("only a script takes arguments", param_hint="ARGS")
            running.run_file(wanted, out)
        if out.status is ExitStatus.FAULT or (against is not None and out.status is ExitStatus.FINDING):
            out.exit_code = error_exitcode


app = command_app(run)
