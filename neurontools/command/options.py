"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from emulator.runtime.ranks import Ranks

__all__ = [
    "Act", "ErrorExitCode", "HangTimeout", "Inputs", "InputsFrom", "InstanceType", "Json", "LaunchNumber", "Lenient",
    "Limit", "Lnc", "MaxInstructions", "MaxTime", "NeffFile", "Nki", "NodeCount", "ProgramFile", "Quiet", "RankCount",
    "Schedule", "ScriptArguments", "Seed", "SubgraphNumber", "TargetName", "Timing", "complete_target", "given",
    "ranks_of",
]  # fmt: skip


def complete_target(incomplete: str) -> list[str]:
    """Return the chip names that start with what was typed."""
    return [name for name in ("trn1", "inf2", "trn2", "trn3") if name.startswith(incomplete)]


def _one_of(*names: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is none of {', '.join(names)}")
        return value

    return check


def _picoseconds(text: str) -> int:
    from neurontools.debugger.names import parse_time  # deferred: start-up

    time_ps = parse_time(text)
    if not time_ps:
        raise typer.BadParameter(f"{text!r} is no time such as 5us or 1ms")
    return time_ps


def _picoseconds_or_none(text: str) -> int:
    return 0 if text.strip() == "0" else _picoseconds(text)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", text.strip())
    if found is None or not (found[2] or float(found[1]) == 0):
        raise typer.BadParameter(f"{text!r} is no time such as 500ms, 30s or 10m")
    return float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 0.0}[found[2]]


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
        callback=_one_of("exact", "table"),
        help="Activation functions: exact, or table for the piecewise polynomials of a NEFF that has them.",
    ),
]
HangTimeout = Annotated[
    int | None,
    typer.Option(
        "--hang-timeout",
        metavar="TIME",
        parser=_picoseconds,
        help="An engine that waits longer than this emulated time (5us, 1ms) is a hang, though others still move.",
        show_default=False,
    ),
]
MaxInstructions = Annotated[
    int | None,
    typer.Option(
        "--max-instructions",
        metavar="N",
        min=0,
        help="Stop after so many completed instructions and transfers; 0: never.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="TIME",
        parser=_picoseconds_or_none,
        help="Stop after so much emulated time (5us, 1ms); 0: never.",
        show_default=False,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="TIME",
        parser=_seconds,
        help="Stop after so much of this machine's time (30s, 10m) for one execution; 0: never.",
        show_default=False,
    ),
]
ProgramFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A Python script, a NEFF, a .s program, or a recording.", show_default=False),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="FILE",
        help="Inputs of a NEFF by name (.npz), or zeros, or random or random:SEED; zeros without.",
        show_default=False,
    ),
]
InputsFrom = Annotated[
    Path | None,
    typer.Option(
        "--inputs-from",
        metavar="DIR",
        help="Inputs of a NEFF as the Neuron runtime dumps them on errors: input0, input1, …, model_name.txt.",
        show_default=False,
    ),
]
RankCount = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        metavar="N",
        min=1,
        help="Run on N ranks of a machine that meet in collectives; {rank} in names of files is the number of the "
        "rank. A script runs once for each, with RANK and WORLD_SIZE in its environment.",
        show_default=False,
    ),
]
InstanceType = Annotated[
    str | None,
    typer.Option(
        "--instance",
        metavar="TYPE",
        help="With --ranks: the instance type; without, the usual one of the program's chip.",
        show_default=False,
    ),
]
NodeCount = Annotated[
    int, typer.Option("--nodes", metavar="N", min=1, help="With --ranks: so many instances, joined by EFA.")
]
LaunchNumber = Annotated[int, typer.Option("--launch", metavar="N", min=1, help="Which launch of a script, from 1.")]
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
Timing = Annotated[bool, typer.Option("--timing/--no-timing", help="Model the time of every instruction and transfer.")]
Nki = Annotated[
    str,
    typer.Option(
        "--nki",
        metavar="WHICH",
        callback=_one_of("auto", "neurontools", "installed"),
        help="Which nki package scripts import: auto, neurontools or installed.",
    ),
]
Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Only warn where a kernel breaks a limit of partitions or capacity, which AWS's simulator does not check; "
        "what then does not fit is an error still. NEURONTOOLS_LENIENT=1 does the same.",
    ),
]
Schedule = Annotated[
    bool,
    typer.Option(
        "--schedule",
        help="Let operations of kernels go ahead of others that wait, as AWS's compiler does; results are the same. "
        "NEURONTOOLS_SCHEDULE=on does the same.",
    ),
]
SubgraphNumber = Annotated[
    int, typer.Option("--subgraph", "-g", metavar="N", min=0, help="Subgraph: with LNC 2, one per physical core.")
]


def given(context: typer.Context, side: str = "") -> dict[str, str]:
    """Return how the command line spelled each option that it gave, by the name of the function's parameter.

    Of a command that compares two runs `side` is "a" or "b": the options of that side, without the suffix, and those
    that both share.
    """
    found = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if parameter.param_type_name != "option" or source is None or source.name != "COMMANDLINE":
            continue
        spellings = parameter.opts if context.params.get(name) is not False else parameter.secondary_opts
        if side and name.endswith(("_a", "_b")):
            if not name.endswith(f"_{side}"):
                continue
            name = name.removesuffix(f"_{side}")
        found[name] = (spellings or parameter.opts)[0]
    return found


def ranks_of(
    ranks: int | None, instance: str | None, nodes: int, given: Mapping[str, str], alone: tuple[str, ...] = ()
) -> Ranks | None:
    """Return on what a program runs, None where it runs alone; BadParameter for options that mean nothing then.

    Those are that of the instance, of nodes, and what else the command names.
    """
    if ranks is None:
        for name in ("instance", "nodes", *alone):
            if name in given:
                raise typer.BadParameter("goes with --ranks", param_hint=given[name])
        return None
    from emulator.runtime.ranks import Ranks  # deferred: start-up

    return Ranks(ranks, instance, nodes)
