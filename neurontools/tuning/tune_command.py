"""`neurontools tune`: the fastest right variant of a script's kernels, by emulated time, without a device."""

from __future__ import annotations

import json as json_module
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_place
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Quiet, ScriptArguments, TargetName
from neurontools.command.output import report, write_whole
from neurontools.tuning.results import METHODS, Order, Trial, Tuned


def _values(text: str) -> tuple[str, tuple[Any, ...]]:
    """Return name and values of a --param; a value that is no JSON is a string."""
    name, equals, rest = text.partition("=")
    if not equals or not name.isidentifier() or not rest:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE,VALUE,...")
    found = []
    for one in rest.split(","):
        try:
            found.append(json_module.loads(one))
        except ValueError:
            found.append(one)
    return name, tuple(dict.fromkeys(found))


def _method(value: str) -> str:
    if value not in METHODS:
        raise typer.BadParameter(f"{value!r} is none of {', '.join(METHODS)}")
    return value


def _arguments(text: str) -> tuple[str, ...]:
    """Return the arguments of a --rung, as a shell splits them."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise typer.BadParameter(f"--rung {text!r}: {error}") from None


def _progress() -> Callable[[int, int, Trial | None], None] | None:
    """Return what counts trials on a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int, most: int, best: Trial | None) -> None:
        from formats.times import duration  # deferred: start-up

        shown = "none right yet" if best is None else f"best {duration(best.time_ps)}"
        print(f"\r{done} of {most} variants, {shown}  ", end="\r", file=sys.stderr, flush=True)

    return tell


def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A script that launches kernels.", show_default=False)],
    arguments: ScriptArguments = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=A,B,C",
            help="Values of a parameter that kernels of the script have; takes the place of what they declare.",
            show_default=False,
        ),
    ] = None,
    schedule: Annotated[
        bool,
        typer.Option(
            "--schedule",
            help="Try variants with and without operations that go ahead of others that wait, as run --schedule.",
        ),
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="NAME", callback=_method, help="climb, tpe (Optuna), halving, random or grid."
        ),
    ] = "climb",
    rung: Annotated[
        list[str] | None,
        typer.Option(
            "--rung",
            metavar="ARGS",
            help="Arguments that give the script a smaller problem, for halving; again for the next larger one.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            metavar="N",
            min=1,
            help="Variants to try, with halving on the first rung; by default a fifth of all, ten at least.",
            show_default=False,
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="NAME",
            help="Checks that a right variant passes: racecheck, memcheck, initcheck, synccheck or all.",
            show_default=False,
        ),
    ] = None,
    target: TargetName = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the search.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=256, help="Trials at a time.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Run trials on a Dask cluster: its scheduler's address, or local.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FOLDER",
            help="Keep every trial here as it comes, and go on from those that are there.",
            show_default=False,
        ),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option("--parquet", metavar="FILE", help="Write the trials as a table.", show_default=False),
    ] = None,
    max_seconds: Annotated[
        float, typer.Option("--trial-seconds", metavar="S", min=0.1, help="Budget of one trial on this machine.")
    ] = 600.0,
    max_megabytes: Annotated[
        int, typer.Option("--trial-megabytes", metavar="MB", min=64, help="Memory of one trial.")
    ] = 8192,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the fastest right variant of a script's kernels, by emulated time, without a device.

    Parameters are keywords of kernels, declared with `neurontools.tunable(NAME=VALUES)` or named by --param; calls that
    give them themselves are left alone.  With --schedule the order of operations is one as well.

    A variant is right when the script ends with status 0, so its own comparison with a reference decides, and when the
    checks of --tool find nothing serious.  Each is run in a process of its own.  Successive halving tries variants on
    the smallest problem, and the best third of each --rung on the next one.  The exit status is 1 when no variant is
    right.
    """
    with report(
        "tune", json, quiet=quiet, file=file, arguments=arguments, param=param, schedule=schedule or None,
        method=method, rung=rung, trials=trials, tool=tool, target=target, seed=seed, cluster=cluster, resume=resume,
        parquet=parquet,
    ) as out:  # fmt: skip
        from emulator.checks.registry import tools_of  # deferred: start-up
        from emulator.errors import InputError  # deferred: start-up
        from neurontools.tuning import tune as tuning  # deferred: start-up
        from neurontools.tuning import view  # deferred: start-up
        from neurontools.tuning.space import SCHEDULE  # deferred: start-up

        space, rungs = dict(map(_values, param or ())), tuple(map(_arguments, rung or ()))
        if (method == "halving") != bool(rungs):
            raise typer.BadParameter("--method halving goes with --rung ARGS, smaller problems, smallest first")
        if parquet is not None:
            need_place(parquet)
        if len(space) != len(param or ()):
            raise InputError("--param names a parameter twice")
        if schedule:
            space[SCHEDULE] = ("off", "on")
        order = Order(str(file), tuple(arguments or ()), target, tools_of(tuple(tool)) if tool else (), max_seconds,
                      max_megabytes)  # fmt: skip
        found = tuning.tune(order, space, method=method, most=trials, jobs=jobs, cluster=cluster, folder=resume,
                            seed=seed, rungs=rungs, tell=None if quiet else _progress())  # fmt: skip
        out.result = found
        out.lines = lambda: view.lines(found)
        if parquet is not None:
            from neurontools.profile.export.tables import write_parquet  # deferred: start-up

            rows = [{"state": one.state, "rung": one.rung, "time_ps": one.time_ps, "seconds": one.seconds,
                     "message": one.message,
                     **{f"param_{name}": str(value) for name, value in one.values.items()}}
                    for one in found.trials]  # fmt: skip
            with write_whole(parquet) as beside:
                write_parquet(rows, beside)
        if found.best is None:
            out.status = ExitStatus.FINDING


app = command_app(tune, Tuned)
