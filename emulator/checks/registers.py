"""Registers of engines: which were loaded, with what, and branches that go by one that was not.

A register that nothing loaded holds what the program before it left there.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator.checks.finding import Finding, Site
from emulator.checks.kinds import KINDS
from formats import isa
from formats.isa import Dataflow, ReduceCommand
from formats.isa.behaviour import EngineState

__all__ = ["ACCUMULATING", "Registers"]

ACCUMULATING = (EngineState.OPTIONAL, EngineState.ACCUMULATORS)  # of the words that have to do with accumulators
_LIMIT = 50


class _Loaded(NamedTuple):
    """Where a register was loaded, and what of it nothing wrote ("" where all of it was)."""

    site: Site
    unwritten: str


class Registers:
    """The registers of every engine, as far as words load and compare them."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._loaded: dict[tuple[int, str, int], _Loaded] = {}
        self._told: set[tuple[int, str, int]] = set()
        self._folded: set[tuple[int, str]] = set()  # engines whose accumulators something was folded into

    def take(self, word: isa.Instruction, site: Site, unwritten: str) -> None:
        """Note what a word loads and compares; `unwritten` names those of the bytes it loads that nothing wrote."""
        for register in word.loaded:
            self._loaded[site.core, site.engine, register] = _Loaded(site, unwritten)
        for register in word.compared:
            loaded = self._loaded.get((site.core, site.engine, register))
            if (loaded is None or loaded.unwritten) and (site.core, site.engine, site.pc) not in self._told:
                self._tell(site, register, loaded)

    def fold(self, word: isa.Instruction, core: int, engine: str) -> bool:
        """Note what a word does with accumulators; return whether it reads those that nothing was folded into."""
        if word.DATAFLOW is not Dataflow.ACCUMULATORS:
            if int(getattr(word, "reduce_command", ReduceCommand.IDLE)) != ReduceCommand.IDLE:
                self._folded.add((core, engine))
            return False
        return (core, engine) not in self._folded

    def unfolded(self, site: Site) -> None:
        """Report a read of accumulators that nothing was folded into."""
        if (site.core, site.engine, site.pc) in self._told or len(self._told) >= _LIMIT:
            return
        self._told.add((site.core, site.engine, site.pc))
        message = (
            f"{site.engine} pc {site.pc} reads the accumulator registers, and no word of its engine has folded "
            "anything into them: they hold what the program before this one left there"
        )
        hint = "let a word in front of this one reset the accumulators and fold its results into them"
        severity = KINDS["initcheck:undefined-register"].severity
        self.findings.append(Finding("initcheck", "undefined-register", severity, message, site, (), hint=hint))

    def _tell(self, site: Site, register: int, loaded: _Loaded | None) -> None:
        if len(self._told) >= _LIMIT:
            return
        self._told.add((site.core, site.engine, site.pc))
        others: tuple[Site, ...] = ()
        if loaded is None:
            why, hint = "which nothing loaded", f"load R[{register}] before this word"
        else:
            why = f"which pc {loaded.site.pc} loaded from {loaded.unwritten} that nothing wrote"
            hint = f"write what pc {loaded.site.pc} loads before it does"
            others = (loaded.site,)
        message = f"{site.engine} pc {site.pc} compares R[{register}], {why}: where it goes on is open"
        severity, details = KINDS["initcheck:undefined-register"].severity, {"register": register}
        self.findings.append(
            Finding("initcheck", "undefined-register", severity, message, site, others, hint=hint, details=details)
        )
