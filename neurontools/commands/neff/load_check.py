"""`neurontools neff load-check`: what the Neuron runtime would say to a NEFF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import ErrorExitCode, Json, NeffFile, Quiet, TargetName
from neurontools.exits import ExitStatus
from neurontools.files import open_neff_file
from neurontools.output import report

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.targets import Target


def load_check(
    file: NeffFile,
    target: TargetName = None,
    lnc: Annotated[
        int | None,
        typer.Option(
            "--lnc",
            metavar="N",
            min=1,
            max=2,
            show_default=False,
            help="NEURON_LOGICAL_NC_CONFIG; the chip's usual one (2 on trn2 and trn3) unless given.",
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option("--cores", metavar="N", min=0, help="Free logical cores.", show_default=False),
    ] = None,
    used: Annotated[
        int, typer.Option("--used-memory", metavar="MB", min=0, help="Device memory in use on the HBM stack already.")
    ] = 0,
    runtime: Annotated[
        str | None,
        typer.Option(
            "--runtime",
            metavar="VERSION",
            help="Version of aws-neuronx-runtime-lib, such as 2.31.24.0; the newest unless given.",
            show_default=False,
        ),
    ] = None,
    validate_hash: Annotated[bool, typer.Option("--validate-hash", help="As with NEURON_RT_VALIDATE_HASH=1.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Predict whether the Neuron runtime loads a NEFF.

    The checks come in the runtime's order, as far as it is known; the first that fails gives the status. What the file
    alone does not decide is open.  The exit status is 1 when the prediction is not NRT_SUCCESS.
    """
    from emulator.arch import ARCHS
    from formats.errors import FormatError
    from formats.targets import resolve_target
    from neurontools.load_check import Machine, parse_version
    from neurontools.load_check import load_check as found
    from neurontools.render.neff_load_check import load_check_lines

    with report(
        "neff load-check", json, quiet=quiet, file=file, target=target, lnc=lnc, cores=cores, runtime=runtime
    ) as out:
        neff = open_neff_file(file)
        chip = resolve_target(target) if target else _target_of(neff)
        try:
            version = parse_version(runtime) if runtime else None
        except FormatError as error:
            raise typer.BadParameter(str(error), param_hint="--runtime") from None
        usual = ARCHS[chip.name].lnc.whole if chip.name in ARCHS else 1
        machine = Machine(chip, lnc or usual, cores, used << 20, version, validate_hash)
        result = found(neff, machine)
        out.result = result
        out.lines = lambda: load_check_lines(file.name, result)
        if result["code"]:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


def _target_of(neff: Neff) -> Target:
    """Return the file's own target; of a file that does not say it, the newest that public files are for."""
    from formats.errors import FormatError
    from formats.targets import resolve_target

    try:
        return neff.target
    except FormatError:
        return resolve_target("trn2")


app = command_app(load_check)
