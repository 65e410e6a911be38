"""Checks of a run: observers of a device that say what is wrong, where, and who is on the other side.

`make_checks(("racecheck",))` gives the observers; `emulator.runtime.run(..., checks=("race", "init"))` attaches them
and returns what they found as `Result.findings`.
"""

from emulator.checks.clocks import Clocks, WaitPlace
from emulator.checks.finding import SEVERITIES, Finding, Site, worst
from emulator.checks.kinds import KINDS, Kind
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
