"""`neurontools debug`: the debugger at a prompt, from a file of commands, or from a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import (
    Act,
    HangTimeout,
    Lnc,
    Nki,
    ProgramFile,
    ScriptArguments,
    Seed,
    TargetName,
    Timing,
    check_act,
    check_nki,
    picoseconds,
)
from neurontools.output import report


def debug(
    context: typer.Context,
    file: ProgramFile,
    arguments: ScriptArguments = None,
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
    cli: Annotated[
        bool, typer.Option("--cli", help="Open the prompt instead of the screen, also after --commands and --execute.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the screen in a browser on this machine (needs neurontools[web]).")
    ] = False,
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="The port of --serve.")] = 8765,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", metavar="FILE", help="Inputs of a NEFF by name (.npz); zeros without.", show_default=False
        ),
    ] = None,
    target: TargetName = None,
    lnc: Lnc = None,
    seed: Seed = None,
    timing: Timing = True,
    nki: Nki = "auto",
    journal: Annotated[
        int, typer.Option("--journal", metavar="MB", min=0, help="Megabytes for going back in time; 0 for none.")
    ] = 500,
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check", metavar="NAME", help="Let a check run along (memcheck, …, all); repeatable.", show_default=False
        ),
    ] = None,
    act: Act = "exact",
    hang_timeout: HangTimeout = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document per command, each on a line.")] = False,
) -> None:
    """Step a kernel, a NEFF or an assembler program, and look inside.

    On a terminal this opens the screen: engines, queues, semaphores, source, maps of SBUF and PSUM, a timeline, and a
    command line below; ? shows the keys.  With --cli there is a prompt instead.

    A script runs as __main__ up to its first kernel launch, which is then debugged; what follows in it does not run.
    Commands are gdb's: step, stepi ENGINE, next, continue, until, break ENGINE:PC or FILE:LINE, info engines, x, print
    TENSOR[slice], list, disassemble, focus, help; unambiguous beginnings will do, an empty line repeats, # begins a
    comment.  Breakpoints stop before the effect of an instruction.  reverse-step, reverse-next, reverse-continue and
    goto go back in time, last-write names who wrote a byte.  Breakpoints take conditions (break PE:12 if S[5] >= 3),
    ignore counts and commands; catch stops behind NaN, Inf, transfers, faults and what the checks of --check find.

    Without a terminal, commands come from standard input.  With --commands, --execute or from a pipe the first command
    that fails ends the session with its exit status; the status is 5 when the execution faulted or hung.
    """
    check_nki(nki)
    with report("debug", json, file=file, arguments=arguments or None, target=target, seed=seed, inputs=inputs) as out:
        import sys

        if serve:
            from neurontools.tui.opening import serve as serve_screen

            serve_screen(["debug", *_again(context)], port)
            return
        from neurontools import debugging
        from neurontools.files import read_text
        from neurontools.repl import Repl, split_commands
        from neurontools.uninterrupted import import_numpy

        import_numpy()
        lines = split_commands(commands) if commands is not None else []
        lines += read_text(execute).splitlines() if execute is not None else []
        wanted = debugging.Request(file, arguments or [], inputs, target, lnc, seed, timing, nki, json, journal,
                                   tuple(check or ()), picoseconds(hang_timeout, "--hang-timeout"),
                                   check_act(act))  # fmt: skip
        session = debugging.open_session(wanted)
        batch = commands is not None or execute is not None
        if not (batch or cli or json):
            from neurontools.tui import opening

            if opening.wanted():
                opening.open_screen(session, file.name, session.notes)
                return
        out.streamed = True
        for text in session.notes:
            out.warn(text)
        repl = Repl(session, as_json=json, inputs=out.inputs, warnings=out.warnings)
        if batch:
            out.status = repl.batch(lines)
        if (cli or not batch) and not out.status and not repl.ended:
            out.status = repl.interact() if sys.stdin.isatty() else repl.piped(sys.stdin)


def _again(context: typer.Context) -> list[str]:
    """Return the command line of a context without the options of --serve."""
    words: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in ("serve", "port") or value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "option":
            for each in value if isinstance(value, list | tuple) else [value]:
                yes, no = parameter.opts[0], [*parameter.secondary_opts, ""][0]
                words += [yes if each else no] if parameter.is_flag else [yes, str(each)]
    arguments = context.params.get("arguments") or []
    return [*words, str(context.params["file"]), *(["--", *arguments] if arguments else [])]


app = command_app(debug)
