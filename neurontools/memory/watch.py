"""`neurontools mem watch`: the ledger of running sessions, as it changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.memory.plot import bar, legend
from neurontools.memory.states import Place, find_states
from neurontools.text.table import bytes_text, count
from neurontools.text.visible import printable

if TYPE_CHECKING:
    from emulator.runtime.ledger_state import MachineState


class WatchedStack(NamedTuple):
    """One HBM stack of a session: bytes by category, in use, the most there ever was of each category, the limit."""

    device: int
    stack: int
    categories: dict[str, int]
    used: int
    peak: int
    limit: int


class WatchedModel(NamedTuple):
    """One loaded model: its number, its core, its name, its bytes."""

    model: int
    core: int
    name: str
    bytes: int


class WatchedSession(NamedTuple):
    """One session."""

    pid: int
    tag: str
    instance: str
    ended: bool
    stacks: list[WatchedStack]
    models: list[WatchedModel]


class Watched(NamedTuple):
    """The result of `mem watch`."""

    sessions: list[WatchedSession]


def watched(states: list[MachineState]) -> Watched:
    """Return what sessions have in device memory."""
    from emulator.runtime.ledger_views import by_category  # deferred: start-up

    sessions = []
    for state in states:
        ledger = state.ledger
        stacks = []
        for stack in sorted({one.allocation.stack for one in ledger.entries.values()}):
            mine = [one for one in ledger.entries.values() if one.allocation.stack == stack]
            peak = sum(counter.peak for (place, *_), counter in ledger.counters.items() if place == stack)
            stacks.append(WatchedStack(stack.device, stack.hbm, by_category(mine), ledger.used(stack), peak,
                                       ledger.limit(stack)))  # fmt: skip
        models = [WatchedModel(owner.model, owner.core, model.name, sum(
            one.allocation.size for one in ledger.entries.values() if one.allocation.owner == owner))
            for owner, model in ledger.models.items()]  # fmt: skip
        sessions.append(WatchedSession(state.pid, state.tag, state.instance, state.ended, stacks, models))
    return Watched(sessions)


def view(found: Watched) -> list[str]:
    """Return a bar for each stack, and the models below it."""
    lines = []
    for one in found.sessions:
        end = ", ended" if one.ended else ""
        lines.append(f"{one.tag} (pid {one.pid}) on {one.instance}{end}: {count(len(one.models), 'model')}")
        for stack in one.stacks:
            lines += [
                f"  nd{stack.device} hbm{stack.stack} {bytes_text(stack.used)} of {bytes_text(stack.limit)}, "
                f"at most {bytes_text(stack.peak)}",
                f"    {bar(stack.categories, stack.limit)}",
                f"    {legend(stack.categories)}",
            ]
        lines += [f"  {each.model} on nc{each.core}: {bytes_text(each.bytes)}  {each.name}" for each in one.models]
    return lines


def changes(place: Place, period: float) -> Iterator[Watched]:
    """Yield what is there each time it is another than before, until no session is left."""
    before = None
    while True:
        try:
            now = watched(find_states(place))
        except NotFoundError:
            if before is None:
                raise
            return
        if now != before:
            yield now
        before = now
        sleep(period)


def mem_watch(
    place: Place = None,
    once: Annotated[bool, typer.Option("--once", help="Show what is there, and end.")] = False,
    period: Annotated[float, typer.Option("--period", metavar="S", min=0.05, help="Seconds between two looks.")] = 0.5,
    json: Json = False,
) -> None:
    """Show the device memory of running sessions as it changes.

    Sessions show themselves when NEURONTOOLS_MACHINE names a folder.  Ends when the last of them has ended; --json
    and a file look once.
    """
    with report("mem watch", json, place=place) as out:
        if once or json or (place is not None and place.is_file()):
            found = watched(find_states(place))
            out.result = found
            out.lines = lambda: view(found)
            return
        out.streamed = True
        with suppress(KeyboardInterrupt):
            for found in changes(place, period):
                print("\n".join([*map(printable, view(found)), ""]), flush=True)


app = command_app(mem_watch, result=Watched)
