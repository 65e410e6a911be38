"""What a command said, over the panes where the log is not to be seen: Escape closes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from neurontools.tui.lines import LinesPane, Parts

__all__ = ["OutputPane"]

_SHARE = 0.7  # of the screen, at most


class OutputPane(LinesPane):
    """Lines above the command line; not one of the panes that a layout has."""

    TITLE = "OUTPUT"
    TWIN = "debug --commands '…'"
    HELP: ClassVar[str] = "what the last command said; escape closes it"
    DEFAULT_CSS = """
    OutputPane { display: none; layer: above; dock: bottom; margin-bottom: 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "back to the panes", show=False)]

    def open(self, title: str, lines: Sequence[Parts]) -> None:
        """Show lines, as many as there is room for; the others are scrolled to."""
        self.styles.height = max(2, min(len(lines) + 1, int(self.app.size.height * _SHARE)))
        self.display = True
        self.border_title = f"OUTPUT  {title}  (escape closes)"
        self.cursor = 0
        self.set_lines(lines)
        self.scroll_to(y=0, animate=False, force=True)

    def action_close(self) -> None:
        """Go back to the panes."""
        self.app.action_focus_panes()  # type: ignore[attr-defined]
