"""`neurontools core engines`: where every engine stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from formats.core import Core
from formats.core.records import EngineState
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, CoreNumber, EngineName, chosen_engines, open_core_file
from neurontools.core.headline import place
from neurontools.text.table import table

_WIDTH = 64  # characters of an instruction in the table


class Engines(NamedTuple):
    """The engines that the options choose."""

    engines: tuple[EngineState, ...]


def states(core: Core, number: int | None, engine: str | None) -> Engines:
    """Return the engines that the options choose; NotFoundError where the dump has none of them."""
    return Engines(tuple(chosen_engines(core, number, engine)))


def view(engines: Sequence[EngineState], registers: bool) -> list[str]:
    """Return the text of `core engines`."""
    rows, more = [], []
    for e in engines:
        waits = "-" if e.waiting is None else f"{e.waiting.condition}, is {e.waiting.present}"
        rows.append([f"nc{e.core}", e.engine, e.state, e.pc, e.completed, e.words, waits, place(e.source) or "-",
                     _cut(e.text or "-")])  # fmt: skip
        if registers:
            held = [(number, value) for number, value in enumerate(e.registers) if value]
            more += [f"nc{e.core} {e.engine}: " + ("no register is set" if not held else "")]
            more += [f"  r{number:<3} {value:#010x}  {value}" for number, value in held]
    heads = ("core", "engine", "state", "pc", "done", "of", "waits for", "line", "word")
    return [*table(heads, rows), *(["", *more] if more else [])]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def engines(
    file: CoreFile,
    core: CoreNumber = None,
    engine: EngineName = None,
    registers: Annotated[bool, typer.Option("--registers", "-r", help="Print registers that are not zero.")] = False,
    json: Json = False,
) -> None:
    """Show where every engine stood, and its registers.

    The word shown is the oldest one that had not completed.
    """
    with report("core engines", json, file=file, core=core, engine=engine) as out:
        dump = open_core_file(file)
        out.result = found = states(dump, core, engine)
        out.warn(*dump.warnings)
        out.lines = lambda: view(found.engines, registers)


app = command_app(engines, Engines)
