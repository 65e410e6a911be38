"""Registers of engines: which were loaded, with what, and branches that go by one that was not.

A register that nothing loaded holds what the program before it left there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.checks.finding import Finding, Site
from emulator.checks.kinds import KINDS
from formats import isa
from formats.isa import Dataflow, ReduceCommand
from formats.isa.behaviour import EngineState
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS

__all__ = ["Registers"]

_LIMIT = 50
_STARTS = (ReduceCommand.RESET, ReduceCommand.RESET_REDUCE, ReduceCommand.LOAD_REDUCE)


class _Loaded(NamedTuple):
    """Where a register was loaded with bytes of which nothing wrote some, and which."""

    site: Site
    unwritten: str


_NEVER = _Loaded(Site(-1, "", "", -1, ""), "")  # for a register that nothing loaded


@dataclass
class _Held:
    """Accumulators of one engine: lanes that something has set, and the first word that went by one that was not."""

    ready: int = 0
    spread: int = 0
    spoilt: Site | None = None


class Registers:
    """The registers of every engine, as far as words load and compare them."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._loaded: dict[tuple[int, str, int], _Loaded | None] = {}  # None where all was written
        self._told: set[tuple[int, str, int]] = set()
        self._held: dict[tuple[int, str], _Held] = {}

    def take(
        self, word: isa.Instruction, core: int, engine: str, pc: int, site: Callable[[], Site], unwritten: str
    ) -> None:
        """Note what a word loads and compares; `unwritten` names those of the bytes it loads that nothing wrote.

        `site` is the word's, for who has to be told of it.
        """
        loads = _Loaded(site(), unwritten) if unwritten else None
        for register in word.loaded:
            self._loaded[core, engine, register] = loads
        for register in word.compared:
            loaded = self._loaded.get((core, engine, register), _NEVER)
            if loaded is not None and (core, engine, pc) not in self._told:
                self._tell(site(), register, None if loaded is _NEVER else loaded)

    def fold(self, word: isa.Instruction, core: int, engine: str, site: Callable[[], Site]) -> None:
        """Follow what a word does with the accumulator registers of its engine, one of each lane; `site` is the word's.

        What nothing reset shows where it is read: registers that only fill up do no harm.
        """
        held = self._held.get((core, engine)) or self._held.setdefault((core, engine), _Held())
        command = int(getattr(word, "reduce_command", ReduceCommand.IDLE))
        is_plain = word.DATAFLOW is not Dataflow.ACCUMULATORS and word.STATE is not EngineState.ACCUMULATORS
        if command == ReduceCommand.IDLE and is_plain and held.spoilt is None:
            return
        lanes = int(getattr(word, "channels", PARTITIONS))
        if command in _STARTS:
            held.ready, held.spoilt = max(held.ready, lanes), None if lanes >= held.spread else held.spoilt
        elif command == ReduceCommand.REDUCE and lanes > held.ready:
            held.spoilt, held.spread, held.ready = held.spoilt or site(), lanes, lanes
        if word.DATAFLOW is Dataflow.ACCUMULATORS and lanes > held.ready:
            self._unreset(site(), "reads", "no word of its engine has folded anything into them", ())
        elif held.spoilt is not None and (
            word.DATAFLOW is Dataflow.ACCUMULATORS or ("reduce_res" in word.OPERANDS and word.uses("reduce_res"))
        ):
            self._unreset(held.spoilt, "folds its results into", "no word of its engine has reset them", (site(),))
        if command == ReduceCommand.IDLE and word.STATE is EngineState.ACCUMULATORS and engine == "DVE":
            held.ready, held.spoilt = 0, None  # hardware.md 3.4: behind such a word their state is undefined

    def _unreset(self, site: Site, does: str, why: str, others: tuple[Site, ...]) -> None:
        if (site.core, site.engine, site.pc) in self._told or len(self._told) >= _LIMIT:
            return
        self._told.add((site.core, site.engine, site.pc))
        message = (
            f"{site.engine} pc {site.pc} {does} the accumulator registers, and {why}: "
            "they hold what the program before this one left there"
        )
        hint = "let a word in front of this one reset the accumulators and fold its results into them"
        severity = KINDS["initcheck:undefined-register"].severity
        self.findings.append(Finding("initcheck", "undefined-register", severity, message, site, others, hint=hint))

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
