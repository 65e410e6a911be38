"""`neurontools profile validate`: the time model against published measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, Quiet
from neurontools.exits import ExitStatus
from neurontools.output import note, report, write_whole

if TYPE_CHECKING:
    from neurontools.validation.measure import Measurement


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ROW...]", help="Rows or groups, such as A-12 or B.", show_default=False),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run the large kernels too: minutes, and some GB of memory.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the report there (Markdown).", show_default=False),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Emulate what was published, and compare the times.

    Rows that need files of others read them from the folder that NEURONTOOLS_CORPUS names.  Exit status 1: a row is
    further off than aimed at.
    """
    from neurontools.validation.measure import measure
    from neurontools.validation.report import markdown, rows, summary
    from neurontools.validation.targets import chosen

    with report("profile validate", json, quiet=quiet, rows=names or None, write=write) as out:
        found = []
        for target in chosen(names or [], every):
            if every and not (json or quiet):
                note(f"{target.id}: {target.what}")
            found.append(measure(target))
        if write is not None:
            with write_whole(write) as path:
                path.write_text(markdown(found), encoding="utf-8")
        out.result = {"rows": rows(found), "summary": summary(found)}
        out.lines = lambda: _lines(found)
        if any(one.ok is False for one in found):
            out.status = ExitStatus.FINDING


def _lines(found: list[Measurement]) -> Iterator[str]:
    from neurontools.render.table import table
    from neurontools.validation.report import summary

    lines = []
    for one in found:
        target = one.target
        ours = one.why if one.ours is None else f"{one.ours:,.1f}" if one.ours >= 1000 else f"{one.ours:.4g}"
        error = "" if one.error is None else f"{one.error:+.1%}"
        mark = "" if one.ok is not False else "beyond"
        use = "test" if target.held_out else "calibrate"
        published = f"{target.value:,.6g} {target.unit}"
        lines.append([target.id, target.chip, published, ours, error, mark, use, target.what])
    yield from table(["row", "chip", "published", "ours", "error", "", "use", "what"], lines)
    for entry in summary(found):
        use = "test" if entry["held_out"] else "calibrate"
        yield (f"{entry['title']}, {use}: {entry['within']} of {entry['rows']} rows within {entry['limit']:.0%}, "
               f"median error {entry['median_error']:.1%}, largest {entry['largest_error']:.1%}")


app = command_app(validate)
