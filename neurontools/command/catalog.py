"""Every command by name: its summary, its module, the type of its result."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from formats.errors import NotFoundError, UnsupportedError
from neurontools.command.lazy import rows_of
from neurontools.command.table import TABLE

__all__ = ["leaf_summaries", "result_type"]


def leaf_summaries() -> dict[str, str]:
    """Return the summary of every command that is not a group, by name ("neff info")."""
    return {name: entry.summary for name, entry in TABLE.items() if entry.module}


def result_type(command: str) -> Any:
    """Return the type of a command's result.

    Raises NotFoundError for a group or an unknown name, UnsupportedError for a command whose result has no type.
    """
    entry = TABLE.get(command)
    if entry is None:
        near = get_close_matches(command, TABLE, n=2)
        raise NotFoundError(f"no command {command!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    if not entry.module:
        raise NotFoundError(f"{command!r} is a group of commands: {', '.join(rows_of(command))}")
    found = getattr(import_module(entry.module).app, "result", None)
    if found is None:
        raise UnsupportedError(f"the result of {command!r} has no type yet")
    return found
