"""`neurontools dap`: the debugger for editors, over standard input and output or a port of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurontools.command.lazy import command_app

if TYPE_CHECKING:
    from neurontools.debugger import Session

_HOST = "127.0.0.1"
# What a launch may say, by the name of its argument: the field of the run's configuration, and the kind of value.
LAUNCH: dict[str, tuple[str, type]] = {
    "args": ("arguments", list),
    "launch": ("launch", int),
    "target": ("target", str),
    "lnc": ("lnc", int),
    "inputs": ("inputs", str),
    "seed": ("seed", int),
    "timing": ("timing", bool),
    "act": ("act", str),
    "nki": ("nki", str),
    "lenient": ("lenient", bool),
    "schedule": ("schedule", bool),
    "checks": ("checks", list),
    "maxInstructions": ("max_steps", int),
    "maxTime": ("max_seconds", float),
}
# What else it may say; editors add words of their own, which are not looked at.
BESIDE: dict[str, type] = {"program": str, "journal": int, "sourcePath": list, "stopOnEntry": bool, "noDebug": bool}


def open_launch(arguments: dict[str, Any]) -> Session:
    """Return the session that a launch asks for; UsageError for arguments that make no sense."""
    from pathlib import Path  # deferred: start-up

    from formats.errors import NotFoundError  # deferred: start-up
    from neurontools.command.files import need_folder  # deferred: start-up
    from neurontools.debugger import UsageError  # deferred: start-up
    from neurontools.debugger.opening import JOURNAL_BYTES, open_session  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up

    kinds = {**{name: kind for name, (_, kind) in LAUNCH.items()}, **BESIDE}
    for name, kind in kinds.items():
        value = arguments.get(name)
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if value is not None and (not fits or (isinstance(value, bool) and kind is not bool)):
            raise UsageError(f"{name} of the launch is no {kind.__name__}")
    program = arguments.get("program")
    if not program:
        raise UsageError("the launch names no program")
    given: dict[str, Any] = {}
    for name, (field, kind) in LAUNCH.items():
        if arguments.get(name) is not None:
            given[field] = tuple(map(str, arguments[name])) if kind is list else arguments[name]
    size = arguments.get("journal")
    journal = JOURNAL_BYTES if size is None else size * 1_000_000
    if not Path(program).exists():
        raise NotFoundError(f"{program}: no such file")
    try:
        session = open_session(Path(program), RunConfiguration(**given), journal_bytes=journal, aside=True)
    except typer.BadParameter as error:
        raise UsageError(error.message) from None
    folders = [need_folder(Path(str(one))) for one in arguments.get("sourcePath") or ()]
    session.folders = [*folders, *session.folders]
    return session


def dap(
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, show_default=False,
                     help="Listen on this port of 127.0.0.1 for one editor; 0 finds a free one."),
    ] = None,
) -> None:  # fmt: skip
    """Serve the debugger to an editor, by the Debug Adapter Protocol.

    VS Code, nvim-dap, dape of Emacs and others start this and talk to it over standard input and output; with --port it
    listens on 127.0.0.1 for one of them, and says on standard error where.  A launch names `program`: a script, a NEFF,
    an assembler program, a recording or a core dump; and, if wanted, args, launch, inputs, seed, target, lnc, checks,
    journal, sourcePath, stopOnEntry.

    Threads are engines, frames the calls of the kernel's functions in one turn of its loops, exceptions faults, hangs,
    NaN and what checks find.  Step back, reverse-continue and goto go through time; the console takes every command of
    `neurontools debug`.
    """
    from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

    import_numpy()
    from neurontools.dap.serving import serve_port, serve_streams  # deferred: start-up

    if port is None:
        serve_streams(open_launch)
    else:
        serve_port(open_launch, _HOST, port)


app = command_app(dap)
