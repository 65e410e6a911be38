"""The checks by name, and how a run gets them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from emulator.checks.clocks import Clocks, WaitPlace
from emulator.checks.initcheck import Initcheck
from emulator.checks.lint import Lint
from emulator.checks.memcheck import Memcheck
from emulator.checks.nancheck import Nancheck
from emulator.checks.racecheck import Racecheck
from emulator.checks.synccheck import Synccheck
from emulator.errors import InputError

__all__ = ["ASKED", "TOOLS", "make_checks", "tools_of"]

# "all" means those in front; the others are for who asks for them by name.
ASKED = ("nancheck", "lint")
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck", *ASKED)
_SHORT = {
    "mem": "memcheck",
    "bounds": "memcheck",
    "init": "initcheck",
    "race": "racecheck",
    "races": "racecheck",
    "sync": "synccheck",
    "nan": "nancheck",
}


def tools_of(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the tools that names mean, in the order of TOOLS; "all" means all but ASKED, "race" is racecheck.

    A text by itself is one name.

    Raises InputError for a name that means none.
    """
    return _tools_of((names,) if isinstance(names, str) else tuple(names))


@lru_cache
def _tools_of(names: tuple[str, ...]) -> tuple[str, ...]:
    wanted = set()
    for name in names:
        tool = _SHORT.get(name, name)
        if tool != "all" and tool not in TOOLS:
            raise InputError(f"no check {name!r}; there are {', '.join(TOOLS)} and all")
        wanted |= set(TOOLS) - set(ASKED) if tool == "all" else {tool}
    return tuple(tool for tool in TOOLS if tool in wanted)


def make_checks(names: str | Iterable[str], ignored: Iterable[WaitPlace] = ()) -> list[Any]:
    """Return new observers for the named checks, in the order in which the device has to call them.

    Each has `attach(device)`, to be called when program and inputs are loaded, `finish()` for the end, and those named
    TOOLS have `findings`. `ignored` waits are carried out and teach nothing (see `Clocks`).
    """
    tools = tools_of(names)
    clocks = Clocks(ignored)
    found: list[Any] = []
    if "memcheck" in tools:
        found.append(Memcheck())
    if "initcheck" in tools:
        found.append(Initcheck())
    if "nancheck" in tools:
        found.append(Nancheck())
    if "lint" in tools:
        found.append(Lint(clocks))  # in front of the clocks: it looks at what an engine knows before a wait
    if not {"racecheck", "synccheck", "lint"}.isdisjoint(tools):
        found.append(clocks)
    if "racecheck" in tools:
        found.append(Racecheck(clocks))
    if "synccheck" in tools:
        found.append(Synccheck(clocks))
    return found
