"""Engines: what each does, what it will do next, and what it waits for, with who could end the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from neurontools.debugger.names import short_engine
from neurontools.text.table import duration
from neurontools.tui.labels import SPARKS, label, sparkline
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Command, Explain, Question, Selected, Snapshot
from neurontools.tui.questions import Engines, Used
from neurontools.tui.syntax import word_parts

if TYPE_CHECKING:
    from neurontools.debugger.blockers import Blocker
    from neurontools.debugger.results import DisassemblyRow, EngineRow

__all__ = ["WIDE", "EnginesPane"]

WIDE = 100  # columns in which there is room for a sparkline

_ICONS = {
    "run": ("▶ run ", "good"),
    "wait": ("⏸ wait", "warm"),
    "fault": ("✗ flt ", "bad"),
    "done": ("✓ done", "dim"),
    "stopped": ("■ stop", "bad"),
}


class EnginesPane(LinesPane):
    """Two lines an engine: state, pc and oldest word; then its wait, or the word after it. One if finished."""

    TITLE = "ENGINES"
    TWIN = "info engines"
    MOST = 15
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "explain", "every field of the engine's word, its cost, its waits", show=False),
    ]
    HELP: ClassVar[str] = "enter: make the engine the focus and show what its word reads and writes"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[tuple[EngineRow, int]] = []

    @property
    def _each(self) -> int:
        return 2

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for every engine, and where there is room how busy each was."""
        return (Engines(self._each), *((Used(SPARKS),) if self.size.width >= WIDE else ()))

    def show(self, snapshot: Snapshot) -> None:
        """Show engines in fixed lines, so that nothing moves while stepping."""
        answer = snapshot.get(Engines(self._each))
        if answer is None:
            return
        lines: list[Parts] = []
        self._rows = []
        used = snapshot.get(Used(SPARKS)) if self.size.width >= WIDE else None
        for row, words, blocker in zip(*answer, strict=True):
            spark = sparkline(used.get(row.engine)) + " " if used is not None else ""
            block = [_head(row, words, spark)]
            if row.state != "done":
                block += _below(row, words, blocker, self._each - 1)
            lines += block
            self._rows += [(row, index) for index in range(len(block))]
        self.wanted = len(lines)
        self.set_lines(lines)

    def action_explain(self) -> None:
        """Open a window with all that is known of the engine's word."""
        if self.cursor < len(self._rows):
            row = self._rows[self.cursor][0]
            self.post_message(Explain(row.core, row.engine, row.pc))

    def enter(self, index: int, column: int | None = None) -> None:
        """Focus the engine, and choose its word."""
        if index < len(self._rows):
            row = self._rows[index][0]
            self.post_message(Command(f"focus nc{row.core} {short_engine(row.engine)}"))
            self.post_message(Selected("instruction", (row.core, row.engine, row.pc)))


def _head(row: EngineRow, words: tuple[DisassemblyRow, ...], spark: str) -> Parts:
    icon, role = _ICONS[row.state]
    name = label(row.engine)
    parts = [
        ("›" if row.focus else " ", "mark"),
        (f"{name:<5}", "name"),
        (icon, role),
        (f" {spark}", "good"),
        (f"{row.pc:>6} ", "dim" if row.state == "done" else "value"),
    ]
    if row.state == "done":
        return (*parts, (f"{row.completed} of {row.words} words" if row.words else "no words", "dim"))
    word = words[0] if words else None
    if row.state == "fault" and word is not None:  # that its waits hold would look as if the word were right
        word = word._replace(satisfied=None)
    return (*parts, *_word(word, row.text or ""))


def _word(word: DisassemblyRow | None, text: str) -> Parts:
    mark = ("", "") if word is None or word.satisfied is None else ("✓ ", "good") if word.satisfied else ("✗ ", "warm")
    stop = ("● ", "bad") if word is not None and word.breakpoints else ("", "")
    return (stop, mark, *word_parts(text))


def _below(row: EngineRow, words: tuple[DisassemblyRow, ...], blocker: Blocker | None, count: int) -> list[Parts]:
    lines: list[Parts] = []
    if row.state == "wait" and row.waits_for:
        since = f"  since {duration(row.since_ps)}" if row.since_ps is not None else ""
        at = f"pc {blocker.at}" if blocker is not None else ""
        who = _who(blocker, row.core)
        lines.append(((f"      {at:>7} waits ", "dim"), (row.waits_for, "warm"), *who, (since, "dim")))
    for word in words[1:]:
        lines.append(((f"             {word.pc:>6} ", "dim"), *_word(word, ""), *word_parts(word.text, "dim")))
    lines += [()] * count
    return lines[:count]


def _who(blocker: Blocker | None, core: int) -> Parts:
    """Return who could end a wait, as the end of a line."""
    if blocker is None:
        return ()
    if blocker.overshoot or not blocker.pending:
        return ((f"  ← {blocker.cause}: {blocker.verdict}", "bad"),)
    queued = f"behind pc {blocker.behind}" if blocker.state == "queued" else blocker.state
    state = blocker.cause.value if blocker.cause.root else queued
    more = f" and {blocker.pending - 1} more" if blocker.pending > 1 else ""
    other = f"nc{blocker.core} " if blocker.core != core else ""
    role = "bad" if blocker.cause.root else "value"
    return ((f"  ← {other}{label(blocker.engine)} pc {blocker.pc} ({state}){more}", role),)
