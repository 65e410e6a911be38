"""Arguments that the `core` commands share, and how they open what is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neurontools.files import need_file

if TYPE_CHECKING:
    from formats.core import Core
    from neurontools.output import Report

__all__ = ["CoreFile", "CoreNumber", "EngineName", "open_core_file", "tell_damage"]

CoreFile = Annotated[Path, typer.Argument(metavar="CORE", help="A core dump.", show_default=False)]
CoreNumber = Annotated[
    int | None, typer.Option("--core", "-c", metavar="N", min=0, help="Physical core; all by default.")
]
EngineName = Annotated[
    str | None, typer.Option("--engine", "-e", metavar="ENGINE", help="pe, act, pool, dve or sp; all by default.")
]


def open_core_file(path: Path) -> Core:
    """Return the core dump that a path names."""
    from formats.core import open_core

    return open_core(str(need_file(path)))


def tell_damage(out: Report, core: Core) -> None:
    """Put what is missing from a dump, or damaged, among the warnings of a report."""
    out.warn(*core.warnings)
