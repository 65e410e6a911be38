"""One tensor: as a table, as bytes, in figures, as a histogram, as a picture."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.strip import Strip

from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.debugger.tile_view import BINS, TileView
from neurontools.debugger.view_maps import bar_rows, figure_lines, hex_cells, number_cells
from neurontools.text.looks import SHADE, magnitude_levels
from neurontools.tui.contrast import quiet
from neurontools.tui.maps.colours import scale_of, styles_of
from neurontools.tui.maps.heat import Heat, by_value, heat_row, scale_bar
from neurontools.tui.maps.paint import NAN_BADGE, on, paint_row, palette_of, text_strip
from neurontools.tui.maps.questions import Facts, TensorTable
from neurontools.tui.pane import Pane, Question, Selection, Snapshot

__all__ = ["TileInspector"]

MODES = ("table", "hex", "figures", "histogram", "picture")
_DTYPES = (None, Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT8E4, Dtype.FLOAT8E5, Dtype.INT32, Dtype.INT16,
           Dtype.INT8, Dtype.UINT8)  # fmt: skip
_GUTTER = 6  # columns of row numbers
_CELL = 10  # of one number
_BOLD = Style(bold=True)


class TileInspector(Pane):
    """Shows the chosen tensor, and without one the tile that was written last."""

    TITLE: ClassVar[str] = "TENSOR"
    WEIGHT: ClassVar[float] = 1.2
    TWIN: ClassVar[str] = "info values NAME"
    HELP: ClassVar[str] = ("the chosen tensor, or the one of the chosen bytes; without one, the tile written last; "
                           "z: the whole screen")  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", "a row up", show=False),
        Binding("down", "move(1, 0)", "a row down", show=False),
        Binding("left", "move(0, -1)", "an element to the left", show=False),
        Binding("right", "move(0, 1)", "an element to the right", show=False),
        Binding("pageup", "page(-1, 0)", "a page up", show=False),
        Binding("pagedown", "page(1, 0)", "a page down", show=False),
        Binding("shift+left", "page(0, -1)", "a page to the left", show=False),
        Binding("shift+right", "page(0, 1)", "a page to the right", show=False),
        Binding("home", "begin", "first element", show=False),
        Binding("v", "mode(1)", "next view: table, hex, figures, histogram, picture", show=False),
        Binding("V", "mode(-1)", "view before", show=False),
        Binding("d", "dtype(1)", "elements of the next type", show=False),
        Binding("D", "dtype(-1)", "elements of the type before", show=False),
        Binding("o", "follow", "show what is written last again", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = ""
        self.mode = MODES[0]
        self.dtype: Dtype | None = None
        self.row = self.column = 0
        self.view: TileView | None = None
        self.error = ""
        self._bytes: Region | None = None
        self._lines: list[Strip] = []

    # --- questions and answers ---------------------------------------------------------------------------------------

    @property
    def part(self) -> tuple[int, int]:
        """Return rows and columns of elements that fit."""
        each = _CELL if self.mode != "hex" else 1 + 2 * (self.view.part.dtype.itemsize if self.view is not None else 4)
        return max(self.size.height - 2, 1), max((self.size.width - _GUTTER) // each, 1)

    def _question(self) -> TensorTable:
        rows, columns = self.part
        heat = (2 * rows, max(self.size.width - _GUTTER, 1)) if self.mode == "picture" else (0, 0)
        return TensorTable(self.text, self.dtype, (self.row, self.column, rows, columns), heat)

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for the part that is seen; and where bytes are chosen, for their tensor first."""
        return (self._question(), *((Facts(self._bytes),) if self._bytes is not None else ()))

    def show(self, snapshot: Snapshot) -> None:
        """Show the tensor of a snapshot."""
        if self._bytes is not None:
            facts = snapshot.get(Facts(self._bytes))
            if facts is not None:
                self._bytes = None
                if facts.tile:
                    self._turn_to(facts.tile)
                return
        question = self._question()
        view, error = snapshot.get(question), snapshot.error(question)
        if view is None and not error:
            return
        if view is not None:
            self.row, self.column = view.row, view.column
        self.view, self.error = (view, "") if view is not None else (None, error)
        if view is not None and question != self._question():
            self.ask()  # the width of a cell is known only now
        self.wanted = None if view is not None else 1
        self._paint()

    def choose(self, selection: Selection) -> None:
        """Turn to the chosen tensor, or to the one of chosen bytes."""
        if selection.kind == "tensor":
            self._turn_to(str(selection.value))
        elif selection.kind == "bytes" and selection.value[0] != "HBM":
            self._bytes = Region(*selection.value)
            self.ask()

    def _turn_to(self, text: str) -> None:
        if text != self.text:
            self.text, self.row, self.column, self.dtype = text, 0, 0, None
        self.ask()

    # --- painting ----------------------------------------------------------------------------------------------------

    def _paint(self) -> None:
        before, self._lines = self._lines, self._made()
        if before != self._lines:
            self.refresh()

    def notify_style_update(self) -> None:
        """Repaint when colours change."""
        super().notify_style_update()
        self._lines = []
        if self.is_mounted:
            self._lines = self._made()

    def render_line(self, y: int) -> Strip:
        """Return one line as it is on the screen."""
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self.plain)

    def _made(self) -> list[Strip]:
        width, base = self.size.width, self.plain
        if width < 1:
            return []
        view = self.view
        if view is None:
            return [text_strip(((self.error or "choose a tensor in a map", quiet(base)),), width, base)]
        shape = ", ".join(map(str, view.shape))
        follows = "" if self.text else "written last: "
        head: tuple[tuple[str, Style], ...] = (
            (f"{follows}", quiet(base)),
            (f"{view.name}{view.selection}", base + _BOLD),
            (f" {view.space} {view.dtype}[{shape}]", base),
            (f" · {self.mode} · row {view.row} of {view.rows}, column {view.column} of {view.columns}", quiet(base)),
        )
        if view.statistics.nan:  # what is wrong comes first: the end of the line may not be seen
            head = ((f" {view.statistics.nan:,} NaN ", NAN_BADGE), (" ", base), *head)
        body = {"table": self._table, "hex": self._table, "figures": self._figures, "histogram": self._histogram,
                "picture": self._picture}[self.mode](view, base)  # fmt: skip
        height = max(self.size.height - 2, 0)
        figures = ((" ".join(figure_lines(view.statistics, brief=True)), quiet(base)),)
        last = text_strip(self._scale(view, base) if self.mode == "picture" else figures, width, base)
        body = [*body[:height], *[Strip.blank(width, base)] * (height - len(body))]
        return [text_strip(head, width, base), *body, last]

    def _table(self, view: TileView, base: Style) -> list[Strip]:
        make = hex_cells if self.mode == "hex" else number_cells
        _, columns = self.part
        rows = make(view.part[:, :columns], view.written[:, :columns], _CELL)
        return [
            text_strip(((f"{view.row + number:>5} ", quiet(base)), (text, base)), self.size.width, base)
            for number, text in enumerate(rows)
        ]

    def _figures(self, view: TileView, base: Style) -> list[Strip]:
        return [text_strip(((line, base),), self.size.width, base) for line in figure_lines(view.statistics)]

    def _histogram(self, view: TileView, base: Style) -> list[Strip]:
        found = view.statistics
        if found.least is None or found.largest is None:
            return [text_strip((("no finite element", quiet(base)),), self.size.width, base)]
        height, width = max(self.size.height - 3, 1), max((self.size.width - 2) // BINS, 1)
        colour = styles_of("value", palette_of(self.app))[SHADE + 1]
        rows = [
            text_strip(((" " + line, base + colour),), self.size.width, base)
            for line in bar_rows(found.bins, height, width)
        ]
        least, largest = f"{found.least:.4g}", f"{found.largest:.4g}"
        axis = " " + least.ljust(BINS * width - len(largest)) + largest
        return [*rows, text_strip(((axis, quiet(base)),), self.size.width, base)]

    def _picture(self, view: TileView, base: Style) -> list[Strip]:
        """Return half blocks, two rows of cells a line, colour by magnitude; without colours a shade for two rows."""
        if not view.heat.size:
            return []
        rows, width = view.heat.shape[0], self.size.width
        step = view.rows / rows
        if self.app.no_color:
            tall = -(-rows // max(self.size.height - 2, 1))
            numbers, _ = magnitude_levels(view.heat[::tall], view.holes[::tall])
            styles = on(base, "value", palette_of(self.app))
            return [
                paint_row(((f"{int(number * tall * step):>5} ", quiet(base)),), line, styles, base, width)
                for number, line in enumerate(numbers)
            ]
        heat, light = self._heat(view), palette_of(self.app) == 1
        at = int(view.row / step), int(view.column * view.heat.shape[1] / view.columns)
        strips = []
        for top in range(0, rows, 2):
            here = at[0] in (top, top + 1)
            number = Segment(f"{int(top * step):>5} ", base + _BOLD if here else quiet(base))
            segments = heat_row(heat, top, base, width - _GUTTER, light=light, cursor=at if here else (-1, -1))
            strips.append(Strip([number, *segments]).extend_cell_length(width, base).crop(0, width))
        return strips

    def _heat(self, view: TileView) -> Heat:
        return by_value(view.heat, view.holes, scale_of("value", min(palette_of(self.app), 1)))

    def _scale(self, view: TileView, base: Style) -> tuple[tuple[str, Style], ...]:
        """Return the element under the cursor, and what the colours of magnitudes are."""
        value = number_cells(view.part[:1, :1], view.written[:1, :1], 1)
        place = f"[{view.row}, {view.column}] = {value[0].strip() if value else '--'}   "
        bar = () if self.app.no_color else scale_bar(self._heat(view), base, palette_of(self.app) == 1)
        return ((place, base + _BOLD), *bar, (" ".join(figure_lines(view.statistics, brief=True)), quiet(base)))

    # --- keys and mouse ----------------------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        """Show as much as fits."""
        self._paint()
        self.ask()

    def action_move(self, rows: int, columns: int) -> None:
        """Scroll by elements; in a picture, move the cursor by what is one cell of it."""
        if self.view is None:
            return
        if self.mode == "picture" and self.view.heat.size and not self.app.no_color:
            rows *= max(self.view.rows // self.view.heat.shape[0], 1)
            columns *= max(self.view.columns // self.view.heat.shape[1], 1)
        row = min(max(self.row + rows, 0), max(self.view.rows - 1, 0))
        column = min(max(self.column + columns, 0), max(self.view.columns - 1, 0))
        if (row, column) != (self.row, self.column):
            self.row, self.column = row, column
            self.ask()

    def action_page(self, rows: int, columns: int) -> None:
        """Scroll by what the pane shows."""
        part = self.part
        self.action_move(rows * part[0], columns * part[1])

    def action_begin(self) -> None:
        """Scroll to the first element."""
        self.action_move(-self.row, -self.column)

    def action_mode(self, by: int) -> None:
        """Show it in another way."""
        self.mode = MODES[(MODES.index(self.mode) + by) % len(MODES)]
        self._paint()
        self.ask()

    def action_dtype(self, by: int) -> None:
        """Take the bytes for elements of another type."""
        self.dtype = _DTYPES[(_DTYPES.index(self.dtype) + by) % len(_DTYPES)]
        self.ask()

    def action_follow(self) -> None:
        """Show the tile that is written last."""
        self._bytes = None
        self._turn_to("")

    def on_click(self, event: Click) -> None:
        """Put the cursor on the element under the mouse."""
        offset, view = event.get_content_offset(self), self.view
        if offset is None or view is None or offset.x < _GUTTER or not 0 < offset.y < self.size.height - 1:
            return
        if self.mode == "picture" and view.heat.size:
            rows, columns = view.heat.shape
            row, column = (offset.y - 1) * 2 * view.rows // rows, (offset.x - _GUTTER) * view.columns // columns
            if row < view.rows and column < view.columns:
                self.row, self.column = row, column
                self.ask()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll."""
        event.stop()
        self.action_move(3, 0)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll."""
        event.stop()
        self.action_move(-3, 0)
