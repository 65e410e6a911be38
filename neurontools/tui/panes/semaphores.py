"""Semaphores and events: values, what changed, and who waits for and signals the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from neurontools.tui.labels import label, number_ranges
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Question, Selected, Selection, Snapshot
from neurontools.tui.questions import Posters, Queues, Semaphores

if TYPE_CHECKING:
    from neurontools.debugger.results import SemaphoreRow

__all__ = ["SemaphoresPane"]

_CELL = 14
Key = tuple[int, str, int]


class SemaphoresPane(LinesPane):
    """Cells in the order of their numbers, a DMA queue's together; below, who waits for and posts the chosen one."""

    TITLE = "SEMAPHORES"
    TWIN = "info semaphores"
    HELP: ClassVar[str] = ("left, right: choose a semaphore, those of a DMA queue together; waiters and posters stand "
                           "below; enter once more: each of a queue by itself")  # fmt: skip
    MOST = 6
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "along(-1)", "previous semaphore", show=False),
        Binding("right", "along(1)", "next semaphore", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: list[Key] = []  # the first of every cell
        self._places: list[list[tuple[int, Key]]] = []  # where the cells of a line end
        self._open: set[str] = set()  # queues whose semaphores stand by themselves
        self._queues: dict[Key, str] = {}
        self._chosen: Key | None = None
        self._before: dict[Key, int] = {}  # values where the device stood last
        self._changed: dict[Key, str] = {}
        self._stood = -1  # events that had happened there
        self._core = -1
        self._snapshot: Snapshot | None = None

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for values, and for the posters of the chosen one."""
        return (Semaphores(), Queues(), *((Posters(*self._chosen),) if self._chosen is not None else ()))

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
        self._queues = {(queue.core, "semaphore", number): queue.name for queue in snapshot.get(Queues()) or ()
                        for number in queue.semaphores if len(queue.semaphores) > 1}  # fmt: skip
        groups: dict[object, list[Key]] = {}
        for key in keys:
            queue = self._queues.get(key, "")
            groups.setdefault(key if not queue or queue in self._open else (key[0], queue), []).append(key)
        self._keys = [group[0] for group in groups.values()]
        lines = self._lines_of([self._cell(group, now, waited) for group in groups.values()])
        details = self._details(rows, snapshot)
        self.wanted = len(lines) + len(details)
        self.border_title = "SEMAPHORES" if lines or details else "SEMAPHORES all zero"
        self.set_lines([*lines, *details])

    def _lines_of(self, cells: list[tuple[str, str]]) -> list[Parts]:
        """Return cells side by side, each as wide as a few columns of one width."""
        lines: list[list[tuple[str, str]]] = []
        self._places, left = [], 0
        for key, (text, role) in zip(self._keys, cells, strict=True):
            wide = -(-(cell_len(text) + 1) // _CELL) * _CELL
            if not lines or left + wide > max(self.size.width, _CELL):
                lines.append([])
                self._places.append([])
                left = 0
            left += wide
            lines[-1].append((text + " " * (wide - cell_len(text)), role))
            self._places[-1].append((left, key))
        return [tuple(line) for line in lines]

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

    def _cell(self, group: list[Key], now: dict[Key, int], waited: set[Key]) -> tuple[str, str]:
        """Return the text of a cell, one semaphore or those of one queue, and its role."""
        kind, values = "E" if group[0][1] == "event" else "S", [now.get(key, 0) for key in group]
        low, high = min(values), max(values)
        changes = {self._changed[key] for key in group if key in self._changed}
        numbers = number_ranges([key[2] for key in group])
        name = f"{self._queues[group[0]]} " if len(group) > 1 else ""
        waits = any(key in waited for key in group)
        text = f"{name}{kind}[{numbers}]={low if low == high else f'{low}…{high}'}"
        text += f"{''.join(sorted(changes))}{'⏳' if waits else ''}"
        chosen = self._chosen in group
        role = "mark" if chosen else "warm" if waits else "good" if changes else ""
        return f"{'›' if chosen else ' '}{text}", role

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
        """Choose a cell; choosing it again shows each of a queue's by itself, or lets it go."""
        key = self._chosen
        if column is not None or key not in self._keys:
            line = self._places[index] if index < len(self._places) else []
            key = next((each for end, each in line if (column or 0) < end), None)
        if key is None:
            return
        queue = self._queues.get(key, "")
        if key == self._chosen and queue:
            self._open ^= {queue}
            self._take(key)
        else:
            self._take(None if key == self._chosen else key)

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
