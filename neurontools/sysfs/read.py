"""`neurontools sysfs read`: attributes of the Neuron driver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.sysfs.attributes import Patterns, Root, attributes, matching
from neurontools.text.table import table


class ReadAttributes(NamedTuple):
    """The result of `sysfs read`."""

    attributes: dict[str, str]


def view(found: ReadAttributes) -> list[str]:
    """Return a row for each attribute."""
    return table(["attribute", "value"], [[path, text] for path, text in found.attributes.items()])


def sysfs_read(
    patterns: Patterns = None,
    root: Root = Path("/sys"),
    set_only: Annotated[bool, typer.Option("--set", help="Leave out what is zero or empty.")] = False,
    json: Json = False,
) -> None:
    """Show attributes of the Neuron driver, of a real machine or of a tree that was made."""
    with report("sysfs read", json, root=root, patterns=patterns) as out:
        chosen = matching(attributes(root), patterns)
        if set_only:
            chosen = {path: text for path, text in chosen.items() if text not in ("", "0")}
        found = ReadAttributes(chosen)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(sysfs_read, result=ReadAttributes)
