"""Checks of a run: observers of a device that say what is wrong, where, and who is on the other side.

`make_checks(("racecheck",))` gives the observers; `emulator.runtime.run(..., checks=("race", "init"))` attaches them
and returns what they found as `Result.findings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.checks.finding import SEVERITIES, Finding, Site, worst
from emulator.checks.kinds import KINDS, Kind

if TYPE_CHECKING:
    from emulator.checks.clocks import Clocks, WaitPlace
    from emulator.checks.registry import TOOLS, make_checks, tools_of

__all__ = [
    "KINDS",
    "SEVERITIES",
    "TOOLS",
    "Clocks",
    "Finding",
    "Kind",
    "Site",
    "WaitPlace",
    "make_checks",
    "tools_of",
    "worst",
]

# Whoever only prints findings, as the debugger does, needs none of the checks.
_HOMES = {
    "emulator.checks.clocks": ("Clocks", "WaitPlace"),
    "emulator.checks.registry": ("TOOLS", "make_checks", "tools_of"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module  # deferred: start-up

            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
