"""The command line: the whole language of the debugger, with history and completion."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from neurontools.text.terminal import HISTORY, kept_file
from neurontools.tui.contrast import readable

__all__ = ["CommandLine", "Typed"]

_KEPT = 1000


class Typed(Message):
    """A line was entered; "" repeats the last command."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__()


class Completing(Message):
    """A request for what the last word may become."""

    def __init__(self, line: str) -> None:
        self.line = line
        super().__init__()


class _Line(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "recall(-1)", "previous command", show=False),
        Binding("down", "recall(1)", "next command", show=False),
        Binding("tab", "complete", "complete the word", show=False),
        Binding("escape", "leave", "back to the panes", show=False),
    ]

    def get_component_rich_style(self, *names: str, partial: bool = False, default: Style | None = None) -> Style:
        """Return a style of Textual's, the hint's so that it can be read in every theme."""
        found = super().get_component_rich_style(*names, partial=partial, default=default)
        return readable(found) if "input--placeholder" in names else found

    def action_recall(self, by: int) -> None:
        """Step through the history."""
        line = self.parent
        assert isinstance(line, CommandLine)
        line.recall(by)

    def action_complete(self) -> None:
        """Ask for what the last word may become."""
        self.post_message(Completing(self.value))

    def action_leave(self) -> None:
        """Go back to the panes."""
        self.value = ""
        self.app.action_focus_panes()  # type: ignore[attr-defined]


class CommandLine(Horizontal):
    """A prompt and a line."""

    DEFAULT_CSS = """
    CommandLine { height: 1; background: $surface; }
    CommandLine > Static { width: auto; color: auto; text-style: bold; }
    CommandLine > Input { border: none; height: 1; padding: 0; width: 1fr; background: $surface; color: auto; }
    CommandLine > Input:focus { border: none; }
    """
    Completing = Completing

    def __init__(self, hint: str) -> None:
        super().__init__()
        self._hint = hint
        self.history = _read_history()
        self._at = len(self.history)
        self._draft = ""
        self._prompt = ""

    def compose(self) -> ComposeResult:
        """Make the prompt and the line."""
        yield Static("(nc0) › ", markup=False)
        yield _Line(
            placeholder=self._hint,
            compact=True,
            select_on_focus=False,
        )

    @property
    def input(self) -> Input:
        """Return the line itself."""
        return self.query_one(_Line)

    def set_prompt(self, text: str) -> None:
        """Show the core and engine that commands mean."""
        if text != self._prompt:
            self._prompt = text
            self.query_one(Static).update(text)

    def open(self, text: str = "") -> None:
        """Take the keyboard, with the beginning of a command."""
        self.input.value = text
        self.input.cursor_position = len(text)
        self.screen.set_focus(self.input)  # at once: `focus` would let the next key pass by

    def recall(self, by: int) -> None:
        """Show a command from the history."""
        if self._at == len(self.history):
            self._draft = self.input.value
        self._at = max(0, min(self._at + by, len(self.history)))
        text = self.history[self._at] if self._at < len(self.history) else self._draft
        self.input.value = text
        self.input.cursor_position = len(text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass a line on."""
        event.stop()
        text = event.value.strip()
        if text and (not self.history or self.history[-1] != text):
            self.history.append(text)
        self._at = len(self.history)
        self.input.value = ""
        self.post_message(Typed(text))

    def completed(self, line: str, words: tuple[str, ...]) -> str:
        """Put in what all words begin with, if the line is still the same; return the words to show."""
        words = tuple(filter(str.isprintable, words))  # what holds control characters cannot be typed either
        if line != self.input.value or not words:
            return ""
        head, _, word = line.rpartition(" ")
        common = _common(words)
        if len(common) > len(word) or len(words) == 1:
            text = f"{head} {common}".lstrip() if head else common
            self.input.value = text
            self.input.cursor_position = len(text)
        return "" if len(words) == 1 else "  ".join(words[:60])

    def save_history(self) -> None:
        """Keep the history for the next time; where it cannot be kept, it is not."""
        path = kept_file(HISTORY)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join([*self.history[-_KEPT:], ""]), encoding="utf-8")
        except OSError:
            return


def _common(words: tuple[str, ...]) -> str:
    """Return what all words begin with."""
    first, last = min(words), max(words)
    same = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(same, len(first))]


def _read_history() -> list[str]:
    try:
        return [line for line in kept_file(HISTORY).read_text(encoding="utf-8").splitlines() if line][-_KEPT:]
    except (OSError, UnicodeDecodeError):
        return []
