"""Findings, faults and warnings; and the log of commands with what they said."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import ClassVar

from textual.events import Resize

from neurontools.tui.carry_out import Done
from neurontools.tui.lines import LinesPane, Parts
from neurontools.tui.pane import Question, Snapshot
from neurontools.tui.questions import Checking, Findings

__all__ = ["FindingsPane", "LogPane", "lines_of"]

_KEPT = 5000  # lines of the log
_BOLD = re.compile("\033\\[[0-9;]*m")


def lines_of(done: Done) -> list[Parts]:
    """Return what a command said as lines of a pane."""
    return [((_BOLD.sub("", text), "mark" if "\033" in text else ""),) for text in done.lines]


class FindingsPane(LinesPane):
    """What the checks found, the fault or hang that ended the run, and warnings: in whole sentences."""

    TITLE = "FINDINGS"
    TWIN = "info findings"
    HELP: ClassVar[str] = "faults and hangs first, then findings of the checks, then warnings"
    MOST = 9

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.wanted = 0
        self._found: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for them."""
        return (Findings(), Checking())

    def show(self, snapshot: Snapshot) -> None:
        """Show them in whole lines."""
        found = snapshot.get(Findings())
        if found is None:
            return
        self._found = found
        unchecked = not snapshot.post_mortem and not snapshot.get(Checking(), ("",))
        none = "FINDINGS none (checks are off, :checks on)" if unchecked else "FINDINGS none"
        self.border_title = f"FINDINGS {len(found)}" if found else none
        self._fill()

    def _fill(self) -> None:
        lines: list[Parts] = []
        for kind, texts in self._found:
            role = "bad" if kind in ("fault", "hang", "finding") else "warm"
            # What closes the circle, and what helps, comes before the details of who waits.
            later = [not text.lstrip().startswith(("cycle:", "hint")) for text in texts[1:]]
            texts = (
                *texts[:1],
                *(text for _, text in sorted(zip(later, texts[1:], strict=True), key=lambda pair: pair[0])),
            )
            for number, text in enumerate(texts):
                for part in wrapped(text, max(self.size.width - 3, 20)):
                    lines.append((("■ " if number == 0 and part[:1] != " " else "  ", role),
                                  (part, role if number == 0 else "")))  # fmt: skip
        self.wanted = len(lines)
        self.set_lines(lines)

    def on_resize(self, event: Resize) -> None:
        """Break the sentences anew."""
        super().on_resize(event)
        self._fill()


def wrapped(text: str, width: int) -> list[str]:
    """Return a line in pieces of a width; those behind the first stand a little further in."""
    inner = len(text) - len(text.lstrip(" "))
    return wrap(text, width, subsequent_indent=" " * (inner + 2), drop_whitespace=True) or [text]


class LogPane(LinesPane):
    """Commands and what they said; the newest stands below."""

    TITLE = "LOG"
    TWIN = "debug --commands '…'"
    HELP: ClassVar[str] = "left, right: scroll sideways"
    WEIGHT = 0.8

    def add(self, done: Done) -> None:
        """Add a command with its lines."""
        if done.quiet and not done.error:
            return
        fresh: list[Parts] = [(("› ", "mark"), (done.text, "name"))] if done.text else []
        fresh += lines_of(done)
        if done.error:
            fresh.append(((done.error, "bad"),))
        self.note(*fresh)

    def note(self, *lines: Parts) -> None:
        """Add lines."""
        self.set_lines([*self.lines, *lines][-_KEPT:])
        self.cursor = max(0, len(self.lines) - 1)
        self._to_end()

    def on_resize(self, event: Resize) -> None:
        """Keep the newest line in sight."""
        self.call_after_refresh(self._to_end)

    def _to_end(self) -> None:
        self.scroll_to(y=max(0, len(self.lines) - self.size.height), animate=False, force=True)
