"""The ranks of a machine: how each stands, the collective that it is in, and whom it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from neurontools.text.table import duration
from neurontools.tui.labels import label, number_ranges
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Command, Question, Snapshot

if TYPE_CHECKING:
    from neurontools.debugger import Session
    from neurontools.debugger.rank_results import RankRow

__all__ = ["Ranks", "RanksPane"]

_ICONS = {
    "fault": ("✗ fault", "bad"),
    "hang": ("✗ hang ", "bad"),
    "finished": ("✓ done ", "dim"),
    "absent": ("– none ", "dim"),
    "collective": ("⏸ coll ", "warm"),
    "wait": ("⏸ wait ", "warm"),
    "running": ("▶ run  ", "good"),
}
_COUNTED = {"fault": "fault", "hang": "hang", "collective": "in collectives", "finished": "done"}


@dataclass(frozen=True)
class Ranks:
    """All ranks of the machine."""

    def answer(self, session: Session) -> tuple[RankRow, ...]:
        """Return them; none where one program runs alone."""
        return () if session.among is None else session.among.rows()


def _state(row: RankRow) -> str:
    if row.outcome != "running":
        return row.outcome
    if row.collective:
        return "collective"
    return "wait" if row.waits and not row.runs else "running"


class RanksPane(LinesPane):
    """One line a rank; enter makes the other panes show that one."""

    TITLE = "RANKS"
    TWIN = "info ranks"
    MOST = 8
    HELP: ClassVar[str] = "enter: show this rank in all panes, and let commands go to it; { and } go to the next ones"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._numbers: list[int] = []
        self._brought = -1

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for every rank."""
        return (Ranks(),)

    def show(self, snapshot: Snapshot) -> None:
        """Show them in the order of their numbers; where another one was selected, it is brought into sight."""
        rows = snapshot.get(Ranks())
        if rows is None:
            return
        self._numbers = [row.rank for row in rows]
        self.wanted = len(rows)
        states = [_state(row) for row in rows]
        counts = [f"{states.count(state)} {text}" for state, text in _COUNTED.items() if state in states]
        self.border_title = " · ".join([f"RANKS {len(rows)}", *counts])
        wide = len(str(len(rows) - 1))
        self.set_lines([_line(row, state, wide) for row, state in zip(rows, states, strict=True)])
        selected = next((at for at, row in enumerate(rows) if row.selected), 0)
        if selected != self._brought:
            self._brought = selected
            self.move_cursor(selected)

    def enter(self, index: int, column: int | None = None) -> None:
        """Select the rank."""
        if index < len(self._numbers):
            self.post_message(Command(f"rank {self._numbers[index]}", quiet=True))


def _line(row: RankRow, state: str, wide: int) -> Parts:
    icon, role = _ICONS[state]
    head = (("›" if row.selected else " ", "mark"), (f"{row.rank:>{wide}} ", "name"), (icon, role))
    if state == "absent":
        return (*head, (" runs no program", "dim"))
    place = f"{label(row.engine)} pc {row.pc}"
    if row.source is not None and row.source.file is not None:
        place += f" {PurePath(row.source.file).name}:{row.source.line}"
    time = (f" {duration(row.time_ps):>10} ", "dim")
    if state == "finished":
        return (*head, time, (f"{row.events} events", "dim"))
    if not row.collective:
        return (*head, time, (place, "value"), (f"  waits {row.waits_for}" if row.waits_for else "", "warm"))
    # Whom it waits for comes first: on a small terminal the end of the line is not seen.
    whom = (
        f"← rank{'s' if len(row.partners) > 1 else ''} {number_ranges(row.partners)}" if row.partners else "under way"
    )
    return (*head, time, (f"{whom:<10}", "warm" if row.partners else "good"), (f"  {row.collective}", ""),
            (f"  {place}", "value"))  # fmt: skip
