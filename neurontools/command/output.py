"""What commands write: one report to standard output, notes to standard error, files whole or not at all."""

from __future__ import annotations

import errno
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from formats.errors import FormatError
from formats.whole_files import clean_beside, mark_of, naming, umask, write_whole
from neurontools.command.exits import ExitStatus
from neurontools.command.results import plain
from neurontools.text.visible import json_text, printable, visible
from neurontools.version import __version__

__all__ = ["Report", "current_report", "envelope", "folder_whole", "note", "report", "write_whole"]

SHOWN_WARNINGS = 5

# Where the one funnel of errors finds what a command that failed was about, for the same envelope.
_current: Report | None = None


class Report:
    """Collect what one command found, until it is printed as text or as one JSON document.

    `result` is the command's typed result; `lines` gives the text and is called only when text is wanted.
    """

    def __init__(self, command: str, as_json: bool, inputs: dict[str, object], quiet: bool = False) -> None:
        self.command = command
        self.as_json = as_json
        self.quiet = quiet
        self.inputs = inputs
        self.result: object = None
        self.lines: Callable[[], Iterable[str]] = tuple
        self.warnings: list[str] = []
        self.status = ExitStatus.OK
        self.exit_code: int | None = None
        self.streamed = False  # the command has printed its results itself, as they came

    def warn(self, *texts: str) -> None:
        """Keep warnings for the report, and show the first ones at once unless the report is JSON."""
        self.warnings += texts
        if self.as_json or self.quiet:
            return
        for text in texts[:SHOWN_WARNINGS]:
            note(f"warning: {text}")
        if len(texts) > SHOWN_WARNINGS:
            note(f"warning: and {len(texts) - SHOWN_WARNINGS} more; --json lists them")


@contextmanager
def report(command: str, as_json: bool = False, /, *, quiet: bool = False, **inputs: object) -> Iterator[Report]:
    """Give a command its report, and print it when the command is through.

    Errors pass: the command line's one funnel prints them, in the same envelope when JSON was asked for.
    """
    global _current
    mine = Report(command, as_json, {k: plain(v) for k, v in inputs.items() if v is not None}, quiet)
    _current = mine
    yield mine
    code = int(mine.status) if mine.exit_code is None else mine.exit_code
    if mine.streamed:
        pass
    elif as_json:
        document = envelope(command, mine.inputs, code, mine.warnings, result=plain(mine.result))
        print(json_text(json.dumps(document, indent=2, allow_nan=False)))
    elif not quiet:
        for line in _with_sources(mine):
            print(printable(line))
    sys.stdout.flush()
    _current = None
    if code:
        raise typer.Exit(code)


def _with_sources(mine: Report) -> Iterator[str]:
    """Yield the lines of a report; where they cite reference pages, the last one says how to read those."""
    cites = []
    for line in mine.lines():
        yield line
        if ".md " in line and mine.command != "reference":
            cites.append(line)
    if cites:
        from formats.cites import how_to_open  # deferred: start-up

        if command := how_to_open(*cites):
            yield f"sources: {command}"


def current_report() -> Report | None:
    """Return the report of the command that runs now, and forget it."""
    global _current
    mine, _current = _current, None
    return mine


def envelope(
    command: str, inputs: dict[str, object], code: int, warnings: list[str], **content: object
) -> dict[str, Any]:
    """Return the JSON document of a command: `content` is its `result`, or its `error`."""
    return {
        "schema": f"neurontools.{command.replace(' ', '.')}/1",
        "tool": {"name": "neurontools", "version": __version__},
        "inputs": inputs,
        "exit": code,
        **content,
        "warnings": warnings,
    }


def note(text: str) -> None:
    """Print a line for the person at the terminal, never mixed with the data on standard output."""
    with suppress(OSError):  # where standard error cannot be written there is nobody to tell
        print(visible(text), file=sys.stderr, flush=True)


@contextmanager
def folder_whole(path: Path) -> Iterator[Path]:
    """Give a new folder beside `path` to fill, and rename it to `path` when all went well.

    A folder that holds something is never replaced.  Errors name the file as it would be below `path`.
    """
    taken = typer.BadParameter(f"{path} exists already and is not an empty folder", param_hint="FOLDER")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise taken
    clean_beside(path.parent)
    try:
        beside = Path(tempfile.mkdtemp(prefix=mark_of(path.name), dir=path.parent))
    except OSError as error:  # it names what stands in for the folder
        raise naming(error, path.parent, str(path)) from None
    try:
        yield beside
        beside.chmod(0o777 & ~umask())
        if path.exists():
            path.rmdir()
        beside.rename(path)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and str(error.filename or path) in (str(beside), str(path)):
            raise taken from None  # by another process, since the look above
        named = str(error.filename or path).replace(str(beside), str(path))
        raise naming(error, path.parent, named) from None
    except FormatError as error:
        if error.path is None or not error.path.startswith(str(beside)):
            raise
        raise FormatError(error.what, path=error.path.replace(str(beside), str(path)), field=error.field) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
