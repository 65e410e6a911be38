"""Which checks run alongside a session, and what they have found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from neurontools.debugger.execution import LiveExecution
from neurontools.debugger.interrupt import Flag, interruptible
from neurontools.debugger.results import Checks

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.journal import Edit
    from neurontools.debugger.live_checks import LiveChecks

__all__ = ["Checking"]

_LONG = 20_000  # events that are not run a second time without being asked


class AmongChecks(Protocol):
    """The ranks that a session is one of, as far as checks go."""

    def checks(self, tools: tuple[str, ...]) -> LiveChecks:
        """Return checks of these names for the rank, which run with those of all ranks from the beginning."""


class Checking:
    """Which checks run alongside an execution, and what they have found up to where the debugger stands."""

    def __init__(self, execution: LiveExecution, among: AmongChecks | None = None) -> None:
        self._execution, self._among = execution, among
        self._live: LiveChecks | None = None
        self._nan: LiveChecks | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the names of the checks that are running."""
        return () if self._live is None else self._live.tools

    def enable_checks(self, *names: str) -> Checks:
        """Run checks alongside, from the beginning of the program: names as in `emulator.checks.tools_of`, or "all".

        They run on a device of their own, at the latest when `findings` asks. Raises InputError for unknown names.
        """
        from emulator.checks import tools_of  # deferred: start-up

        wanted = tools_of((*self.tools, *(names or ("all",))))
        if wanted != self.tools:
            self._live = self._made(wanted)
        return Checks(self.tools, len(self.findings()))

    def disable_checks(self, *names: str) -> Checks:
        """Stop checks, all without names."""
        from emulator.checks import tools_of  # deferred: start-up

        left = tuple(tool for tool in self.tools if tool not in tools_of(names or ("all",)))
        self._live = self._made(left) if left else None
        return Checks(left, len(self.findings()))

    def _made(self, tools: tuple[str, ...], edits: tuple[Edit, ...] = ()) -> LiveChecks:
        from neurontools.debugger.live_checks import LiveChecks  # deferred: start-up

        if self._among is not None:
            return self._among.checks(tools)
        return LiveChecks(self._execution.loaded(), tools, edits)

    def _follow_edits(self) -> None:
        """Begin again where the person has changed something, or gone back past a change."""
        log = self._execution.log
        edits = () if log is None else log.edits
        # Checks only go forward: what they have seen of a run that was since changed does not count.
        if self._live is not None and [one.number for one in self._live.edits] != [one.number for one in edits]:
            self._live = self._made(self._live.tools, edits)

    def findings(self) -> tuple[Finding, ...]:
        """Return what the checks found up to where the session stands; what came later returns with going forward."""
        if self._live is None:
            return ()
        self._follow_edits()
        flag = Flag()
        with interruptible(flag):
            self._live.advance(self._execution.events, lambda: flag.raised)
        return self._live.findings(self._execution.events)

    @property
    def explains_nan(self) -> bool:
        """Return whether `nan_findings` has an answer here: at the end of a short run that has no checks of its own."""
        here = self._execution
        return self._live is None and here.outcome == "finished" and here.events <= _LONG

    def nan_findings(self) -> tuple[Finding, ...]:
        """Return where the NaN of outputs come from, by a run of its own; nothing where `explains_nan` is False."""
        from neurontools.debugger.live_checks import LiveChecks  # deferred: start-up

        here = self._execution
        if not self.explains_nan:
            return ()
        edits = () if here.log is None else here.log.edits
        if self._nan is None or self._nan.edits != edits:
            self._nan = LiveChecks(here.loaded(), ("nancheck",), edits)
        flag = Flag()
        with interruptible(flag):
            self._nan.advance(here.events, lambda: flag.raised)
        return self._nan.findings(here.events)

    def found_at(self, events: int, tool: str) -> bool:
        """Return whether a check, of this name or any, found something first at exactly a position."""
        if self._live is None:
            return False
        self._follow_edits()
        self._live.advance(events)
        return bool(self._live.new_at(events, tool))
