"""`neurontools sysfs watch`: attributes of the Neuron driver as they change."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.sysfs.attributes import Patterns, Root, attributes, matching
from neurontools.text.visible import printable


class AttributeChange(NamedTuple):
    """One change: seconds since the watch began, the attribute, what it said before (null: it is new), what it says."""

    seconds: float
    attribute: str
    before: str | None
    after: str


class WatchedAttributes(NamedTuple):
    """The result of `sysfs watch`."""

    changes: list[AttributeChange]


def changed(before: dict[str, str], after: dict[str, str], seconds: float) -> list[AttributeChange]:
    """Return what says something else than before."""
    return [AttributeChange(round(seconds, 3), path, before.get(path), text) for path, text in after.items()
            if before.get(path) != text]  # fmt: skip


def line_of(one: AttributeChange) -> str:
    """Return a change as a line."""
    return f"{one.seconds:9.3f}  {one.attribute}: {'-' if one.before is None else one.before} -> {one.after}"


def sysfs_watch(
    patterns: Patterns = None,
    root: Root = Path("/sys"),
    period: Annotated[float, typer.Option("--period", metavar="S", min=0.05, help="Seconds between two looks.")] = 0.5,
    seconds: Annotated[float, typer.Option("--for", metavar="S", min=0, help="End after so long; 0: never.")] = 0,
    json: Json = False,
) -> None:
    """Show attributes of the Neuron driver as they change.

    Ends when it is interrupted, or after the time that --for gives; --json needs that time.
    """
    with report("sysfs watch", json, root=root, patterns=patterns) as out:
        if json and not seconds:
            raise typer.BadParameter("--json needs a time to end", param_hint="--for")
        before = matching(attributes(root), patterns)
        began = monotonic()
        found: list[AttributeChange] = []
        out.result = WatchedAttributes(found)
        out.streamed = not json
        with suppress(KeyboardInterrupt):
            while not seconds or monotonic() - began < seconds:
                sleep(period)
                now = attributes(root)
                now = {path: now[path] for path in matching(now, patterns)}
                for one in changed(before, now, monotonic() - began):
                    found.append(one)
                    if not json:
                        print(printable(line_of(one)), flush=True)
                before = now


app = command_app(sysfs_watch, result=WatchedAttributes)
