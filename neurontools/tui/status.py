"""The two lines around the panes: where the session stands, and the tabs of a small terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.events import Click, Key
from textual.message import Message
from textual.widgets import Static

from neurontools.text.table import count, duration
from neurontools.text.visible import visible_line
from neurontools.tui.contrast import readable
from neurontools.tui.labels import label
from neurontools.tui.pane import Pane, Snapshot
from neurontools.tui.questions import Verdict

__all__ = ["StatusLine", "TabLine"]


_BAD = Style(color="#ff4f4f", bold=True)
_LETTERS = "asdfghjklqwertyuiop"


class StatusLine(Static, can_focus=True):
    """Program, rank, chip, core, time, event number, what stopped it. In jump mode it takes the letter of a pane."""

    DEFAULT_CSS = """
    StatusLine { height: 1; background: $panel; color: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, file: str, ranks: int = 0) -> None:
        super().__init__("", markup=False)
        self.file, self.ranks = file, ranks
        self.reason = ""
        self.rate = 0.0
        self.findings = 0
        self.text = ""
        self._jumps: dict[str, Pane] = {}
        self._titles: dict[str, str | None] = {}

    def jump(self, panes: Sequence[Pane]) -> None:
        """Show a letter in the title of every pane; the next key goes to the pane whose letter it is."""
        self._jumps = dict(zip(_LETTERS, panes, strict=False))
        self._titles = {letter: pane.border_title for letter, pane in self._jumps.items()}
        for letter, pane in self._jumps.items():
            pane.border_title = f"({letter}) {self._titles[letter]}"
        self.screen.set_focus(self)

    def on_key(self, event: Key) -> None:
        """Go where the letter says; any other key ends jump mode."""
        if self._jumps:
            event.stop()
            event.prevent_default()
            self.end_jump(self._jumps.get(event.key))

    def on_blur(self) -> None:
        """End jump mode where the mouse has gone elsewhere."""
        self.end_jump(None, back=False)

    def end_jump(self, chosen: Pane | None, back: bool = True) -> None:
        """Remove the letters, and go to a pane or back."""
        jumps, self._jumps = self._jumps, {}
        for letter, pane in jumps.items():
            pane.border_title = self._titles[letter]
        if jumps and chosen is not None:
            chosen.focus()
        elif jumps and back:
            self.post_message(self.Back())

    class Back(Message):
        """Jump mode has ended without a choice."""

    def show(self, snapshot: Snapshot) -> None:
        """Take over a snapshot."""
        state = snapshot.state
        core, engine = state.focus
        where = f"nc{core}" if state.cores == 1 else f"nc{core} of {state.cores}"
        rank = [f"rank {state.rank} of {self.ranks}"] if self.ranks else []
        parts = [self.file, *rank, f"{state.target} {where} {label(engine)}", f"t={duration(state.time_ps)}"]
        verdict = "" if snapshot.running else snapshot.get(Verdict()) or ""
        parts.append(f"#{state.events - 1}" if state.events else "start")  # as `goto` takes them
        parts.append(self._doing(snapshot))
        if self.rate:
            parts.append(f"at most {self.rate:g}/s")
        if self.findings:
            parts.append(count(self.findings, "finding"))
        if verdict:  # what went wrong comes first: on a small terminal the end of the line is not seen
            parts = [f"✗ {verdict}", *(part for part in parts if part[:1] not in "✗✓")]
        text = visible_line(" " + " · ".join(parts))
        if text != self.text:
            self.text = text
            role = readable(self.rich_style + _BAD) if verdict else ""
            self.update(Text(text, style=role, no_wrap=True, overflow="ellipsis"), layout=False)  # always one line

    def _doing(self, snapshot: Snapshot) -> str:
        state = snapshot.state
        if snapshot.running:
            return "▶ running (p pauses)"
        dead = "core dump, " if snapshot.post_mortem else ""
        if state.outcome != "running":
            return {"fault": f"✗ {dead}fault", "hang": f"✗ {dead}hang", "finished": "✓ finished"}[state.outcome]
        source = state.ahead.source if state.ahead is not None else None
        at = f" at {PurePath(source.file or '').name}:{source.line}" if source is not None else ""
        return f"■ {dead}{self.reason or 'stopped'}{at}"


class TabLine(Static):
    """The tabs of a small terminal; a click or the digit chooses one."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $surface; display: none; text-wrap: nowrap; }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, number: int) -> None:
            self.number = number
            super().__init__()

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("", markup=False)
        self._names, self._ends = names, [0] * len(names)

    def choose(self, number: int) -> None:
        """Show which tab is open."""
        text = Text(no_wrap=True)
        self._ends = []
        for index, name in enumerate(self._names):
            if index == number:
                text.append(f"[{index + 1} {name}]", "reverse")
            else:
                text.append(f" {index + 1} {name} ")
            text.append(" ")
            self._ends.append(text.cell_len)
        self.update(text)

    def on_click(self, event: Click) -> None:
        """Open the tab under the mouse."""
        number = next((index for index, end in enumerate(self._ends) if event.x < end), None)
        if number is not None:
            self.post_message(self.Chosen(number))
