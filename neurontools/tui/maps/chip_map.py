"""A map of an on-chip memory: partitions down, bytes across, a cell for each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region as Area
from textual.markup import escape
from textual.strip import Strip

from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.debugger.byte_facts import ByteFacts
from neurontools.debugger.maps import MODES, MapCells, cells_of_regions
from neurontools.debugger.readers import Reader
from neurontools.text.looks import BOTH, READ, WRITTEN, Look, looks_of
from neurontools.text.visible import visible_line
from neurontools.tui.contrast import code, triple
from neurontools.tui.maps.heat import Heat, Label, heat_of, labels_of
from neurontools.tui.maps.map_lines import GUTTER, MapLines
from neurontools.tui.maps.paint import palette_of
from neurontools.tui.maps.questions import Cells, Extent, ExtentAnswer, Facts, NotNumbers, ReadBy
from neurontools.tui.maps.view import View, fitting
from neurontools.tui.pane import Command, Question, Selected, Selection, Snapshot

__all__ = ["GUTTER", "ChipMap"]

_DTYPES = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.FLOAT8E4, Dtype.FLOAT8E5, Dtype.INT32, Dtype.INT16,
           Dtype.INT8, Dtype.UINT8)  # fmt: skip


class ChipMap(MapLines):
    """Subclasses name the memory in `SPACE` and `TITLE`."""

    HELP: ClassVar[str] = ("colours show tensors, age of the last write, value, written share or number of writes; the "
                           "last line tells of the cell under the cursor, who wrote and who reads it")  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", "a row up", show=False),
        Binding("down", "move(1, 0)", "a row down", show=False),
        Binding("left", "move(0, -1)", "a cell to the left", show=False),
        Binding("right", "move(0, 1)", "a cell to the right", show=False),
        Binding("pageup", "page(-1, 0)", "a page up", show=False),
        Binding("pagedown", "page(1, 0)", "a page down", show=False),
        Binding("shift+left", "page(0, -1)", "a page to the left", show=False),
        Binding("shift+right", "page(0, 1)", "a page to the right", show=False),
        Binding("home", "move(0, -1000000)", "first byte", show=False),
        Binding("end", "move(0, 1000000)", "last byte", show=False),
        Binding("plus,equals_sign", "zoom(1)", "fewer bytes per cell", show=False),
        Binding("minus", "zoom(-1)", "more bytes per cell", show=False),
        Binding("x", "stretch(1)", "fewer partitions per cell", show=False),
        Binding("X", "stretch(-1)", "more partitions per cell", show=False),
        Binding("0", "fit", "show what the tiles take, or everything", show=False),
        Binding("v", "mode(1)", "colour by the next: tensor, age, value, written share, traffic", show=False),
        Binding("V", "mode(-1)", "colour by the previous", show=False),
        Binding("d", "dtype(1)", "values as the next element type", show=False),
        Binding("D", "dtype(-1)", "values as the previous element type", show=False),
        Binding("a", "figure", "values by largest magnitude or by mean", show=False),
        Binding("enter", "choose", "choose the bytes of the cell", show=False),
        Binding("o", "open", "choose the tensor under the cursor", show=False),
        Binding("l", "last_write", "print what wrote there last", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.mode, self.dtype, self.figure = MODES[0], Dtype.FLOAT32, "absmax"
        self.core = 0
        self.view: View | None = None
        self.cells: MapCells | None = None
        self.facts: ByteFacts | None = None
        self.selection = Selection()
        self._extent: ExtentAnswer | None = None
        self._whole = self._zoomed = False
        self.nans: frozenset[str] = frozenset()
        self.reader: Reader | None = None
        self._look: Look | None = None
        self._heat: Heat | None = None
        self._marks: np.ndarray | None = None
        self._labels: dict[int, tuple[Label, ...]] = {}
        self._letters: tuple[str, ...] = ()
        self._lines: dict[int, Strip] = {}

    # --- questions and answers ---------------------------------------------------------------------------------------

    def questions(self) -> tuple[Question[object], ...]:
        """Ask for the window and the cell under the cursor."""
        if self.view is None:
            return (Extent(self.SPACE, self.core),)
        under = self.under
        facts = (Facts(under), ReadBy(under)) if under is not None and self.chrome[1] else ()
        return (self._question(), NotNumbers(self.SPACE, self.core), *facts)

    def _question(self) -> Cells:
        assert self.view is not None
        # Element type and figure change values only: one question less to answer in the other modes.
        values = self.mode == "value"
        return Cells(self.view.window(self.SPACE, self.core), self.mode, self.dtype if values else Dtype.FLOAT32,
                     self.figure if values else "absmax")  # fmt: skip

    def show(self, snapshot: Snapshot) -> None:
        """Show the map of a snapshot; lines that did not change stay as they are painted."""
        if snapshot.state.focus[0] != self.core:
            self.core, self.view, self._extent = snapshot.state.focus[0], None, None
            self.ask()
            return
        if self.view is None:
            self._extent = snapshot.get(Extent(self.SPACE, self.core))
            self._begin()
            return
        cells, region = snapshot.get(self._question()), self.under
        nans = snapshot.get(NotNumbers(self.SPACE, self.core), self.nans)
        if nans != self.nans:
            self.nans = nans
            names = ", ".join(sorted(nans))
            self.border_title = escape(visible_line(f"{self.TITLE} NaN in {names}" if nans else self.TITLE))
            self._forget()
            cells = cells or self.cells
            self._repaint_all()
        if cells is not None and cells is not self.cells:
            self._take(cells)
        if region is None:
            return
        facts, reader = snapshot.get(Facts(region)), snapshot.get(ReadBy(region))
        if facts is not None and (facts != self.facts or reader != self.reader):
            self.facts, self.reader = facts, reader
            self._repaint_told()

    def _begin(self) -> None:
        rows, columns = self._room()
        if self._extent is None or rows < 1 or columns < 1:
            return
        extent = self._extent
        self.view = View(extent.partitions, extent.nbytes, rows, columns)
        self._fit()

    def _room(self) -> tuple[int, int]:
        above, below = self.chrome
        return (self.size.height - above - below) * self.each, self.size.width - GUTTER

    def _fit(self) -> None:
        assert self.view is not None and self._extent is not None
        extent = self._extent
        used = (0, extent.nbytes) if self._whole else (extent.first, extent.behind)
        self._see(fitting(self.view, *used))

    def _see(self, view: View | None) -> None:
        """Show another part, or move the cursor."""
        if view is None or view == self.view:
            return
        before, self.view = self.view, view
        if before is not None and before.window("", 0) == view.window("", 0):
            above = self.chrome[0]
            self._repaint(before.cursor[0] // self.each + above)
            self._repaint(view.cursor[0] // self.each + above)
            if self.halves:
                for y in range(above):
                    self._repaint(y)  # the mark on the ruler
        else:
            # What is painted stays until the answer comes: nothing flickers.
            self._forget()
        self.facts = self.reader = None
        self._repaint_told()
        self.ask()

    def _forget(self) -> None:
        self._look = self._heat = self.cells = None

    def _take(self, cells: MapCells) -> None:
        if self.halves:
            self._take_halves(cells)
            return
        before, self.cells = self._look, cells
        look = looks_of(cells.mode, cells.cells, cells.marked, cells.names, cells.events)
        self._mark(look, cells)
        self._look = look
        if before is None or before.numbers.shape != look.numbers.shape:
            self._repaint_all()
            return
        above = self.chrome[0]
        for row in np.flatnonzero((before.numbers != look.numbers).any(axis=1)).tolist():
            self._repaint(row + above)
        if before.legend != look.legend:
            self._repaint(self.size.height - self.chrome[1])

    def _take_halves(self, cells: MapCells) -> None:
        """Take over a map for two rows a line; lines whose colours and labels stay are not painted again."""
        before, lines, legend = (self._heat, self._marks), self._labels, self._letters
        ground = triple(self.plain.bgcolor)
        heat = heat_of(cells, palette_of(self.app), code(ground) if ground is not None else "#000000")
        reads = cells_of_regions(cells.window, self.selection.reads)
        writes = cells_of_regions(cells.window, self.selection.writes)
        marks = reads + 2 * writes.astype(np.uint8)
        if self.selection.kind == "bytes" and self.selection.value[:2] == (self.SPACE, self.core):
            marks |= 3 * cells_of_regions(cells.window, (Region(*self.selection.value),)).astype(np.uint8)
        self.cells, self._heat, self._marks = cells, heat, marks
        self._labels, self._letters = labels_of(cells, self.nans)
        if before[0] is None or before[1] is None or before[0].keys.shape != heat.keys.shape:
            self._repaint_all()
            return
        changed = (before[0].keys != heat.keys).any(axis=1) | (before[1] != marks).any(axis=1)
        above = self.chrome[0]
        rows = {row // 2 for row in np.flatnonzero(changed).tolist()}
        rows |= {row // 2 for row in lines.keys() | self._labels.keys() if lines.get(row) != self._labels.get(row)}
        for row in rows:
            self._repaint(row + above)
        if (before[0].low, before[0].high, legend) != (heat.low, heat.high, self._letters) or rows:
            self._repaint(self.size.height - self.chrome[1])

    def _mark(self, look: Look, cells: MapCells) -> None:
        """Write over the cells that the chosen instruction reads and writes."""
        reads = cells_of_regions(cells.window, self.selection.reads)
        writes = cells_of_regions(cells.window, self.selection.writes)
        look.numbers[reads] = READ
        look.numbers[writes] = WRITTEN
        look.numbers[reads & writes] = BOTH

    def choose(self, selection: Selection) -> None:
        """Mark the bytes of an instruction; go to chosen bytes of this memory."""
        self.selection = selection
        if selection.kind == "bytes" and self.view is not None:
            space, core, partition, _, byte, _ = selection.value
            here = self.view.cell
            if (space, core) == (self.SPACE, self.core) and not (
                here[0] <= partition < here[0] + here[1] and here[2] <= byte < here[2] + here[3]
            ):
                self._see(self.view.at(partition, byte))
        if self.cells is not None:
            self._look = None
            self._take(self.cells)
            self._repaint(self.size.height - self.chrome[1])

    # --- painting ----------------------------------------------------------------------------------------------------

    def _repaint(self, y: int) -> None:
        if 0 <= y < self.size.height:
            self._lines.pop(y, None)
            self.refresh(Area(0, y, self.size.width, 1))

    def _repaint_told(self) -> None:
        """Repaint what is told of the cell under the cursor."""
        for line in range(1, max(self.chrome[1], 2)):
            self._repaint(self.size.height - line)

    def _repaint_all(self) -> None:
        self._lines.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Forget painted lines when colours change."""
        super().notify_style_update()
        self._lines.clear()
        self._heat = None  # its colours are those of a theme
        if self.is_mounted and self.cells is not None:
            self._resize()
            self.ask()

    def render_line(self, y: int) -> Strip:
        """Return one line as it is on the screen."""
        strip = self._lines.get(y)
        if strip is None:
            strip = self._lines[y] = self.line(y, self.size.width, self.plain)
        return strip

    # --- keys and mouse ----------------------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        """Show as much as fits."""
        self._resize()
        self.ask()

    def _resize(self) -> None:
        rows, columns = self._room()
        self._lines.clear()
        if self.view is None:
            self._begin()
        elif rows > 0 and columns > 0:
            self.view = self.view.resized(rows, columns)
            if not self._zoomed:
                self._fit()
        self._forget()
        self.refresh()

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor by cells."""
        if self.view is not None:
            self._see(self.view.moved(rows, columns))

    def action_page(self, rows: int, columns: int) -> None:
        """Move by what the pane shows."""
        if self.view is not None:
            view = self.view
            self._see(view.moved(rows * view.rows, columns * view.columns))

    def action_zoom(self, by: int) -> None:
        """Make cells smaller or larger along the bytes."""
        self._zoomed = True
        self._see(self.view and self.view.zoomed(by))

    def action_stretch(self, by: int) -> None:
        """Make cells smaller or larger along the partitions."""
        self._zoomed = True
        self._see(self.view and self.view.stretched(by))

    def action_fit(self) -> None:
        """Show what the tiles take, or everything."""
        if self.view is not None:
            before, self._zoomed = self.view, False
            self._fit()
            if self.view == before:
                self._whole = not self._whole
                self._fit()

    def _changed(self) -> None:
        self._forget()
        self._repaint_all()
        self.ask()

    def action_mode(self, by: int) -> None:
        """Colour by something else."""
        self.mode = MODES[(MODES.index(self.mode) + by) % len(MODES)]
        self._changed()

    def action_dtype(self, by: int) -> None:
        """Take the bytes for elements of another type, and colour by value."""
        if self.mode == "value":
            self.dtype = _DTYPES[(_DTYPES.index(self.dtype) + by) % len(_DTYPES)]
        self.mode = "value"
        self._changed()

    def action_figure(self) -> None:
        """Switch from the largest magnitude to the mean, or back."""
        if self.mode == "value":
            self.figure = "mean" if self.figure == "absmax" else "absmax"
        self.mode = "value"
        self._changed()

    def action_choose(self) -> None:
        """Choose the bytes under the cursor."""
        region = self.under
        if region is not None:
            self.post_message(Selected("bytes", tuple(region[:6])))

    def action_open(self) -> None:
        """Choose the tensor under the cursor."""
        if self.facts is not None and self.facts.tile:
            self.post_message(Selected("tensor", self.facts.tile))

    def action_last_write(self) -> None:
        """Print what wrote last into the first partition of the cell."""
        region = self.under
        if region is not None:
            place = f"nc{region.core} {region.space.lower()}:{region.first}:{region.byte:#x}"
            self.post_message(Command(f"last-write {place}, {region.nbytes}"))

    def on_click(self, event: Click) -> None:
        """Put the cursor under the mouse; a second click chooses the bytes."""
        offset = event.get_content_offset(self)
        view = self.view
        if offset is None or view is None:
            return
        row, column = (offset.y - self.chrome[0]) * self.each, offset.x - GUTTER
        if not (0 <= row < view.rows and 0 <= column < view.columns):
            return
        partition, byte = view.partition + row * view.row_step, view.byte + column * view.byte_step
        if partition < view.partitions and byte < view.nbytes:
            again = view.cursor == (row, column)
            self._see(replace(view, cursor_partition=partition, cursor_byte=byte))
            if again:
                self.action_choose()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll, or with Ctrl zoom out."""
        event.stop()
        self.action_zoom(-1) if event.ctrl else self.action_move(3, 0)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll, or with Ctrl zoom in."""
        event.stop()
        self.action_zoom(1) if event.ctrl else self.action_move(-3, 0)
