"""A window with all that is known of one instruction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from neurontools.text.table import duration
from neurontools.text.visible import visible_line
from neurontools.tui.labels import label
from neurontools.tui.questions import DetailsAnswer

__all__ = ["DetailsScreen", "details_lines"]


class DetailsScreen(ModalScreen[None]):
    """Fields with their meaning and how that is known, the cost, the waits and why they are not over."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,d", "dismiss", "close", show=False)]
    DEFAULT_CSS = """
    DetailsScreen { align: center middle; }
    DetailsScreen > VerticalScroll {
        width: 120; max-width: 100%; height: auto; max-height: 90%; border: round $accent; background: $surface;
        padding: 0 1;
    }
    """

    def __init__(self, found: DetailsAnswer) -> None:
        super().__init__()
        self._found = found

    def compose(self) -> ComposeResult:
        """Make the page."""
        facts = self._found.facts
        with VerticalScroll() as page:
            page.border_title = f"{label(facts.engine)} pc {facts.pc}"
            page.border_subtitle = "escape closes"
            text = Text()
            for line, style in details_lines(self._found):
                text.append(visible_line(line) + "\n", style)
            yield Static(text)


def details_lines(found: DetailsAnswer) -> Iterator[tuple[str, str]]:
    """Yield lines with their styles."""
    facts = found.facts
    yield facts.text, "bold"
    if facts.source is not None:
        yield f"{facts.source.file}:{facts.source.line}", ""
    if facts.interval_ps is not None and facts.latency_ps is not None:
        yield (f"cost: completes {duration(facts.latency_ps)} after it issues; "
               f"the next can issue after {duration(facts.interval_ps)}"), ""  # fmt: skip
    for text, now in facts.waits:
        yield f"waits for {text}; it is {now} now", ""
    if found.cause:
        yield f"why: {found.cause}", "bold"
    yield "", ""
    wide = max((len(field.name) for field in facts.fields), default=0)
    values = [f"{field.value}{' ' + field.unit if field.unit else ''}" for field in facts.fields]
    across = min(max(map(len, values), default=0), 34)
    for field, value in zip(facts.fields, values, strict=True):
        known = f"{field.provenance}{', ' + field.cite if field.cite else ''}"
        yield f"{field.name:<{wide}}  {value:<{across}}  {field.doc} ({known})", ""
