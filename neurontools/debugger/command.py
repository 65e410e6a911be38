"""`neurontools debug`: the debugger at a prompt, from a file of commands, or from a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_folder, read_text
from neurontools.command.lazy import command_app
from neurontools.command.options import (
    Act,
    HangTimeout,
    Inputs,
    InputsFrom,
    InstanceType,
    LaunchNumber,
    Lenient,
    Limit,
    Lnc,
    MaxInstructions,
    MaxTime,
    Nki,
    NodeCount,
    ProgramFile,
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
from neurontools.program.configuration import UNITS, RunConfiguration


class DebugResult(NamedTuple):
    """What one command of a session gave."""

    command: Annotated[str, "name of the command in full"]
    value: Annotated[
        Any,
        "what the method of Session of that name returns: its fields by name; arrays as dtype, shape, values; NaN and "
        "infinities as text; times in picoseconds",
    ]
    displays: Annotated[tuple[Any, ...], "what the expressions of `display` are, at a stop"] = ()


def debug(
    context: typer.Context,
    file: ProgramFile,
    arguments: ScriptArguments = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--commands",
            "-c",
            metavar="'A; B'",
            help="Run these commands and exit; may be given more than once, one after another.",
            show_default=False,
        ),
    ] = None,
    execute: Annotated[
        Path | None,
        typer.Option(
            "--execute", "-x", metavar="FILE", help="Run the commands in a file and exit.", show_default=False
        ),
    ] = None,
    cli: Annotated[
        bool, typer.Option("--cli", help="Open the prompt instead of the screen, also after --commands and --execute.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the screen in a browser on this machine (needs neurontools[web]).")
    ] = False,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="The address of --serve; others than loopback bring a warning."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="The port of --serve.")] = 8765,
    source_path: Annotated[
        list[Path] | None,
        typer.Option(
            "--source-path",
            metavar="DIR",
            help="Look for source files here too, by the ends of their paths.",
            show_default=False,
        ),
    ] = None,
    inputs: Inputs = None,
    inputs_from: InputsFrom = None,
    ranks: RankCount = None,
    instance: InstanceType = None,
    nodes: NodeCount = 1,
    launch: LaunchNumber = 1,
    target: TargetName = None,
    lnc: Lnc = None,
    seed: Seed = None,
    timing: Timing = True,
    nki: Nki = "auto",
    lenient: Lenient = False,
    schedule: Schedule = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let no command of the session write a file.")] = False,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Let commands from a browser write outside the working folder too.")
    ] = False,
    journal: Annotated[
        int, typer.Option("--journal", metavar="MB", min=0, help="Megabytes for going back in time; 0 for none.")
    ] = 500,
    checks: Annotated[
        list[str] | None,
        typer.Option(
            "--check", metavar="NAME", help="Run a check alongside (memcheck, …, all); repeatable.", show_default=False
        ),
    ] = None,
    act: Act = "exact",
    hang_timeout_ps: HangTimeout = None,
    max_steps: MaxInstructions = None,
    limit_ps: Limit = None,
    max_seconds: MaxTime = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document per command, each on a line.")] = False,
) -> None:
    """Step a kernel, a NEFF or an assembler program, and look inside.

    On a terminal this opens the screen: engines, queues, semaphores, source, maps of SBUF and PSUM, a timeline, and a
    command line below; ? shows the keys.  With --cli there is a prompt instead.

    A script runs as __main__ up to its first kernel launch, which is then debugged; what follows in it does not run.
    Commands are gdb's: step, stepi ENGINE, next, continue, until, break ENGINE:PC or FILE:LINE, info engines, x, print
    TENSOR[slice], list, disassemble, focus, help; unambiguous prefixes are enough, an empty line repeats, # begins a
    comment.  Breakpoints stop before the effect of an instruction.  reverse-step, reverse-next, reverse-continue and
    goto go back in time, last-write names who wrote a byte.  Breakpoints take conditions (break PE:12 if S[5] >= 3),
    ignore counts and commands; catch stops after NaN, Inf, transfers, faults and what the checks of --check find.

    --serve prints an address with a secret in it; who has it drives the session.  What commands write there (export,
    save-core, the screen itself) stays below the working folder unless --allow-writes is given, and an existing file
    is replaced only with -f, as on the screen of a terminal.

    --ranks N opens the screen, or a prompt, over N ranks of a machine, which meet in collectives: rank 5 chooses the
    one that commands go to, info ranks shows all, a breakpoint is on every rank (break WHERE rank 2: on one), moving
    one moves all, forwards and back, and why tells which ranks wait for each other; --check watches every rank.

    Source files are read below the folders of the program, the working folder, those of --source-path and those that
    NEURONTOOLS_SAFE_PATH lists, and nowhere else: a NEFF may name any file.

    Without a terminal, commands come from standard input.  With --commands, --execute or from a pipe the first command
    that fails ends the session with its exit status; the status is 5 when the execution faulted or hung.
    """
    with report("debug", json, file=file, arguments=arguments or None, target=target, seed=seed, inputs=inputs) as out:
        import sys  # deferred: start-up

        options = given(context)
        where = ranks_of(ranks, instance, nodes, options)
        if serve:
            from neurontools.tui.opening import serve as serve_screen  # deferred: start-up

            serve_screen(["debug", *_again(context)], host, port)
            return
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        from neurontools.debugger import opening as debugging  # deferred: start-up
        from neurontools.debugger.commands.carry_out import split_commands  # deferred: start-up
        from neurontools.debugger.repl import Line, Repl, script_lines  # deferred: start-up
        from neurontools.debugger.scripting import LARGEST  # deferred: start-up
        from neurontools.text.progress import waiting  # deferred: start-up

        lines = [Line(line) for text in commands or () for line in split_commands(text)]
        lines += script_lines(execute, read_text(execute, LARGEST)) if execute is not None else []
        configuration = RunConfiguration(
            tuple(arguments or ()), launch, target, lnc, inputs, inputs_from, seed, timing, act, hang_timeout_ps,
            max_steps, limit_ps, max_seconds, nki, checks=tuple(checks or ()), lenient=lenient, schedule=schedule,
            given=options,
        )  # fmt: skip
        with waiting(f"opening {file.name}"):
            if where is None:
                session = debugging.open_session(file, configuration, journal_bytes=journal * 1_000_000, aside=json)
                sessions = [session]
            else:
                from neurontools.debugger.opening_ranks import open_ranks  # deferred: start-up

                together = open_ranks(file, configuration, where, journal_bytes=journal * 1_000_000, aside=json)
                session, sessions = together.session, list(together.sessions.values())
        for each in sessions:
            each.folders = [*map(need_folder, source_path or ()), *each.folders]
            each.writing = each.writing._replace(read_only=read_only)
        batch = bool(commands) or execute is not None
        if not (batch or cli or json):
            from neurontools.tui import opening  # deferred: start-up

            if opening.wanted():
                folder = Path.cwd() if opening.served() and not allow_writes else None
                for each in sessions:
                    each.writing = each.writing._replace(folder=folder, kept=True)
                    if where is not None:
                        each.record()  # so that the timeline is whole where a rank is looked at later
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
        if parameter.name in ("serve", "host", "port") or value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "option":
            for each in value if isinstance(value, list | tuple) else [value]:
                yes, no = parameter.opts[0], [*parameter.secondary_opts, ""][0]
                unit = UNITS.get(parameter.name or "", "")
                words += [yes if each else no] if isinstance(each, bool) else [yes, f"{each}{unit}"]
    arguments = context.params.get("arguments") or []
    return [*words, str(context.params["file"]), *(["--", *arguments] if arguments else [])]


app = command_app(debug, result=DebugResult)
