"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ErrorExitCode", "Json", "NeffFile", "Quiet", "SubgraphNumber", "TargetName", "complete_target"]


def complete_target(incomplete: str) -> list[str]:
    """Return the chip names that start with what was typed."""
    return [name for name in ("trn1", "inf2", "trn2", "trn3") if name.startswith(incomplete)]


NeffFile = Annotated[Path, typer.Argument(metavar="FILE", help="A NEFF.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no report; the exit status tells.")]
ErrorExitCode = Annotated[
    int | None,
    typer.Option(
        "--error-exitcode",
        metavar="N",
        min=0,
        max=255,
        help="Exit with N instead of the usual status when something was found.",
        show_default=False,
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="CHIP",
        autocompletion=complete_target,
        help="trn1, inf2, trn2 or trn3; a generation (gen2, gen3, gen4) or an architecture code will do too.",
        show_default=False,
    ),
]
SubgraphNumber = Annotated[
    int, typer.Option("--subgraph", "-g", metavar="N", min=0, help="Subgraph: with LNC 2, one per physical core.")
]
