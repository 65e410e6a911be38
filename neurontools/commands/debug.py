"""`neurontools debug`: the debugger at a prompt, from a file of commands, or from a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import TargetName
from neurontools.output import report


def debug(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A Python script, a NEFF, or a .s program.", show_default=False)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments of the script.", show_default=False)
    ] = None,
    commands: Annotated[
        str | None,
        typer.Option(
            "--commands", "-c", metavar="'A; B'", help="Carry out these commands and exit.", show_default=False
        ),
    ] = None,
    execute: Annotated[
        Path | None,
        typer.Option(
            "--execute", "-x", metavar="FILE", help="Carry out the commands in a file and exit.", show_default=False
        ),
    ] = None,
    cli: Annotated[bool, typer.Option("--cli", help="Open the prompt, also after --commands and --execute.")] = False,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", metavar="FILE", help="Inputs of a NEFF by name (.npz); zeros without.", show_default=False
        ),
    ] = None,
    target: TargetName = None,
    lnc: Annotated[
        int | None,
        typer.Option(
            "--lnc",
            metavar="N",
            min=1,
            max=2,
            help="Physical cores per logical core, for kernels launched without [n].",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="Permute equal times and jitter latencies, to shake out races.",
            show_default=False,
        ),
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing/--no-timing", help="Model the time of every instruction and transfer.")
    ] = True,
    nki: Annotated[
        str,
        typer.Option(
            "--nki", metavar="WHICH", help="Which nki package scripts import: auto, neurontools or installed."
        ),
    ] = "auto",
    journal: Annotated[
        int, typer.Option("--journal", metavar="MB", min=0, help="Megabytes for going back in time; 0 for none.")
    ] = 500,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document per command, each on a line.")] = False,
) -> None:
    """Step a kernel, a NEFF or an assembler program, and look inside.

    A script runs as __main__ up to its first kernel launch, which is then debugged; what follows in it does not run.
    Commands are gdb's: step, stepi ENGINE, next, continue, until, break ENGINE:PC or FILE:LINE, info engines, x, print
    TENSOR[slice], list, disassemble, focus, help; unambiguous beginnings will do, an empty line repeats, # begins a
    comment.  Breakpoints stop before the effect of an instruction.  reverse-step, reverse-next, reverse-continue and
    goto go back in time, last-write names who wrote a byte.

    Without a terminal, commands come from standard input.  With --commands, --execute or from a pipe the first command
    that fails ends the session with its exit status; the status is 5 when the execution faulted or hung.
    """
    if nki not in ("auto", "neurontools", "installed"):
        raise typer.BadParameter(f"{nki!r} is none of auto, neurontools, installed", param_hint="--nki")
    with report("debug", json, file=file, arguments=arguments or None, target=target, seed=seed, inputs=inputs) as out:
        import sys

        from neurontools import debugging
        from neurontools.files import read_text
        from neurontools.repl import Repl, split_commands
        from neurontools.uninterrupted import import_numpy

        import_numpy()
        lines = split_commands(commands) if commands is not None else []
        lines += read_text(execute).splitlines() if execute is not None else []
        wanted = debugging.Request(file, arguments or [], inputs, target, lnc, seed, timing, nki, json, journal)
        session = debugging.open_session(wanted)
        out.streamed = True
        for text in session.notes:
            out.warn(text)
        repl = Repl(session, as_json=json, inputs=out.inputs, warnings=out.warnings)
        batch = commands is not None or execute is not None
        if batch:
            out.status = repl.batch(lines)
        if (cli or not batch) and not out.status and not repl.ended:
            out.status = repl.interact() if sys.stdin.isatty() else repl.piped(sys.stdin)


app = command_app(debug)
