"""`neurontools arch diff`: two chips or instances beside each other."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.arch.rows import FactRow, fact_text
from neurontools.arch.show import Shown, shown
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table


class DiffRow(NamedTuple):
    """One thing of both sides."""

    part: Annotated[str, "instance, chip, links or shape"]
    name: str
    left: str | None
    right: str | None
    same: bool


class Difference(NamedTuple):
    """The result of `arch diff`."""

    left: str
    right: str
    rows: tuple[DiffRow, ...]


def compared(left: str, right: str) -> Difference:
    """Return every figure of two chips or instances side by side."""
    a, b = shown(left), shown(right)
    rows = []
    for part, ours, theirs in (
        ("shape", _shape(a), _shape(b)),
        ("instance", _facts(a.instance_facts), _facts(b.instance_facts)),
        ("chip", _facts(a.chip_facts), _facts(b.chip_facts)),
        ("links", _facts(a.link_facts), _facts(b.link_facts)),
    ):
        for name in dict.fromkeys((*ours, *theirs)):
            one, other = ours.get(name), theirs.get(name)
            rows.append(DiffRow(part, name, one, other, one == other))
    return Difference(a.name, b.name, tuple(rows))


def _facts(rows: tuple[FactRow, ...]) -> dict[str, str]:
    return {row.name: fact_text(row) for row in rows}


def _shape(one: Shown) -> dict[str, str]:
    found = {"chip": one.chip, "core": one.core, "emulated": "yes" if one.emulated else "described only"}
    if one.wiring is not None:
        found |= {"wiring": f"{one.wiring} {' x '.join(map(str, one.shape))}", "logical cores": str(one.cores)}
    return found


def view(found: Difference, every: bool) -> list[str]:
    """Return the table for people: what differs, or everything."""
    rows = [[row.part, row.name, row.left, row.right] for row in found.rows if every or not row.same]
    same = sum(row.same for row in found.rows)
    return [
        *table(["", "", found.left, found.right], rows),
        f"{len(found.rows) - same} differ, {same} are the same" + ("" if every else "; --all shows these too"),
    ]


def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A chip or an instance type.", show_default=False)],
    right: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    every: Annotated[bool, typer.Option("--all", help="Show what is the same too.")] = False,
    json: Json = False,
) -> None:
    """Compare two chips or instances, figure by figure.

    The exit status is 1 when something differs.
    """
    with report("arch diff", json, left=left, right=right) as out:
        out.result = found = compared(left, right)
        out.lines = lambda: view(found, every)
        if any(not row.same for row in found.rows):
            out.exit_code = 1


app = command_app(diff, result=Difference)
