"""`neurontools core semaphores`: semaphores and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from formats.core import Core
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import table

Kind = Literal["semaphore", "event"]
_KINDS: tuple[Kind, ...] = ("semaphore", "event")


class Counter(NamedTuple):
    """One semaphore or event."""

    core: Annotated[int, "Physical core."]
    kind: Kind
    number: int
    value: int
    waiters: Annotated[tuple[str, ...], "Engines that wait for it, with pc and condition."]


class Counters(NamedTuple):
    """Semaphores and events, core by core."""

    counters: tuple[Counter, ...]


def counters(core: Core, everything: bool) -> Counters:
    """Return the semaphores and events that are not zero or that somebody waits for, or all of them."""
    waiters: dict[tuple[int, str, int], list[str]] = {}
    for state in core.engines:
        if (waiting := state.waiting) is not None:
            who = f"nc{state.core} {state.engine} pc {state.pc} {waiting.condition}"
            waiters.setdefault((waiting.core, waiting.kind, waiting.number), []).append(who)
    every = (
        Counter(bank.core, kind, number, value, tuple(waiters.get((bank.core, kind, number), ())))
        for bank in core.counters
        for kind, values in zip(_KINDS, (bank.semaphores, bank.events), strict=True)
        for number, value in enumerate(values)
    )
    return Counters(tuple(each for each in every if everything or each.value or each.waiters))


def view(found: Sequence[Counter]) -> list[str]:
    """Return the text of `core semaphores`."""
    rows = [
        [f"nc{c.core}", f"{'S' if c.kind == 'semaphore' else 'E'}[{c.number}]", c.value, "; ".join(c.waiters) or "-"]
        for c in found
    ]
    return table(("core", "which", "value", "who waits"), rows) if rows else ["all are zero, and nobody waits"]


def semaphores(
    file: CoreFile,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Zeros that nobody waits for, too.")] = False,
    json: Json = False,
) -> None:
    """List semaphores and events and who waits for them.

    Those that are zero and that nobody waits for are left out.
    """
    with report("core semaphores", json, file=file) as out:
        dump = open_core_file(file)
        out.result = found = counters(dump, everything)
        out.warn(*dump.warnings)
        out.lines = lambda: view(found.counters)


app = command_app(semaphores, Counters)
