"""The timeline: engines and queues as rows of blocks, and a cursor that travels in time."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region as Area
from textual.strip import Strip

from neurontools.debugger.spans import Block, Spans
from neurontools.debugger.view_maps import row_name, timeline_blocks
from neurontools.text.table import duration
from neurontools.text.visible import visible_line
from neurontools.tui.contrast import quiet, readable
from neurontools.tui.maps.paint import palette_of, text_strip
from neurontools.tui.pane import Command, Pane, Question, Selected, Snapshot
from neurontools.tui.timeline_view import LEAST_NAMED, At, Named, Timespan, TimeView, ruler

__all__ = ["Timeline"]

_GUTTER = 12  # columns of names
_BOLD = Style(bold=True)
# Busy engine, busy queue, waiting, taken back; for dark and light themes and 16 colours.
_COLOURS = (("#87d75f", "#5fafff", "#875f3f", "#6f6f6f"), ("#3f7f00", "#005faf", "#c79f6f", "#a7a7a7"),
            ("bright_green", "bright_blue", "yellow", "bright_black"))  # fmt: skip


@lru_cache(16)
def _styles_on(base: Style, palette: int) -> tuple[tuple[Style, ...], tuple[Style, ...]]:
    """Return styles of busy engine, busy queue, waiting and taken back; and of what is written on such blocks."""
    plain = tuple(readable(base + Style(color=colour)) for colour in _COLOURS[palette])
    on = tuple(readable(Style(color="#000000", bgcolor=style.color.name if style.color else None)) for style in plain)
    return plain, on


class Timeline(Pane):
    """A row for every engine and queue: how much of each column of time it was busy."""

    TITLE: ClassVar[str] = "TIMELINE"
    TWIN: ClassVar[str] = "info timeline"
    MOST: ClassVar[int] = 14
    HELP: ClassVar[str] = ("blocks: busy, ┄: waits, to the right of the cursor: taken back; left, right and the mouse "
                           "travel there")  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "travel(-1)", "a column back in time", show=False),
        Binding("right", "travel(1)", "a column on", show=False),
        Binding("shift+left", "travel(-10)", "ten columns back", show=False),
        Binding("shift+right", "travel(10)", "ten columns on", show=False),
        Binding("home", "line('goto start')", "to the beginning", show=False),
        Binding("end", "line('goto end')", "to the end", show=False),
        Binding("up", "row(-1)", "row up", show=False),
        Binding("down", "row(1)", "row down", show=False),
        Binding("pageup", "page(-1)", "earlier, without travelling", show=False),
        Binding("pagedown", "page(1)", "later, without travelling", show=False),
        Binding("plus,equals_sign", "zoom(1)", "less time per column", show=False),
        Binding("minus", "zoom(-1)", "more time per column", show=False),
        Binding("0", "fit", "show everything that is known", show=False),
        Binding("enter", "choose", "choose what the row was doing there", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = TimeView(64)
        self.spans: Spans | None = None
        self.row = self.top = 0
        self._at: At | None = None
        self._moment = ""
        self._lines: list[tuple[object, Strip]] = []
        self._dead = False
        self._cursor_ps = self._now_ps = 0
        self._target_ps: int | None = None
        self._names: tuple[Block, ...] = ()

    # --- questions and answers ---------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Return how many rows fit."""
        return max(self.size.height - 2, 1)

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for the rows in columns, and what the row of the cursor is doing."""
        at = (self._at,) if self._at is not None else ()
        part = self.view.start_ps, self.view.step_ps, self.view.columns
        return (Timespan(*part), Named(*part), *at)

    def show(self, snapshot: Snapshot) -> None:
        """Show the timeline of a snapshot."""
        self._dead = snapshot.post_mortem
        spans = snapshot.get(Timespan(self.view.start_ps, self.view.step_ps, self.view.columns))
        if spans is not None:
            self.spans = spans
            self.wanted = len(spans.owners) + 2 if spans.owners else 0
            self._follow(spans.now_ps, snapshot.state.outcome != "running")
            self.row = min(self.row, max(len(spans.owners) - 1, 0))
            part = self.view.start_ps, self.view.step_ps, self.view.columns
            self._names = snapshot.get(Named(*part), ())
            over = snapshot.state.outcome != "running" and not snapshot.running
            self._see(self.view.following(spans.now_ps, spans.known_ps, over))
        if self._at is not None:
            moment = snapshot.get(self._at)
            if moment is not None:
                self._moment = (f"#{moment.number} pc {moment.pc} {duration(moment.start_ps)} to "
                                f"{duration(moment.end_ps)}  {moment.text}")  # fmt: skip
            elif self._at in snapshot.answers:
                self._moment = "nothing yet"
        self._ask_at()
        self._paint()

    def _follow(self, now_ps: int, over: bool) -> None:
        """Keep the cursor where somebody travelled, even if nothing completed there; else put it on the present."""
        if now_ps != self._now_ps:
            self._cursor_ps = now_ps if self._target_ps is None else max(self._target_ps, now_ps)
            self._now_ps, self._target_ps = now_ps, None
        if over:
            self._cursor_ps = min(self._cursor_ps, now_ps)

    def _ask_at(self) -> None:
        """Ask what the row of the cursor is doing now."""
        spans = self.spans
        if spans is None or not spans.owners:
            return
        wanted = At(spans.owners[self.row], self._cursor_ps)
        if wanted != self._at:
            self._at = wanted
            self.ask()

    def _see(self, view: TimeView) -> None:
        if view != self.view:
            self.view = view
            self.ask()

    # --- painting ----------------------------------------------------------------------------------------------------

    def _paint(self) -> None:
        """Make the lines, and repaint those that differ."""
        made = list(self._made()) if self.size.width > _GUTTER else []
        before, self._lines = self._lines, made
        width = self.size.width
        changed = [Area(0, y, width, 1) for y, (key, _) in enumerate(made) if y >= len(before) or before[y][0] != key]
        if len(made) < len(before):
            self.refresh()
        elif changed:  # all at once: each call goes through what the screen remembers of the pane
            self.refresh(*changed)

    def notify_style_update(self) -> None:
        """Repaint when colours change."""
        super().notify_style_update()
        self._lines = []
        if self.is_mounted and self.spans is not None:
            self._paint()

    def render_line(self, y: int) -> Strip:
        """Return one line as it is on the screen."""
        return self._lines[y][1] if y < len(self._lines) else Strip.blank(self.size.width, self.plain)

    def _made(self) -> list[tuple[object, Strip]]:
        spans, width, base = self.spans, self.size.width, self.plain
        if spans is None:
            return []
        palette = palette_of(self.app)
        column = (self._cursor_ps - spans.start_ps) // spans.step_ps
        self.top = min(max(self.top, self.row - self.rows + 1), self.row, max(len(spans.owners) - self.rows, 0))
        below = len(spans.owners) - self.top - self.rows
        more = f"{'↑' if self.top else ' '}{'↓' if below > 0 else ' '}"
        head = f"{more}{duration(spans.now_ps)}"[:_GUTTER].ljust(_GUTTER) + ruler(spans, column)
        lines: list[tuple[object, Strip]] = [((head, palette), text_strip(((head, quiet(base)),), width, base))]
        names: dict[int, list[Block]] = {}
        for block in self._names:
            names.setdefault(block.owner, []).append(block)
        for number in range(self.top, min(self.top + self.rows, len(spans.owners))):
            text = timeline_blocks(spans.busy[number], spans.waiting[number], spans.completed[number])
            chosen = number == self.row
            blocks = tuple(names.get(number, ()))
            key = (text, blocks, spans.owners[number], column, spans.now_ps // spans.step_ps, chosen, palette, width)
            known = self._lines[len(lines)] if len(lines) < len(self._lines) else None
            lines.append(known if known is not None and known[0] == key else
                         (key, self._row(spans, number, text, blocks, column, palette, base)))  # fmt: skip
        lines += [("", Strip.blank(width, base))] * (self.size.height - 1 - len(lines))
        last = ""
        if spans.owners:
            last = f"{row_name(spans.owners[self.row], self._cores)}: {self._moment}"
        foot = f"a column is {duration(spans.step_ps)}  {last}"
        return [*lines[: self.size.height - 1], (foot, text_strip(((foot, quiet(base)),), width, base))]

    @property
    def _cores(self) -> int:
        return 1 + max((owner.core for owner in self.spans.owners), default=0) if self.spans is not None else 1

    def _row(self, spans: Spans, number: int, text: str, blocks: tuple[Block, ...], column: int, palette: int,
             base: Style) -> Strip:  # fmt: skip
        owner, width = spans.owners[number], self.size.width
        plain, on = _styles_on(base, palette)
        name = visible_line(row_name(owner, self._cores))[: _GUTTER - 2].ljust(_GUTTER - 2)
        focus = base + (_BOLD if number == self.row else Style())
        segments = [Segment(("›" if number == self.row else " ") + name + " ", focus)]
        kinds = np.where(np.frombuffer(text.encode("utf-32-le"), "<u4") == ord("┄"), 2, owner.kind == "queue")
        kinds[max((spans.now_ps - spans.start_ps) // spans.step_ps + 1, 0) :] = 3
        signs = list(text)
        for block in blocks:
            end = min(block.end, len(text))
            if end - block.start >= LEAST_NAMED and set(text[block.start : end]) <= {"█"}:
                # A gap on the right keeps blocks of one colour apart.
                written = block.name[: end - block.start - 1].center(end - block.start - 1)
                signs[block.start : end] = [*written, "▊"]
                kinds[block.start : end - 1] += 4
        if 0 <= column < len(text):
            signs[column] = "│"
            kinds[column] = 8 + (kinds[column] & 3 if text[column] == "█" else 4)
        edges = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(text)]
        for start, end in pairwise(edges if text else ()):
            kind = int(kinds[start])
            style = on[kind & 3] if kind < 12 and kind >= 4 else base + _BOLD if kind >= 12 else plain[kind]
            segments.append(Segment("".join(signs[start:end]), style))
        return Strip(segments).extend_cell_length(width, base).crop(0, width)

    # --- keys and mouse ----------------------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        """Show as much time as fits."""
        self._lines = []
        self.view = self.view.resized(max(self.size.width - _GUTTER, 1))
        self.refresh()
        self.ask()

    def _goto(self, time_ps: int) -> None:
        self._cursor_ps = max(time_ps, 0)
        self._ask_at()
        self._paint()
        if not self._dead:
            self._target_ps = self._cursor_ps
            self.post_message(Command(f"goto {time_ps}ps" if time_ps > 0 else "goto start"))

    def action_travel(self, columns: int) -> None:
        """Go to the time so many columns away."""
        spans = self.spans
        if spans is not None:
            self._goto(max((self._cursor_ps // spans.step_ps + columns) * spans.step_ps, 0))

    def action_line(self, text: str) -> None:
        """Run a command."""
        if not self._dead:
            self.post_message(Command(text))

    def action_row(self, by: int) -> None:
        """Go to another row."""
        if self.spans is not None and self.spans.owners:
            self.row = min(max(self.row + by, 0), len(self.spans.owners) - 1)
            self._ask_at()
            self._paint()

    def action_page(self, by: int) -> None:
        """Show another time without travelling there."""
        self._see(self.view.paged(by))

    def action_zoom(self, by: int) -> None:
        """Give a column less or more time."""
        if self.spans is not None:
            self._see(self.view.zoomed(by, self._cursor_ps))

    def action_fit(self) -> None:
        """Show everything that is known, and keep showing it."""
        if self.spans is not None:
            self._see(self.view.fitted(self.spans.known_ps))

    def action_choose(self) -> None:
        """Choose the word of an engine, or a queue."""
        if self.spans is None or not self.spans.owners:
            return
        owner = self.spans.owners[self.row]
        if owner.kind == "queue":
            self.post_message(Selected("queue", (owner.core, owner.name)))
        elif self._moment.startswith("#"):
            self.post_message(Selected("instruction", (owner.core, owner.name, int(self._moment.split()[2]))))

    def on_click(self, event: Click) -> None:
        """Choose the row under the mouse, and travel to the time under it."""
        offset, spans = event.get_content_offset(self), self.spans
        if offset is None or spans is None:
            return
        if 0 < offset.y <= self.rows and self.top + offset.y - 1 < len(spans.owners):
            self.row = self.top + offset.y - 1
            self._ask_at()
            self._paint()
        if offset.x >= _GUTTER:
            self._goto(spans.start_ps + (offset.x - _GUTTER) * spans.step_ps)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Give a column more time."""
        event.stop()
        self.action_zoom(-1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Give a column less time."""
        event.stop()
        self.action_zoom(1)
