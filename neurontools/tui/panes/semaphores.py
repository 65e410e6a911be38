"""Semaphores and events: values, what changed, and who waits for and signals the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from neurontools.tui.labels import label
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Question, Selected, Selection, Snapshot
from neurontools.tui.questions import Posters, Semaphores

if TYPE_CHECKING:
    from neurontools.debugger.results import SemaphoreRow

__all__ = ["SemaphoresPane"]

_CELL = 14
Key = tuple[int, str, int]


class SemaphoresPane(LinesPane):
    """Cells of fixed width in the order of their numbers; below them the waiters and posters of the chosen one."""

    TITLE = "SEMAPHORES"
    TWIN = "info semaphores"
    HELP: ClassVar[str] = "left, right: choose a semaphore; its waiters and posters stand below"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "along(-1)", "previous semaphore", show=False),
        Binding("right", "along(1)", "next semaphore", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: list[Key] = []
        self._chosen: Key | None = None
        self._before: dict[Key, int] = {}  # values where the device stood last
        self._changed: dict[Key, str] = {}
        self._stood = -1  # events that had happened there
        self._core = -1
        self._snapshot: Snapshot | None = None

    @property
    def _columns(self) -> int:
        return max(1, self.size.width // _CELL)

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for values, and for the posters of the chosen one."""
        return (Semaphores(), *((Posters(*self._chosen),) if self._chosen is not None else ()))

    def show(self, snapshot: Snapshot) -> None:
        """Show cells; ↑ and ↓ mark what changed since the device stood elsewhere."""
        rows = snapshot.get(Semaphores())
        if rows is None:
            return
        self._snapshot = snapshot
        now = {(row.core, row.kind, row.number): row.value for row in rows}
        self._mark(snapshot, now)
        gone = [key for key in self._changed if key not in now]
        keys = sorted([*now, *gone], key=lambda key: (key[0], key[1] != "semaphore", key[2]))
        waited = {(row.core, row.kind, row.number) for row in rows if row.waiters}
        self._keys = keys
        cells = [self._cell(key, now.get(key, 0), key in waited) for key in keys]
        across = self._columns
        lines: list[Parts] = [
            tuple(part for cell in cells[start : start + across] for part in cell)
            for start in range(0, len(cells), across)
        ]
        self.set_lines([*lines, *self._details(rows, snapshot)] or [(("all are zero", "dim"),)])

    def _mark(self, snapshot: Snapshot, now: dict[Key, int]) -> None:
        """Note what differs from where the device stood before this move."""
        events, core = snapshot.state.events, snapshot.state.focus[0]
        if core != self._core:
            self._core, self._before, self._changed, self._stood = core, now, {}, events
        elif events != self._stood:
            before = self._before
            self._changed = {
                key: "↑" if now.get(key, 0) > before.get(key, 0) else "↓"
                for key in {**before, **now}
                if now.get(key, 0) != before.get(key, 0)
            }
        if not snapshot.running:
            self._before, self._stood = now, events

    def _cell(self, key: Key, value: int, waited: bool) -> Parts:
        name = f"{'E' if key[1] == 'event' else 'S'}[{key[2]}]"
        text = f"{name}={value}{self._changed.get(key, '')}{'⏳' if waited else ''}"
        role = "mark" if key == self._chosen else "warm" if waited else "good" if key in self._changed else ""
        pointer = "›" if key == self._chosen else " "
        wide = len(text) + (1 if waited else 0)  # the hourglass takes two columns
        return ((f"{pointer}{text}" + " " * max(1, _CELL - 1 - wide), role),)

    def _details(self, rows: tuple[SemaphoreRow, ...], snapshot: Snapshot) -> list[Parts]:
        if self._chosen is None:
            return [(("waits ", "dim"), (waiter, "warm")) for row in rows for waiter in row.waiters]
        row = next((row for row in rows if (row.core, row.kind, row.number) == self._chosen), None)
        found: list[Parts] = [
            (("  waits ", "dim"), (waiter, "warm")) for waiter in (row.waiters if row is not None else ())
        ]
        signals = snapshot.get(Posters(*self._chosen))
        if signals is not None and not signals:
            return [*found, (("  posted by nobody: nothing in the program signals it", "bad"),)]
        for signal in signals or ():
            state = f"behind pc {signal.behind}" if signal.state == "queued" else signal.state
            amount = "writes" if signal.amount is None else f"{signal.amount:+d}"
            found.append((
                (f"  posts {amount:>4} ", "dim"),
                (f"{label(signal.engine)} pc {signal.pc} ", "name"),
                (f"({state}) ", "dim" if signal.state == "done" else "good"),
                (signal.text, "dim"),
            ))  # fmt: skip
        return found

    def action_along(self, by: int) -> None:
        """Choose the previous or next semaphore."""
        if self._keys:
            at = self._keys.index(self._chosen) + by if self._chosen in self._keys else 0
            self._take(self._keys[max(0, min(at, len(self._keys) - 1))])

    def enter(self, index: int, column: int | None = None) -> None:
        """Choose a cell; choosing it again lets it go."""
        at = index * self._columns + (0 if column is None else min(column // _CELL, self._columns - 1))
        if column is None and self._chosen in self._keys:
            self._take(None)
        elif at < len(self._keys):
            self._take(None if self._keys[at] == self._chosen else self._keys[at])

    def choose(self, selection: Selection) -> None:
        """Follow a semaphore that is chosen elsewhere."""
        if selection.kind == "semaphore" and selection.value != self._chosen:
            self._chosen = selection.value
            self.ask()

    def _take(self, key: Key | None) -> None:
        self._chosen = key
        if key is not None:
            self.post_message(Selected("semaphore", key))
        self.ask()
        if self._snapshot is not None:
            self.show(self._snapshot)
