"""The command line: the root of all commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import json
import os
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from neurontools.command.errors_to_exit import classify, is_usage_error
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import LazyGroup
from neurontools.command.output import current_report, envelope, note
from neurontools.command.streams import settle
from neurontools.text.visible import json_text
from neurontools.version import __version__

__all__ = ["app", "main"]

ONE_LINE_DOCUMENTS = ("debug",)  # they print a document per line, also where they end with an error


class Root(LazyGroup):
    """The top of the tree; it also sees to it that a closed pipe ends quietly."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the command line; `--help` and `--version` print here, before there is anything to invoke."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            raise _closed_pipe() from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with its output flushed while a broken pipe can still be told from success."""
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _closed_pipe() from None
        return value


def _closed_pipe() -> typer.Exit:
    _silence_stdout()
    return typer.Exit(ExitStatus.BROKEN_PIPE)


def _silence_stdout() -> None:
    """Send what is left in the buffer nowhere: the interpreter would flush it again at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Inspect, run and step AWS Neuron executables and NKI kernels without Neuron hardware.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"neurontools {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit status; no error leaves this function."""
    _prepare_streams()
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    finally:
        settle()


def _run(arguments: list[str]) -> int:
    try:
        status = typer.main.get_command(app).main(args=list(arguments), prog_name="neurontools", standalone_mode=False)
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except Exception as error:  # noqa: BLE001  the funnel: what is not known here is our bug, and is said to be
        return _fail(error, arguments)
    return status if isinstance(status, int) else ExitStatus.OK


def _prepare_streams() -> None:
    """Give a process that was started without standard streams empty ones; Python leaves None in their places.

    Characters that the encoding of standard output does not have are replaced: the rest is worth more than an error. So
    are bytes that are no text among the commands of a debugger, where the one line is refused by its name then.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  as long as the process
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    if isinstance(sys.stdin, TextIOWrapper) and sys.stdin.errors == "strict":
        sys.stdin.reconfigure(errors="replace")


def _fail(error: Exception, arguments: list[str]) -> int:
    failure = classify(error)
    if failure.status is ExitStatus.BUG and os.environ.get("NEURONTOOLS_DEBUG"):
        raise error
    mine = current_report()
    if (mine is not None and mine.as_json) or (mine is None and "--json" in arguments):
        command, inputs, warnings = _context(error) if mine is None else (mine.command, mine.inputs, mine.warnings)
        document = envelope(
            command,
            inputs,
            int(failure.status),
            warnings,
            error={"kind": failure.kind, "message": failure.message, **_place(error)},
        )
        try:
            indent = None if command in ONE_LINE_DOCUMENTS else 2
            print(json_text(json.dumps(document, indent=indent, default=str)), flush=True)
        except OSError:  # a full disk behind standard output, maybe the very error that is told here
            _silence_stdout()
            note(f"neurontools: {failure.message}")
    else:
        asked_nothing = failure.message.startswith("Usage:")  # a group without a command: the message is its help
        note(failure.message if asked_nothing else f"neurontools: {failure.message}")
        if is_usage_error(error) and not asked_nothing and getattr(error, "ctx", None) is not None:
            note(f"Try '{error.ctx.command_path} --help'.")  # type: ignore[attr-defined]
    return failure.status


def _context(error: Exception) -> tuple[str, dict[str, object], list[str]]:
    """Return the command that refused its arguments before it had a report."""
    ctx = getattr(error, "ctx", None)
    words = ctx.command_path.split()[1:] if ctx is not None else []
    return " ".join(words) or "neurontools", {}, []


def _place(error: Exception) -> dict[str, object]:
    """Return the fields of an error that programs ask for."""
    names = ("path", "offset", "field", "expected", "got")
    return {name: value for name in names if (value := getattr(error, name, None)) is not None}
