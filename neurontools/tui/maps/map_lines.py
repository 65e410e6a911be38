"""The lines of a map as they are painted: what stands above the cells, the cells, and what stands below."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from formats.dtypes import Dtype
from formats.neff import SourceLocation
from formats.regions import Region
from neurontools.debugger.byte_facts import ByteFacts
from neurontools.debugger.maps import MapCells, cells_of_regions
from neurontools.debugger.readers import Reader
from neurontools.text.looks import BOTH, GLYPHS, READ, WRITTEN, Look
from neurontools.text.table import bytes_text
from neurontools.tui.contrast import quiet, readable
from neurontools.tui.labels import label
from neurontools.tui.maps.colours import styles_of
from neurontools.tui.maps.heat import Heat, Label, heat_row, scale_bar
from neurontools.tui.maps.paint import NAN_BADGE, on, paint_row, palette_of, text_strip
from neurontools.tui.maps.view import View
from neurontools.tui.pane import Pane, Selection

__all__ = ["GUTTER", "MapLines"]

GUTTER = 4  # columns of partition numbers
_BOLD = Style(bold=True)


class MapLines(Pane):
    """The half of a map that paints what the other half has been told."""

    SPACE: ClassVar[str] = "SBUF"
    RULED: ClassVar[bool] = False  # what a pane with one line above its cells shows there

    mode: str
    dtype: Dtype
    figure: str
    core: int
    view: View | None
    cells: MapCells | None
    facts: ByteFacts | None
    selection: Selection
    nans: frozenset[str]
    reader: Reader | None
    _look: Look | None
    _heat: Heat | None
    _marks: np.ndarray | None
    _labels: dict[int, tuple[Label, ...]]
    _letters: tuple[str, ...]

    @property
    def halves(self) -> bool:
        """Return whether cells are half characters in colours; without enough colours they are characters."""
        return not self.app.no_color and palette_of(self.app) < 2

    @property
    def each(self) -> int:
        """Return how many rows of cells stand on a line."""
        return 2 if self.halves else 1

    @property
    def chrome(self) -> tuple[int, int]:
        """Return how many lines stand above and below the cells; a low pane goes without."""
        height = self.size.height
        below = 0 if height < 6 else 1 if height < 9 else 3 if height > 11 and self.halves else 2
        return (0 if height < 3 else 1 if height < 7 else 2), below

    @property
    def under(self) -> Region | None:
        """Return the bytes of the cell under the cursor."""
        return None if self.view is None else Region(self.SPACE, self.core, *self.view.cell)

    def line(self, y: int, width: int, base: Style) -> Strip:
        """Return one line of the pane."""
        above, below = self.chrome
        bottom = self.size.height - below
        if y < above:
            ruler = y == 1 or (above == 1 and self.RULED)
            return text_strip(self._ruler(base) if ruler else self._head(base), width, base)
        if y >= bottom:
            left = self.size.height - 1 - y
            if left == 2 or (left == 1 and below == 2):
                return text_strip(self._legend(base), width, base)
            told = self._cursor_line(base)
            at = next((at for at, (text, _) in enumerate(told) if text[2:3] in "←→"), len(told)) if below > 2 else 0
            return text_strip(told[:at] if left else told[at:], width, base)
        if self.halves:
            return self._half_line((y - above) * 2, width, base)
        row = y - above
        if self.view is None or self._look is None or row >= self._look.numbers.shape[0]:
            return Strip.blank(width, base)
        partition = self.view.partition + row * self.view.row_step
        at, column = self.view.cursor
        styles = on(base, self.mode, palette_of(self.app))
        gutter = ((f"{partition:>3} ", quiet(base)),)
        return paint_row(gutter, self._look.numbers[row], styles, base, width,
                         column if at == row else -1, self._chosen(row), self._names(row))  # fmt: skip

    def _half_line(self, row: int, width: int, base: Style) -> Strip:
        """Return the line of two rows of cells."""
        if self.view is None or self._heat is None or row >= self._heat.keys.shape[0]:
            return Strip.blank(width, base)
        at, column = self.view.cursor
        here = at in (row, row + 1)
        gutter = base + _BOLD if here else quiet(base)
        marks = None
        if self._marks is not None and self._marks[row : row + 2].any():
            marks = np.zeros((2, self._marks.shape[1]), np.uint8)
            marks[: self._marks[row : row + 2].shape[0]] = self._marks[row : row + 2]
        segments = heat_row(self._heat, row, base, width - GUTTER, light=palette_of(self.app) == 1,
                            cursor=(at, column) if here else (-1, -1), marks=marks,
                            labels=self._labels.get(row, ()))  # fmt: skip
        number = Segment(f"{self.view.partition + row * self.view.row_step:>3} ", gutter)
        return Strip([number, *segments]).extend_cell_length(width, base).crop(0, width)

    def _chosen(self, row: int) -> np.ndarray | None:
        assert self.cells is not None
        if self.selection.kind != "bytes" or self.selection.value[:2] != (self.SPACE, self.core):
            return None
        found = cells_of_regions(self.cells.window, (Region(*self.selection.value),))[row]
        return found if found.any() else None

    def _names(self, row: int) -> list[tuple[int, str]]:
        """Return the names of tiles whose first row this is, with their cells, where they fit."""
        assert self.cells is not None and self._look is not None
        if self.mode != "tensor":
            return []
        numbers, cells = self._look.numbers, self.cells.cells
        line, found = cells[row], []
        for start, end in pairwise((0, *(np.flatnonzero(line[1:] != line[:-1]) + 1).tolist(), line.size)):
            if start == end or line[start] < 0 or (row and cells[row - 1, start] == line[start]):
                continue
            name = self.cells.names[line[start]]
            marked = (numbers[row, start:end] >= READ) & (numbers[row, start:end] <= BOTH)
            if len(name) <= end - start and not marked.any():
                found.append((start, name))
        return found

    def _head(self, base: Style) -> tuple[tuple[str, Style], ...]:
        if self.view is None:
            return (("", base),)
        view = self.view
        what = self.mode if self.mode != "value" else f"{self.figure} of {self.dtype.spelling}"
        end = min(view.byte + view.columns * view.byte_step, view.nbytes)
        last = min(view.partition + view.rows * view.row_step, view.partitions)
        written = {"unwritten": "written share", "traffic": "writes"}.get(self.mode, what)
        return (
            (f"by {written if self.halves else what}", base + _BOLD),
            (f" · {view.partition}:{last}, {view.byte:#x}:{end:#x} of {view.nbytes:#x}", base),
            (f" · a cell is {view.row_step} × {bytes_text(view.byte_step)}", quiet(base)),
            *((f"  {len(self.nans)} with NaN ", NAN_BADGE) for _ in range(bool(self.nans))),
        )

    def _ruler(self, base: Style) -> tuple[tuple[str, Style], ...]:
        if self.view is None:
            return (("", base),)
        view, line = self.view, ""
        for column in range(0, view.columns, 12):
            byte = view.byte + column * view.byte_step
            if byte < view.nbytes:
                line += f"╵{byte:#x}".ljust(12)
        return ((" " * GUTTER, base), (self._pointed(line), quiet(base)))

    def _pointed(self, line: str) -> str:
        """Return a ruler with a mark over the column of the cursor."""
        column = self.view.cursor[1] if self.view is not None else -1
        if not self.halves or not 0 <= column < self.size.width - GUTTER:
            return line
        line = line.ljust(column + 1)
        return line[:column] + "▼" + line[column + 1 :]

    def _half_legend(self, base: Style) -> tuple[tuple[str, Style], ...]:
        """Return the scale, or what the letters on small tiles mean."""
        parts = []
        if self.selection.reads or self.selection.writes:
            parts.append(("◂ read  ▸ written  ◆ both   ", base))
        if self._heat is None:
            return tuple(parts)
        if self.mode == "tensor":
            parts += scale_bar(self._heat, base, palette_of(self.app) == 1)
            return (*parts, ("  ".join((*self._letters, "")), base), ("· free", quiet(base)))
        kept = self.cells is None or self.cells.kept or self.mode not in ("age", "traffic")
        parts += [] if kept else [("no journal tells when  ", base)]
        return (*parts, *scale_bar(self._heat, base, palette_of(self.app) == 1), ("· none", quiet(base)))

    def _legend(self, base: Style) -> tuple[tuple[str, Style], ...]:
        if self.halves:
            return self._half_legend(base)
        styles = styles_of(self.mode, palette_of(self.app))
        entries = () if self._look is None else self._look.legend
        if self.selection.reads or self.selection.writes:
            entries = ((READ, "read"), (WRITTEN, "written"), (BOTH, "both"), *entries)
        kept = "" if self.cells is None or self.cells.kept or self.mode != "age" else "no journal tells when  "
        parts = [(kept, base)]
        for number, text in entries:
            parts += [(str(GLYPHS[number]), readable(base + styles[number])), (f" {text}  ", quiet(base))]
        return tuple(parts)

    def _cursor_line(self, base: Style) -> tuple[tuple[str, Style], ...]:
        region, facts = self.under, self.facts
        if region is None:
            return (("", base),)
        rows = f"p{region.first}" + (f"-{region.behind - 1}" if region.partitions > 1 else "")
        parts = [(f"{rows} {region.byte:#x}", base + _BOLD)]
        if facts is None or facts.region != region:
            return tuple(parts)
        if facts.tile:
            place = ", ".join(map(str, facts.element))
            value = "unwritten" if facts.value is None else f"{facts.value:.5g}"
            parts += [(f"  {facts.tile}", base + _BOLD), (f"[{place}] {facts.dtype} {value}", base)]
        elif not facts.written:
            parts += [("  unwritten", quiet(base))]
        if facts.owner is not None and facts.number is not None:
            _, engine, pc, _ = facts.owner
            parts += [(f"  ← #{facts.number} {label(engine)} pc {pc}", base), (_line(facts.source), quiet(base))]
        if self.reader is not None:
            verb = "read next by" if self.reader.ahead else "read by"
            parts += [(f"  → {verb} {label(self.reader.engine)} pc {self.reader.pc}", base),
                      (_line(self.reader.source), quiet(base))]  # fmt: skip
        return tuple(parts)


def _line(source: SourceLocation | None) -> str:
    return f" {Path(source.file or '').name}:{source.line}" if source is not None else ""
