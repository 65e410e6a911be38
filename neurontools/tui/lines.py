"""A pane of lines: painted one by one from plain parts, repainted only where they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from neurontools.text.visible import visible_line
from neurontools.tui.contrast import quiet, readable
from neurontools.tui.pane import Pane

__all__ = ["LinesPane", "Parts"]

# A line: texts with the role that colours each: "" plain, "dim", "good", "bad", "warm", "name", "mark", "value",
# and those of `neurontools.tui.syntax`.
Parts = tuple[tuple[str, str], ...]
_NOTHING: Parts = ()


class LinesPane(Pane, ScrollView):
    """Lines under a cursor. Subclasses give `set_lines` the lines, and say in `enter` what choosing one means."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"lines--{role}"
        for role in (
            "cursor",
            "good",
            "bad",
            "warm",
            "name",
            "mark",
            "value",
            "opcode",
            "operand",
            "semaphore",
            "keyword",
            "text",
            "number",
            "call",
        )
    }
    DEFAULT_CSS = """
    LinesPane {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .lines--cursor { background: $block-cursor-blurred-background; }
        &:focus > .lines--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        & > .lines--good { color: $text-success; }
        & > .lines--bad { color: $text-error; text-style: bold; }
        & > .lines--warm { color: $text-warning; }
        & > .lines--name { color: $text-accent; text-style: bold; }
        & > .lines--mark { color: $text-primary; text-style: bold; }
        & > .lines--value { color: $text-secondary; }
        & > .lines--opcode { color: $text-primary; text-style: bold; }
        & > .lines--operand { color: $text-secondary; }
        & > .lines--semaphore { color: $text-warning; }
        & > .lines--keyword { color: $text-accent; text-style: bold; }
        & > .lines--text { color: $text-success; }
        & > .lines--number { color: $text-secondary; }
        & > .lines--call { color: $text-primary; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor(-1)", "up", show=False),
        Binding("down", "cursor(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "cursor(-1000000000)", "first line", show=False),
        Binding("end", "cursor(1000000000)", "last line", show=False),
        Binding("enter", "enter", "choose", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Parts] = ()
        self.cursor = 0
        self.columns = 0  # to the right of the first one shown
        self._styles: dict[str, Style] = {}  # by role; finding them costs more than painting
        self._strips: LRUCache[tuple[Parts, int, int, bool], Strip] = LRUCache(512)

    # --- what subclasses use -----------------------------------------------------------------------------------------

    def set_lines(self, lines: Sequence[Parts]) -> None:
        """Show these lines; those that differ from the ones before are repainted."""
        before, self.lines = self.lines, lines
        if len(before) != len(lines):
            self._fit()
            self.cursor = max(0, min(self.cursor, len(lines) - 1))
        top, (width, height) = int(self.scroll_offset.y), self.size
        changed = [
            y
            for y in range(height)
            if (before[top + y] if top + y < len(before) else _NOTHING)
            != (lines[top + y] if top + y < len(lines) else _NOTHING)
        ]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _fit(self) -> None:
        """Fit what can be scrolled to the lines: while all of them are seen, their number asks for no new layout."""
        width, height = self.size
        self.virtual_size = Size(width, max(len(self.lines), height))

    def reveal(self, index: int, margin: int = 1) -> None:
        """Scroll as little as needed to see a line; a line far away goes to the middle."""
        height, top = self.size.height, int(self.scroll_offset.y)
        if height <= 0 or top + margin <= index < top + height - margin:
            return
        far = not top - height <= index < top + 2 * height
        target = index - height // 2 if far else index - margin if index < top + margin else index - height + 1 + margin
        self.scroll_to(y=max(0, target), animate=False, force=True)

    def move_cursor(self, index: int) -> None:
        """Put the cursor on a line and scroll there."""
        index = max(0, min(index, len(self.lines) - 1))
        if index != self.cursor:
            before, self.cursor = self.cursor, index
            self._repaint(before)
            self._repaint(index)
        self.reveal(index, 0)

    def find(self, text: str) -> bool:
        """Move the cursor to the next line with a text; return whether there is one."""
        wanted, lines = text.casefold(), self.searched()
        after = min(self.cursor + 1, len(lines))
        for index in (*range(after, len(lines)), *range(after)):
            if wanted in lines[index].casefold():
                self.move_cursor(index)
                return True
        return False

    def searched(self) -> Sequence[str]:
        """Return what `find` looks through, a text for each line."""
        return ["".join(part for part, _ in line) for line in self.lines]

    def enter(self, index: int, column: int | None = None) -> None:
        """Do what choosing a line means; `column` is where it was clicked."""

    # --- what Textual calls ------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Return one line as it is on the screen."""
        index, width = int(self.scroll_offset.y) + y, self.size.width
        if index >= len(self.lines):
            return Strip.blank(width, self.plain)
        key = (self.lines[index], width, self.columns, index == self.cursor and self.has_focus)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._strip(*key)
        selection = self.text_selection
        if selection is not None:
            strip = self._selected(strip, selection.get_span(index))
        # Places in the text are for the mouse alone, and cost as much as all the rest of a line.
        return strip if self.painting else strip.apply_offsets(self.columns, index)

    def _selected(self, strip: Strip, span: tuple[int, int] | None) -> Strip:
        """Return a line of which the mouse has selected a part."""
        if span is None:
            return strip
        start = max(span[0] - self.columns, 0)
        end = strip.cell_length if span[1] < 0 else max(span[1] - self.columns, start)
        style = self.screen.get_component_rich_style("screen--selection")
        before, middle, behind = strip.crop(0, start), strip.crop(start, end), strip.crop(end, strip.cell_length)
        return Strip.join([before, Strip([Segment(s.text, (s.style or self.plain) + style) for s in middle]), behind])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return what the mouse has selected, to be copied."""
        return selection.extract(
            "\n".join(visible_line("".join(text for text, _ in line)) for line in self.lines)
        ), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show what is selected."""
        self.refresh()

    def _strip(self, parts: Parts, width: int, columns: int, cursor: bool) -> Strip:
        base, left = self.plain, columns + width
        segments = []
        for text, role in parts:
            if left <= 0:
                break
            # Almost all of it is: what does not fit is cut off before it is measured.
            text = visible_line(text)
            simple = text.isascii()
            segments.append(Segment(text[:left] if simple else text, self._style(role)))
            left -= len(text) if simple else cell_len(text)
        strip = Strip(segments, columns + width - max(left, 0) if left >= 0 else None)
        if columns or strip.cell_length > width:
            strip = strip.crop(columns, columns + width)
        strip = strip.extend_cell_length(width, base)
        if cursor:
            style = self._style("cursor")
            strip = Strip([Segment(s.text, readable((s.style or base) + style)) for s in strip], width)
        return strip

    def _style(self, role: str) -> Style:
        """Return the style of a role; that of the cursor lies over the others."""
        if not role:
            return self.plain
        found = self._styles.get(role)
        if found is None:
            if role == "dim":  # a share of plain text: an automatic colour knows nothing of the background
                found = quiet(self.plain)
            elif role == "cursor":
                found = self.get_component_rich_style("lines--cursor", partial=True)
            else:
                found = readable(self.plain + self.get_component_rich_style(f"lines--{role}", partial=True))
            self._styles[role] = found
        return found

    def notify_style_update(self) -> None:
        """Forget painted lines when colours change."""
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def on_resize(self, event: Resize) -> None:
        """Fit the scrolled area to the new size and ask again: more or fewer lines are seen."""
        self._fit()
        self.ask()

    def on_focus(self) -> None:
        """Show the cursor."""
        self._repaint(self.cursor)

    def on_blur(self) -> None:
        """Hide the cursor."""
        self._repaint(self.cursor)

    def on_click(self, event: Click) -> None:
        """Choose the line under the mouse."""
        offset = event.get_content_offset(self)
        if self.text_selection is not None:
            return  # the end of selecting is no choice
        if offset is not None and int(self.scroll_offset.y) + offset.y < len(self.lines):
            self.move_cursor(int(self.scroll_offset.y) + offset.y)
            self.enter(self.cursor, offset.x + self.columns)

    def action_cursor(self, by: int) -> None:
        """Move the cursor by lines."""
        self.move_cursor(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by screens."""
        self.move_cursor(self.cursor + by * max(1, self.size.height - 1))

    def action_enter(self) -> None:
        """Choose the line under the cursor."""
        if self.lines:
            self.enter(self.cursor)

    def _repaint(self, index: int) -> None:
        y = index - int(self.scroll_offset.y)
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))
