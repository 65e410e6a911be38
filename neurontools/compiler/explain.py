"""`neurontools compile explain`: what an error code of the compiler means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.compiler.codes import CODES, Code, code_of


class CodeRow(NamedTuple):
    """One documented code."""

    name: str
    raised: Annotated[str, "by which part of this compiler: verify, lowering, limit, or never"]
    documented: Annotated[bool, "whether it is a limit that --limits ours leaves out"]
    meaning: str
    advice: str
    why_never: Annotated[str, "of a code that is never raised"]


class Explained(NamedTuple):
    """The result of `compile explain`."""

    codes: tuple[CodeRow, ...]


def explain_lines(found: Explained) -> Iterator[str]:
    """Yield each code with its meaning and what to do."""
    for one in found.codes:
        yield f"NCC_{one.name}  {one.meaning}"
        if len(found.codes) == 1:
            yield f"  what to do: {one.advice}"
            yield f"  here: {_HERE[one.raised]}" + (f", {one.why_never}" if one.why_never else "")
            if one.documented:
                yield "  a limit of neuronx-cc that this compiler does not share: --limits ours leaves it out"
            yield "  source: compiler.md 6"


_HERE = {
    "verify": "raised when the graph is verified",
    "lowering": "raised when an operation has no lowering",
    "limit": "raised when the limit is passed",
    "never": "never raised",
}


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]", help="A code as EVRF035 or NCC_EVRF035; without one, all.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what an error code of the compiler means and what to do about it."""
    with report("compile explain", json, code=code) as out:
        rows: list[Code] = [code_of(code)] if code else list(CODES.values())
        found = Explained(tuple(CodeRow(*one) for one in rows))
        out.result = found
        out.lines = lambda: explain_lines(found)


app = command_app(explain, result=Explained)
