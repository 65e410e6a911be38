"""Source lines and words, with the engines that stand at them and breakpoints in the gutter."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.markup import escape

from neurontools.debugger.names import short_engine
from neurontools.text.visible import visible_line
from neurontools.tui.labels import label
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Explain, Question, Selected, Snapshot
from neurontools.tui.questions import Source, Words
from neurontools.tui.syntax import source_parts, word_parts

if TYPE_CHECKING:
    from neurontools.debugger.results import DisassemblyRow, SourceRow

__all__ = ["DisassemblyPane", "SourcePane"]

_MARKERS = 9  # columns in front of a source line for the engines that stand there


class SourcePane(LinesPane):
    """The source file in which the focus engine stands; it follows the engine."""

    TITLE = "SOURCE"
    TWIN = "list"
    WEIGHT = 1.2
    HELP: ClassVar[str] = "enter: go back to following the focus engine; b: break at the line under the cursor"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.file = ""
        self.texts: list[str] = []
        self._stops: dict[int, tuple[int, ...]] = {}
        self._line = 0
        self._title = self.TITLE

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for the file."""
        return (Source(),)

    def show(self, snapshot: Snapshot) -> None:
        """Show the file, and move the cursor where the focus engine stands when that changes."""
        answer = snapshot.get(Source())
        if answer is None:
            why = snapshot.error(Source())
            if why:
                self.file, self.texts, self._stops = "", [], {}
                self._head(f"SOURCE none: {why}")
                self.wanted = 0
                self.set_lines([])
            return
        self.wanted = None
        listing = answer.listing
        if listing.file != self.file:
            self.file, self._line = listing.file, 0
        self._head(f"SOURCE {PurePath(listing.file).name}")
        self.texts = [row.text for row in listing.rows]
        self._stops = {row.number: row.breakpoints for row in listing.rows if row.breakpoints}
        parts = source_parts(tuple(row.text.expandtabs(4) for row in listing.rows), listing.file.endswith(".py"))
        wide = len(str(len(listing.rows)))
        self.set_lines([_source_line(row, row.number == answer.line, each, wide)
                        for row, each in zip(listing.rows, parts, strict=True)])  # fmt: skip
        if answer.line and answer.line != self._line:
            self._line = answer.line
            self.move_cursor(answer.line - 1)
            self.reveal(answer.line - 1)

    def on_resize(self, event: Resize) -> None:
        """Keep the line in sight at which the focus engine stands."""
        super().on_resize(event)
        if self._line:
            self.call_after_refresh(self.reveal, self._line - 1)

    def _head(self, title: str) -> None:
        if title != self._title:
            self._title = title
            self.border_title = escape(visible_line(title))

    def break_command(self) -> str:
        """Return the command that sets or deletes the breakpoint under the cursor, "" without a line."""
        number = self.cursor + 1
        if not self.file or number > len(self.texts):
            return ""
        stops = self._stops.get(number, ())
        return f"delete {' '.join(map(str, stops))}" if stops else f"break {self.file}:{number}"

    def enter(self, index: int, column: int | None = None) -> None:
        """Choose the line."""
        if self.file and index < len(self.texts):
            self.post_message(Selected("line", (self.file, index + 1)))

    def searched(self) -> list[str]:
        """Return the lines of the file, without what stands in front of them."""
        return self.texts


def _source_line(row: SourceRow, here: bool, parts: Parts, wide: int) -> Parts:
    names = ",".join(row.engines).upper()
    if len(names) > _MARKERS - 1:
        names = names[: _MARKERS - 2] + "…"
    return (
        ("●" if row.breakpoints else " ", "bad"),
        (f"{names:>{_MARKERS - 1}}", "name"),
        ("▶" if here else " ", "good"),
        (f"{row.number:>{wide}} ", "good" if here else "dim"),
        *parts,
    )


class DisassemblyPane(LinesPane):
    """Words of the focus engine around where it stands, and whether their waits hold."""

    TITLE = "DISASSEMBLY"
    TWIN = "disassemble"
    HELP: ClassVar[str] = "enter: show what the word reads and writes; b: break at it; left, right: scroll sideways"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "sideways(-8)", "left", show=False),
        Binding("right", "sideways(8)", "right", show=False),
        Binding("d", "explain", "every field of the word, its cost, its waits", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._around = -1  # pc in the middle, -1 to follow the engine
        self._rows: tuple[DisassemblyRow, ...] = ()
        self._owner: tuple[int, str] = (0, "")
        self._words = 0
        self._events = -1
        self._wanted = -1  # pc to put the cursor on when it is there

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for as many words as there are lines."""
        return (self._question,)

    @property
    def _question(self) -> Words:
        return Words(self._around, max(self.size.height, 1))

    def show(self, snapshot: Snapshot) -> None:
        """Show them; where the engine has moved, follow it again."""
        if snapshot.state.events != self._events or snapshot.state.focus != self._owner:
            moved = self._events >= 0
            self._events, self._owner = snapshot.state.events, snapshot.state.focus
            if moved and self._around >= 0:
                self._around = -1
                self.ask()
                return
        answer = snapshot.get(self._question)
        if answer is None:
            return
        self._rows, self._words = answer.rows, answer.words
        self._owner = answer.core, answer.engine
        self.border_title = f"DISASSEMBLY {label(answer.engine)}"
        standing = next((row.pc for row in answer.rows if row.state == "fault"), -1)
        if standing < 0:
            standing = next((row.pc for row in answer.rows if row.state in ("flying", "next")), -1)
        self.set_lines([_word_line(row, row.pc == standing) for row in answer.rows] or [(("no words", "dim"),)])
        pcs = [row.pc for row in answer.rows]
        wanted = self._wanted if self._wanted in pcs else standing if self._around < 0 else -1
        if wanted in pcs:
            self.move_cursor(pcs.index(wanted))
        self._wanted = -1

    @property
    def pc(self) -> int:
        """Return the pc under the cursor, -1 without one."""
        return self._rows[self.cursor].pc if self.cursor < len(self._rows) else -1

    def break_command(self) -> str:
        """Return the command that sets or deletes the breakpoint under the cursor, "" without a word."""
        if self.pc < 0:
            return ""
        stops = self._rows[self.cursor].breakpoints
        core, engine = self._owner
        return f"delete {' '.join(map(str, stops))}" if stops else f"break nc{core} {short_engine(engine)}:{self.pc}"

    def go_to(self, pc: int) -> None:
        """Show the words around a pc with the cursor on it."""
        self._around = self._wanted = pc
        self.ask()

    def enter(self, index: int, column: int | None = None) -> None:
        """Choose the word."""
        if index < len(self._rows):
            self.post_message(Selected("instruction", (*self._owner, self._rows[index].pc)))

    def action_cursor(self, by: int) -> None:
        """Move the cursor; at an end of what is shown, show what follows."""
        if self._rows and 0 <= self.cursor + by < len(self._rows):
            super().action_cursor(by)
        elif self._rows:
            self.go_to(max(0, min(self.pc + by, self._words - 1)))

    def action_page(self, by: int) -> None:
        """Move by a screen of words."""
        if self._rows:
            self.go_to(max(0, min(self.pc + by * max(1, self.size.height - 1), self._words - 1)))

    def action_explain(self) -> None:
        """Open a window with all that is known of the word under the cursor."""
        if self.pc >= 0:
            self.post_message(Explain(*self._owner, self.pc))

    def action_sideways(self, by: int) -> None:
        """Scroll sideways."""
        self.columns = max(0, self.columns + by)
        self.refresh()


def _word_line(row: DisassemblyRow, here: bool) -> Parts:
    mark = "▶" if here else {"flying": "»", "done": "·"}.get(row.state, " ")
    waits = row.state in ("next", "") and row.satisfied is not None
    place = f"  {PurePath(row.source.file or '').name}:{row.source.line}" if row.source is not None else ""
    return (
        ("●" if row.breakpoints else " ", "bad"),
        (mark, "good"),
        (f"{row.pc:>6} ", "good" if here else "dim"),
        (("✓ ", "good") if row.satisfied else ("✗ ", "warm")) if waits else ("  ", ""),
        *(((row.text, "dim"),) if row.state == "done" else word_parts(row.text)),
        (place, "dim"),
    )
