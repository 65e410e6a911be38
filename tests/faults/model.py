"""What a fault of the suite is, whatever it was written in, and what its finding has to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.checks import Finding
from formats.neff import Neff
from tests.checks.support import Edit, checked

__all__ = ["Expected", "Place", "Planted", "Program", "fits"]


@dataclass(frozen=True)
class Program:
    """A file, its inputs, and a change that is made to the loaded program (a dropped wait or signal)."""

    neff: Neff
    inputs: Mapping[str, Any]
    edit: Edit | None = None

    def findings(self, seed: int | None = None) -> list[Finding]:
        """Run it under all checks."""
        return checked(self.neff, self.inputs, edit=self.edit, seed=seed)[0]


@dataclass(frozen=True)
class Place:
    """One side as it has to be named; pc and line are -1 for the host, `line` 0 where a whole engine is meant."""

    engine: str
    pc: int
    line: int


@dataclass(frozen=True)
class Expected:
    """The finding that a fault has to give; races may name their sides in either order."""

    kinds: tuple[str, ...]
    place: Place
    other: Place | None


@dataclass(frozen=True)
class Planted:
    """One fault: the program with it, the finding, the same program without it."""

    name: str
    origin: str
    kinds: tuple[str, ...]
    fault: Callable[[], tuple[Program, Expected]]
    twin: Callable[[], Program]


def _place(site: Any) -> Place:
    return Place(site.owner, site.pc, getattr(site.source, "line", None) or -1)


def fits(finding: Finding, wanted: Expected) -> bool:
    """Tell whether a finding is the one wanted: kind, engine, pc and line of both sides."""
    if f"{finding.tool}:{finding.kind}" not in wanted.kinds:
        return False
    places = [_place(site) for site in (finding.site, *finding.others)]
    if finding.tool == "racecheck" and wanted.other is not None:
        return sorted(map(repr, places)) == sorted(map(repr, (wanted.place, wanted.other)))
    return places[0] == wanted.place and (wanted.other is None or wanted.other in places[1:])
