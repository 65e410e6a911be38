"""DMA queues: how full each is, what moves, and the transfers of the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neurontools.text.table import bytes_text
from neurontools.tui.labels import SPARKS, number_ranges, sparkline
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Question, Selected, Selection, Snapshot
from neurontools.tui.panes.engines import WIDE
from neurontools.tui.questions import Queues, Transfers, Used

if TYPE_CHECKING:
    from neurontools.debugger.results import QueueRow

__all__ = ["QueuesPane"]

_BAR = 10


class QueuesPane(LinesPane):
    """One line a queue; the transfers of the chosen one stand below it."""

    TITLE = "QUEUES"
    TWIN = "info queues"
    MOST = 8
    HELP: ClassVar[str] = "enter: show the transfers of a queue, or hide them"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._open: tuple[int, str] | None = None
        self._rows: list[tuple[int, str] | None] = []

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for the queues, and for the transfers of the chosen one."""
        used = (Used(SPARKS),) if self.size.width >= WIDE else ()
        return (Queues(), *used, *((Transfers(*self._open),) if self._open is not None else ()))

    def show(self, snapshot: Snapshot) -> None:
        """Show them."""
        rows = snapshot.get(Queues())
        if rows is None:
            return
        lines: list[Parts] = []
        self._rows = []
        wide = max((len(row.name) for row in rows), default=0)
        used = snapshot.get(Used(SPARKS)) if self.size.width >= WIDE else None
        for row in rows:
            lines.append(_line(row, wide, sparkline(used.get(row.name)) if used is not None else ""))
            self._rows.append((row.core, row.name))
            if (row.core, row.name) == self._open:
                transfers = snapshot.get(Transfers(*self._open), ())
                lines += [((f"   {text}", "dim"),) for text in transfers or ("no transfer is under way",)]
                self._rows += [None] * (len(lines) - len(self._rows))
        self.wanted = len(lines)
        self.border_title = "QUEUES" if lines else "QUEUES none"
        self.set_lines(lines)

    def enter(self, index: int, column: int | None = None) -> None:
        """Show or hide the transfers of a queue."""
        key = self._rows[index] if index < len(self._rows) else None
        if key is not None:
            self._open = None if key == self._open else key
            self.post_message(Selected("queue", key))
            self.ask()

    def choose(self, selection: Selection) -> None:
        """Show the transfers of a queue that is chosen elsewhere."""
        if selection.kind == "queue" and self._open is not None:
            self._open = selection.value


def _line(row: QueueRow, wide: int, spark: str) -> Parts:
    waiting = row.pending - row.moving
    moving = min(row.moving, _BAR)
    full = min(waiting, _BAR - moving)
    tail = row.completed + row.pending
    signals = f"S[{number_ranges(row.semaphores)}]" if row.semaphores else ""
    return (
        (f"{row.name:<{wide}} ", "name"),
        (f"{row.kind:<8}"[:8] + f"ring {row.ring:<2} ", "dim"),
        (f"{spark}  " if spark else "", "good"),
        ("▓" * moving, "good"),
        ("▒" * full, "warm"),
        ("░" * (_BAR - moving - full), "dim"),
        (f" head {row.completed:<4} tail {tail:<4} ", ""),
        (f"in flight {row.moving:<3}", "good" if row.moving else "dim"),
        (f" {bytes_text(row.nbytes):>10}", ""),
        (f"  {signals}", "semaphore"),
        (f"  → {row.next}" if row.next else "", "dim"),
    )
