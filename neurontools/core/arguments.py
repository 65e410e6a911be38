"""Arguments that the `core` commands share, and what they mean in a dump."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.core import Core, open_core
from formats.core.records import EngineState
from formats.engines import engine_name
from formats.errors import NotFoundError
from neurontools.command.files import need_file

__all__ = ["CoreFile", "CoreNumber", "EngineName", "chosen_engines", "open_core_file"]

CoreFile = Annotated[Path, typer.Argument(metavar="CORE", help="A core dump.", show_default=False)]
CoreNumber = Annotated[
    int | None, typer.Option("--core", "-c", metavar="N", min=0, help="Physical core; all by default.")
]
EngineName = Annotated[
    str | None, typer.Option("--engine", "-e", metavar="ENGINE", help="pe, act, pool, dve or sp; all by default.")
]


def open_core_file(path: Path) -> Core:
    """Return the core dump that a path names."""
    return open_core(str(need_file(path)))


def chosen_engines(core: Core, number: int | None, engine: str | None) -> list[EngineState]:
    """Return the states of the engines that options choose; NotFoundError where the dump has none of them."""
    from emulator.diagnosis.notes import engines_of  # deferred: start-up

    wanted = None if engine is None else engine_name(engine)
    found = [e for e in engines_of(core) if number in (None, e.core) and wanted in (None, e.engine)]
    if not found:
        which = f"nc{number} " if number is not None else ""
        raise NotFoundError(f"the dump has no {which}{wanted or 'engines'}")
    return found
