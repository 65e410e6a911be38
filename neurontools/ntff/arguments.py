"""Arguments that the `ntff` commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["CoreNumber", "NeffOption", "NtffFile"]

NtffFile = Annotated[Path, typer.Argument(metavar="NTFF", help="A profile capture.", show_default=False)]
NeffOption = Annotated[
    Path | None,
    typer.Option("--neff", metavar="FILE", help="The NEFF that was captured: gives kernel lines.", show_default=False),
]
CoreNumber = Annotated[
    int | None,
    typer.Option(
        "--core", "-c", metavar="N", min=0, help="Physical core, by its number on the device; all by default."
    ),
]
