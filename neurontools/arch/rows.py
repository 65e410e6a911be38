"""Rows that the `arch` commands share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.arch import Fact

__all__ = ["FactRow", "InstanceName", "fact_rows", "fact_text"]

InstanceName = Annotated[
    str,
    typer.Argument(metavar="INSTANCE", help="An instance type, such as trn2.48xlarge.", show_default=False),
]


class FactRow(NamedTuple):
    """One number."""

    name: str
    value: float
    unit: str
    provenance: Annotated[str, "documented, observed, inferred or ours"]
    cite: str


def fact_rows(facts: Mapping[str, Fact]) -> tuple[FactRow, ...]:
    """Return facts as rows, in their order."""
    return tuple(FactRow(name, *fact) for name, fact in facts.items())


def fact_text(row: FactRow) -> str:
    """Return a value with its unit, bytes in the unit that divides them."""
    unit = row.unit
    if unit.startswith("bytes"):
        value, scale = row.value, ""
        binary = value >= 1024 and any(value % (1 << shift) == 0 for shift in (30, 20) if value >= 1 << shift)
        step, names = (1024.0, ("", "Ki", "Mi", "Gi", "Ti")) if binary else (1000.0, ("", "k", "M", "G", "T"))
        for scale in names:
            if value < step or (scale in ("Gi", "G") and row.value < step**4 * 10):
                break
            value /= step
        return f"{value:,.10g} {scale}B" + unit.removeprefix("bytes")
    return f"{row.value:,.10g} {unit}"
