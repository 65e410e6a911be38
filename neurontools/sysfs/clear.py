"""`neurontools sysfs clear`: set counters of the Neuron driver to zero."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.dump.sysfs import PLACE
from neurontools.sysfs.attributes import Root, attributes, matching
from neurontools.text.table import count

_COUNTED = ("total", "present", "peak")


class Cleared(NamedTuple):
    """The result of `sysfs clear`: what each counter said before."""

    before: dict[str, str]


def sysfs_clear(
    patterns: Annotated[
        list[str],
        typer.Argument(metavar="PATTERN...", help="Counters, such as 'neuron0/*/status'.", show_default=False),
    ],
    root: Root = Path("/sys"),
    json: Json = False,
) -> None:
    """Set counters of the Neuron driver to zero.

    A write clears a counter on a real machine and in a tree that `sysfs mount` keeps.  Anything but a counter is left
    alone.
    """
    with report("sysfs clear", json, root=root, patterns=patterns) as out:
        chosen = {path: text for path, text in matching(attributes(root), patterns).items()
                  if path.rpartition("/")[2] in _COUNTED}  # fmt: skip
        if not chosen:
            raise NotFoundError(f"no counter among {', '.join(patterns)}")
        for path in chosen:
            (root / PLACE / path).write_text("0\n")
        found = Cleared(chosen)
        out.result = found
        out.lines = lambda: [f"{count(len(chosen), 'attribute')} cleared"]


app = command_app(sysfs_clear, result=Cleared)
