"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Act", "ErrorExitCode", "HangTimeout", "Json", "Lnc", "NeffFile", "Nki", "ProgramFile", "Quiet",
    "ScriptArguments", "Seed", "SubgraphNumber", "TargetName", "Timing", "check_act", "check_nki",
    "complete_target", "picoseconds",
]  # fmt: skip


def complete_target(incomplete: str) -> list[str]:
    """Return the chip names that start with what was typed."""
    return [name for name in ("trn1", "inf2", "trn2", "trn3") if name.startswith(incomplete)]


NeffFile = Annotated[Path, typer.Argument(metavar="FILE", help="A NEFF.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no report; the exit status tells.")]
ErrorExitCode = Annotated[
    int | None,
    typer.Option(
        "--error-exitcode",
        metavar="N",
        min=0,
        max=255,
        help="Exit with N instead of the usual status when something was found.",
        show_default=False,
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="CHIP",
        autocompletion=complete_target,
        help="trn1, inf2, trn2 or trn3; a generation (gen2, gen3, gen4) or an architecture code will do too.",
        show_default=False,
    ),
]
Act = Annotated[
    str,
    typer.Option(
        "--act",
        metavar="HOW",
        help="Activation functions: exact, or table for the piecewise polynomials of a NEFF that has them.",
    ),
]
HangTimeout = Annotated[
    str | None,
    typer.Option(
        "--hang-timeout",
        metavar="TIME",
        help="An engine that waits longer than this emulated time (5us, 1ms) is a hang, though others still move.",
        show_default=False,
    ),
]
ProgramFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A Python script, a NEFF, or a .s program.", show_default=False)
]
ScriptArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments of the script.", show_default=False)
]
Lnc = Annotated[
    int | None,
    typer.Option(
        "--lnc",
        metavar="N",
        min=1,
        max=2,
        help="Physical cores per logical core, for kernels launched without [n].",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Permute equal times and jitter latencies, to shake out races.",
        show_default=False,
    ),
]
Timing = Annotated[
    bool, typer.Option("--timing/--no-timing", help="Model the time of every instruction and transfer.")
]
Nki = Annotated[
    str,
    typer.Option("--nki", metavar="WHICH", help="Which nki package scripts import: auto, neurontools or installed."),
]
SubgraphNumber = Annotated[
    int, typer.Option("--subgraph", "-g", metavar="N", min=0, help="Subgraph: with LNC 2, one per physical core.")
]


def picoseconds(text: str | None, option: str) -> int | None:
    """Return the time that an option's text means; BadParameter where it means none."""
    if text is None:
        return None
    from emulator.session.names import parse_time

    time_ps = parse_time(text)
    if not time_ps:
        raise typer.BadParameter(f"{text!r} is no time such as 5us or 1ms", param_hint=option)
    return time_ps


def check_act(how: str) -> str:
    """Return how activation functions are to be computed; BadParameter for what is neither."""
    if how not in ("exact", "table"):
        raise typer.BadParameter(f"{how!r} is none of exact, table", param_hint="--act")
    return how


def check_nki(which: str) -> None:
    """Refuse a name that is none of the packages a script can import."""
    if which not in ("auto", "neurontools", "installed"):
        raise typer.BadParameter(f"{which!r} is none of auto, neurontools, installed", param_hint="--nki")
