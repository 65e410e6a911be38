"""`neurontools err explain`: what an error means, what usually causes it, and where to look next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json
from neurontools.output import report


def explain(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="CODE|NAME|LINE|FILE",
            help="A status (1006, NRT_EXEC_OOB), a driver or compiler error, a line of a log, or a log file.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Explain an error code, a name, a log line or a whole log.

    Knows every NRT status, the errors that the driver counts and prints to the kernel log, messages of runtime and
    collectives, and the codes of the graph compiler (NCC_...).  Of a log it gives each kind of error once per process,
    the first one first, and the information blocks that the runtime prints when an execution fails.
    """
    text = " ".join(what)
    with report("err explain", json, what=text) as out:
        from neurontools.render import err as render

        out.result = _answer(text)
        out.lines = lambda: render.lines(out.result)


def _answer(text: str) -> dict[str, object]:
    from formats.errors import NotFoundError
    from formats.nrt.lookup import fact_of, mentions, status_of
    from neurontools.render import err as render

    path = Path(text)
    if status_of(text) is None and len(text) < 1024 and "\0" not in text and path.is_file():
        from formats.nrt.story import read_story

        with path.open(encoding="utf-8", errors="replace") as file:
            return render.log(read_story(_short(file)))
    found = mentions(text)
    if len(text.split()) == 1 and not found:
        if "/" in text or path.suffix in (".log", ".txt"):
            raise FileNotFoundError(2, "no such file", text)
        return render.code(fact_of(text))
    if not found:
        raise NotFoundError(f"the line mentions no error that is known: {text[:80]!r}")
    return render.code(found[0].fact) if len(text.split()) == 1 else render.line(text, found)


def _short(file: TextIO) -> Iterator[str]:
    """Yield lines in pieces of a bounded length: a file without line ends must not fill memory."""
    while piece := file.readline(1 << 16):
        yield piece


app = command_app(explain)
