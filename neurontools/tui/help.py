"""Help on the keys, made of the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from neurontools.tui.actions import ACTIONS
from neurontools.tui.pane import Pane

__all__ = ["LEGENDS", "HelpScreen", "key_text"]

LEGENDS = (
    ("▶", "the word or line where the focus engine stands; an engine that runs"),
    ("»", "a word that has issued and not completed"),
    ("·", "a word that is done; in the maps, bytes without a tensor"),
    ("●", "a breakpoint"),
    ("✓ ✗", "the waits of a word hold, or do not; a run that finished, or failed"),
    ("⏸ ■", "an engine that waits, or was stopped"),
    ("›", "the focus: the engine that commands mean"),
    ("← →", "who could end a wait; the next transfer of a queue"),
    ("⏳", "a semaphore or event that an engine waits for"),
    ("↑ ↓", "a value that rose or fell with the last move"),
    ("▓ ▒ ░", "a ring of DMA descriptors: moving, waiting, free"),
    ("▁ █ ▊", "in the timeline and beside engines, the share of a time that was busy; ▊ ends a block with a name"),
    ("┄", "in the timeline, time spent waiting"),
    ("▼ │", "the present in the timeline; the column of the cursor in a map"),
    ("◂ ▸ ◆", "bytes that the chosen instruction reads, writes, or both"),
    ("N ∞", "in a map of values, a cell with a NaN; with an infinity"),
    ("#N", "the event that completed last, by the number that commands take"),
)

_SHOWN = {
    "slash": "/", "period": ".", "colon": ":", "question_mark": "?", "right_square_bracket": "]",
    "left_square_bracket": "[", "greater_than_sign": ">", "less_than_sign": "<", "plus": "+", "minus": "-",
    "equals_sign": "=",
}  # fmt: skip


class HelpScreen(ModalScreen[None]):
    """The keys that do something now, the focused pane's own first, and the panes with their command lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "close", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 96; max-width: 100%; height: 90%; border: round $accent; background: $surface; padding: 0 1;
    }
    """

    def __init__(self, keys: Mapping[str, str], panes: Sequence[Pane], focused: Pane | None, post_mortem: bool) -> None:
        super().__init__()
        self._keys, self._all, self._focused, self._dead = keys, panes, focused, post_mortem

    def compose(self) -> ComposeResult:
        """Make the page."""
        with VerticalScroll() as page:
            page.border_title = "keys"
            page.border_subtitle = "escape closes"
            text = Text()
            for line, style in self._lines():
                text.append(line + "\n", style)
            yield Static(text)

    def _lines(self) -> Iterator[tuple[str, str]]:
        if self._focused is not None:
            yield f"{self._focused.TITLE}", "bold"
            yield from ((line, "") for line in _own(self._focused))
            yield "", ""
        for group in dict.fromkeys(action.group for action in ACTIONS):
            actions = [a for a in ACTIONS if a.group == group and not (self._dead and a.live)]
            if actions:
                yield group, "bold"
            for action in actions:
                yield f"  {key_text(self._keys[action.name]):<12} {action.name:<20} {action.summary}", ""
        yield "  1 … 6        tab                  open a tab, or go to its first pane", ""
        yield "  ctrl+p       palette              every action, pane and theme by name", ""
        yield "", ""
        yield "signs", "bold"
        for sign, meaning in LEGENDS:
            yield f"  {sign:<12} {meaning}", ""
        yield "", ""
        yield "panes, and the command line that prints the same as JSON", "bold"
        for pane in self._all:
            twin = pane.TWIN if pane.TWIN.startswith("debug") else f"debug FILE --json --commands '{pane.TWIN}'"
            yield f"  {pane.TITLE:<12} neurontools {twin}", ""


def _own(pane: Pane) -> Iterator[str]:
    text = getattr(pane, "HELP", "")
    if text:
        yield f"  {text}"
    seen: dict[str, str] = {}
    for kind in type(pane).__mro__:
        found: Any = vars(kind).get("BINDINGS", ()) if issubclass(kind, Pane) else ()
        for binding in found:
            if isinstance(binding, Binding) and binding.description:
                seen.setdefault(binding.key, binding.description)
    for key, description in seen.items():
        yield f"  {key_text(key):<12} {description}"


def key_text(keys: str) -> str:
    """Return keys as they are printed on a keyboard."""
    return ", ".join(_SHOWN.get(key, key) for key in keys.split(","))
