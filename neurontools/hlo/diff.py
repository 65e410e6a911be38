"""`neurontools hlo diff`: what two modules compute differently."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.text.table import count

_SHOWN = 50


class ChangeRow(NamedTuple):
    """Instructions that only one module has, at one place of a computation."""

    computation: str
    first: tuple[str, ...]
    second: tuple[str, ...]


class HloDiff(NamedTuple):
    """The result of `hlo diff`."""

    same: Annotated[bool, "whether both compute the same, whatever things are called"]
    parameters: Annotated[tuple[tuple[str, ...], tuple[str, ...]], "shapes of the entry's parameters"]
    changes: tuple[ChangeRow, ...]
    differing: Annotated[int, "how many places differ; as many as 50 are listed"]


def _lines(found: HloDiff, first: Path, second: Path) -> list[str]:
    if found.same:
        return [f"{first.name} and {second.name} compute the same"]
    lines = []
    if found.parameters[0] != found.parameters[1]:
        lines += [f"parameters of the first: {', '.join(found.parameters[0])}",
                  f"parameters of the second: {', '.join(found.parameters[1])}"]  # fmt: skip
    for each in found.changes:
        lines += [f"{each.computation}:", *(f"- {text}" for text in each.first), *(f"+ {text}" for text in each.second)]
    where = f"{count(found.differing, 'place')} differ" + ("s" if found.differing == 1 else "")
    return [*lines, where if found.differing else "the same instructions, wired differently"]


def diff(
    file: HloFile,
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The other module.", show_default=False)],
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Compare what two modules compute.

    Names, numbers, metadata and the order of independent instructions make no difference. The exit status is 1 when
    they differ.
    """
    with report("hlo diff", json, quiet=quiet, file=file, second=second) as out:
        from formats.hlo.compare import differences, same  # deferred: start-up

        one, other = open_module(file), open_module(second)
        alike = same(one, other)
        places = [] if alike else differences(one, other)
        shapes = tuple(tuple(str(each.shape) for each in module.entry.parameters) for module in (one, other))
        found = HloDiff(alike, (shapes[0], shapes[1]), tuple(ChangeRow(*each) for each in places[:_SHOWN]), len(places))
        out.result = found
        out.lines = lambda: _lines(found, file, second)
        if not alike:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(diff, result=HloDiff)
