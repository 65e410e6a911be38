"""A column of panes; the line on its left can be moved with the mouse."""

from __future__ import annotations

from textual.containers import Vertical
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message

__all__ = ["Column"]


class Column(Vertical):
    """Panes one above the other."""

    class Dragged(Message):
        """The line on the left was moved to a column of the screen."""

        def __init__(self, column: int) -> None:
            self.column = column
            super().__init__()

    _held = False

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the line on the left."""
        if self.styles.border_left[0] and event.screen_x == self.region.x:
            self._held = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Move it."""
        if self._held:
            self.post_message(self.Dragged(int(event.screen_x)))

    def on_mouse_up(self, event: MouseUp) -> None:
        """Let go."""
        if self._held:
            self._held = False
            self.release_mouse()
