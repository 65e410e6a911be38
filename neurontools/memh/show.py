"""`neurontools memh show`: the memories of a core, nearest first."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.arch.rows import FactRow, fact_text
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table


class LevelRow(NamedTuple):
    """One memory."""

    name: str
    form: str
    size: FactRow
    rate: FactRow
    reach: Annotated[str, "who reads and writes it"]


class Levels(NamedTuple):
    """The result of `memh show`."""

    chip: str
    levels: tuple[LevelRow, ...]


def shown(chip: str) -> Levels:
    """Return the memories of one physical core of a chip."""
    from emulator.machine.hierarchy import levels  # deferred: start-up

    rows = tuple(
        LevelRow(one.name, one.form, FactRow("size", *one.size), FactRow("rate", *one.rate), one.reach)
        for one in levels(chip)
    )
    return Levels(chip, rows)


def view(found: Levels) -> list[str]:
    """Return the table for people."""
    rows = [
        [row.name, fact_text(row.size), fact_text(row.rate), row.form, row.reach, f"[{row.size.cite}; {row.rate.cite}]"]
        for row in found.levels
    ]
    return [f"memories of a core of {found.chip}; no caches, software moves everything",
            *table(["level", "size", "rate", "form", "reached by", "source"], rows)]  # fmt: skip


def show(
    chip: Annotated[str, typer.Argument(metavar="CHIP", help="trn1, inf2, trn2 or trn3.")] = "trn2",
    json: Json = False,
) -> None:
    """Show the memories of a core: sizes, rates, form, who reaches them."""
    with report("memh show", json, chip=chip) as out:
        out.result = found = shown(chip)
        out.lines = lambda: view(found)


app = command_app(show, result=Levels)
