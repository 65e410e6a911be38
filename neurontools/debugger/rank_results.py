"""What the debugger's commands over ranks return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.machine.ranks.explain import RankHang, RankWait
    from formats.neff import SourceLocation

__all__ = ["RankRow", "RanksWaiting"]


class RanksWaiting(NamedTuple):
    """Which ranks are in a collective that has not ended; `hang` says why, once nothing in the machine moves."""

    waits: tuple[RankWait, ...]
    hang: RankHang | None


class RankRow(NamedTuple):
    """One rank: how it stands, how many engines run, wait and are done, and where the one stands that holds it up.

    `collective` is what it waits in for its `partners`, "" outside of any; where all have come, there are none.
    That engine is the one that called the collective it is in, else one that waits, else that of its focus.
    `outcome` is "running", "finished", "fault", "hang", or "absent" where the rank runs no program.
    """

    rank: int
    selected: bool
    outcome: str
    time_ps: int
    events: int
    runs: int
    waits: int
    done: int
    core: int
    engine: str
    pc: int
    source: SourceLocation | None
    waits_for: str
    collective: str = ""
    partners: tuple[int, ...] = ()
