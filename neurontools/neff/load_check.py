"""`neurontools neff load-check`: what the Neuron runtime would say to a NEFF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError
from formats.targets import resolve_target
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, NeffFile, Quiet, TargetName
from neurontools.command.output import report
from neurontools.neff.captured_memory import runtime_version
from neurontools.neff.load_checks import LoadPrediction, Machine, MemoryRow, parse_version, predict
from neurontools.ntff.capture import capture_of
from neurontools.text.table import bytes_text, table

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.targets import Target


def view(name: str, found: LoadPrediction) -> list[str]:
    """Return the verdict, the checks and the memory for people."""
    machine = found.machine
    lines = [
        f"{name} on {machine.target}, LNC {machine.lnc}, runtime {machine.runtime or 'newest'}: "
        f"{found.status} ({found.code})"
    ]
    if found.reason:
        lines.append(f"  {found.reason}")
    checks = [[one.name, one.outcome, one.message, one.provenance] for one in found.checks]
    lines += ["", *table(["check", "outcome", "what", "known by"], checks)]
    sources = dict.fromkeys(one.cite for one in found.checks if one.outcome != "pass")
    lines += [f"  source: {cite}" for cite in sources]
    if found.memory:
        captured = any(one.captured is not None for one in found.memory)
        rows = [[one.name, one.bytes, *([one.captured, _ratio(one)] if captured else []), one.provenance]
                for one in found.memory if one.bytes or one.captured]  # fmt: skip
        beside = ["captured", "ratio"] if captured else []
        lines += ["", *table(["device memory", "bytes", *beside, "known by"], rows)]
        of = f" of {bytes_text(found.memory_limit)}" if found.memory_limit else ""
        lines.append(f"{bytes_text(found.memory_total)}{of}, and what the runtime takes for itself")
    return lines


def _ratio(one: MemoryRow) -> str:
    return f"{one.bytes / one.captured:.2f}" if one.captured else "-"


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
    capture: Annotated[
        Path | None,
        typer.Option(
            "--capture",
            metavar="NTFF",
            help="A profile capture of the file: its memory records are shown beside, its runtime is the one meant.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Predict whether the Neuron runtime loads a NEFF.

    The checks come in the runtime's order, as far as it is known; the first that fails gives the status. What the file
    alone does not decide is open.  The exit status is 1 when the prediction is not NRT_SUCCESS.
    """
    from emulator.arch import ARCHS  # deferred: start-up

    with report(
        "neff load-check", json, quiet=quiet, file=file, target=target, lnc=lnc, cores=cores, runtime=runtime,
        capture=capture,
    ) as out:  # fmt: skip
        neff = open_neff_file(file)
        chip = resolve_target(target) if target else _target_of(neff)
        try:
            version = parse_version(runtime) if runtime else None
        except FormatError as error:
            raise typer.BadParameter(str(error), param_hint="--runtime") from None
        ntff = None
        if capture is not None:
            ntff, odd = capture_of(neff, capture)
            out.warn(*odd)
            version = version or runtime_version(ntff)
        usual = ARCHS[chip.name].lnc.whole if chip.name in ARCHS else 1
        found = predict(neff, Machine(chip, lnc or usual, cores, used << 20, version, validate_hash), ntff)
        out.result = found
        out.lines = lambda: view(file.name, found)
        if found.code:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


def _target_of(neff: Neff) -> Target:
    """Return the file's own target; for a file that does not name it, the newest that public files are for."""
    try:
        return neff.target
    except FormatError:
        return resolve_target("trn2")


app = command_app(load_check, result=LoadPrediction)
