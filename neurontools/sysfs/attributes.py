"""Attributes of a tree of the driver's, a real one or one that was made: which are meant, what they say."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from formats.errors import NotFoundError
from neurontools.command.files import need_folder
from neurontools.dump.sysfs import PLACE, read_tree

__all__ = ["Patterns", "Root", "attributes", "matching"]

Root = Annotated[
    Path, typer.Option("--root", metavar="DIR", help="What stands for /sys, such as the DIR of sysfs mount.")
]
Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATTERN...]",
        help="Attributes, such as 'neuron0/*/status/*'; * stands for any part.",
        show_default=False,
    ),
]


def attributes(root: Path) -> dict[str, str]:
    """Return every attribute of every device by its path below the folder of all devices."""
    top = need_folder(root) / PLACE
    if not top.is_dir():
        raise NotFoundError(f"no Neuron devices in {root}: {top} is not there")
    found: dict[str, str] = {}
    for device in sorted(top.glob("neuron[0-9]*"), key=lambda path: (len(path.name), path.name)):
        inside = read_tree(device, skip="neuron_core")
        found |= {f"{device.name}/{path}": text for path, text in inside.items()}
        for core in sorted(device.glob("neuron_core[0-9]*"), key=lambda path: (len(path.name), path.name)):
            found |= {f"{device.name}/{core.name}/{path}": text for path, text in read_tree(core).items()}
    return found


def matching(found: dict[str, str], patterns: list[str] | None) -> dict[str, str]:
    """Return the attributes that a pattern names, in whole or by its beginning; NotFoundError where one names none."""
    if not patterns:
        return found
    chosen: dict[str, str] = {}
    for pattern in patterns:
        plain = pattern.strip("/")
        mine = {path: text for path, text in found.items()
                if fnmatchcase(path, plain) or fnmatchcase(path, f"{plain}/*")}  # fmt: skip
        if not mine:
            raise NotFoundError(f"no attribute {pattern!r}")
        chosen |= mine
    return chosen
