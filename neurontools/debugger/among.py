"""The other ranks, as the session of one of them knows them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from emulator.device import Device
    from neurontools.debugger.execution import LiveExecution
    from neurontools.debugger.history import History
    from neurontools.debugger.live_checks import LiveChecks
    from neurontools.debugger.navigator import Navigator
    from neurontools.debugger.rank_results import RankRow, RanksWaiting
    from neurontools.debugger.stops import Stops

__all__ = ["Among"]


class Among(Protocol):
    """The place of one session among those of all ranks."""

    @property
    def rank(self) -> int:
        """Return the number of the rank."""

    @property
    def selected(self) -> int:
        """Return the rank that commands go to."""

    def device(self) -> Device:
        """Return the device of the rank in the machine as it is now."""

    def navigator(self, execution: LiveExecution, stops: Stops) -> Navigator:
        """Return what goes forward, with all other ranks."""

    def history(self, execution: LiveExecution, navigator: Navigator, stops: Stops) -> History:
        """Return what goes back, with all other ranks."""

    def checks(self, tools: tuple[str, ...]) -> LiveChecks:
        """Return checks of these names for the rank, which run with those of all ranks from the beginning."""

    def select(self, rank: int) -> None:
        """Let commands go to a rank; NotFoundError where there is no such one."""

    def rows(self) -> tuple[RankRow, ...]:
        """Return every rank."""

    def waiting(self) -> RanksWaiting:
        """Return which ranks wait for each other."""

    def still(self) -> AbstractContextManager[None]:
        """Let nobody move while one is looked at, in the middle of a move."""

    @property
    def sessions(self) -> Mapping[int, Any]:
        """Return the Session of every rank that runs a program."""
