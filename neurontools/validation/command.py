"""`neurontools profile validate`: the time model against published measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, Quiet
from neurontools.command.output import note, report, write_whole
from neurontools.validation.results import Validation, use_of


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
    folder: Annotated[
        Path | None,
        typer.Option(
            "--captures",
            metavar="DIR",
            show_default=False,
            help="Compare with every capture (*.ntff, its NEFF beside it) of the checkouts in this folder too.",
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Emulate what was published, and compare the times.

    Rows that need files of others read them from the folder that NEURONTOOLS_CORPUS names.  Exit status 1: a row is
    further off than aimed at.
    """
    from neurontools.validation.captures import beside, captures, row_of  # deferred: start-up
    from neurontools.validation.captures import summary as capture_summary  # deferred: start-up
    from neurontools.validation.left_out import left_out  # deferred: start-up
    from neurontools.validation.measure import measure  # deferred: start-up
    from neurontools.validation.ranking import rankings  # deferred: start-up
    from neurontools.validation.report import markdown, rows, summary  # deferred: start-up
    from neurontools.validation.targets import chosen  # deferred: start-up

    with report("profile validate", json, quiet=quiet, rows=names or None, write=write, captures=folder) as out:
        found = []
        for target in chosen(names or [], every):
            if every and not (json or quiet):
                note(f"{target.id}: {target.what}")
            found.append(measure(target))
        pairs = list(captures(folder)) if folder is not None else []
        sides = []
        for path, neff in pairs:
            if not (json or quiet):
                note(f"{path}")
            sides.append(beside(folder or path, path, neff))
        compared = [row_of(side) for side in sides]
        others = []
        for each in left_out(folder, pairs, sides) if folder is not None else ():
            if not (json or quiet):
                note(f"{each.repository} left out")
            others.append(each)
        if write is not None:
            with write_whole(write) as path:
                path.write_text(markdown(found, compared, others), encoding="utf-8")
        result = out.result = Validation(
            rows(found), summary(found), tuple(compared), capture_summary(compared), tuple(others),
            rankings(found) if every else (),
        )  # fmt: skip
        out.lines = lambda: _lines(result)
        if any(row.within is False for row in result.rows):
            out.status = ExitStatus.FINDING


def _lines(result: Validation) -> Iterator[str]:
    from neurontools.text.table import table  # deferred: start-up

    lines = []
    for row in result.rows:
        ours = row.not_run if row.ours is None else f"{row.ours:,.1f}" if row.ours >= 1000 else f"{row.ours:.4g}"
        error = "" if row.error is None else f"{row.error:+.1%}"
        mark = "" if row.within is not False else "beyond"
        published = f"{row.published:,.6g} {row.unit}"
        lines.append([row.id, row.chip, published, ours, error, mark, use_of(row.held_out), row.what])
    yield from table(["row", "chip", "published", "ours", "error", "", "use", "what"], lines)
    for entry in result.summary:
        yield (
            f"{entry.title}, {entry.use}: {entry.within} of {entry.rows} rows within {entry.limit:.0%}, "
            f"median error {entry.median_error:.1%}, largest {entry.largest_error:.1%}"
        )
    for each in result.rankings:
        yield f"order of {each.number} times ({each.versions}): Spearman {each.spearman:.3f}"

    if result.captures:
        yield from _capture_lines(result)


def _capture_lines(result: Validation) -> Iterator[str]:
    from neurontools.text.table import table  # deferred: start-up
    from neurontools.validation.report import capture_cells  # deferred: start-up

    head = ["capture", "chip", "program", "error", "words", "median", "95 % within", "active", "use"]
    yield from table(head, [list(capture_cells(row)) for row in result.captures])
    for entry in result.capture_summary:
        yield (
            f"captures, {use_of(entry.held_out)}: {entry.within} of {entry.captures} programs within 15%, "
            f"median error {entry.median_error:.1%}, largest {entry.largest_error:.1%}; words median "
            f"{entry.word_median:.1%}, 95 % within 10 % in {entry.words_within}; engines active within 10 % in "
            f"{entry.active_within}; {entry.near_share:.1%} of {entry.words:,} words within 10 %"
        )
    for each in result.left_out:
        yield (
            f"{each.repository} left out: median error {each.median_error:.1%}, largest {each.largest_error:.1%}; "
            f"words median {each.word_median:.1%}, {each.near_share:.1%} of {each.words:,} within 10 %; engines active "
            f"within 10 % in {each.active_within} of {each.captures}"
        )


app = command_app(validate, result=Validation)
