"""The lines of a map as they are painted: what stands above the cells, the cells, and what stands below."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from rich.style import Style
from textual.strip import Strip

from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.debugger.byte_facts import ByteFacts
from neurontools.debugger.maps import MapCells, cells_of_regions
from neurontools.text.looks import BOTH, GLYPHS, READ, WRITTEN, Look
from neurontools.text.table import bytes_text, duration
from neurontools.tui.contrast import quiet, readable
from neurontools.tui.maps.colours import styles_of
from neurontools.tui.maps.paint import on, paint_row, palette_of, text_strip
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
    _look: Look | None

    @property
    def chrome(self) -> tuple[int, int]:
        """Return how many lines stand above and below the cells; a low pane goes without."""
        height = self.size.height
        return (0 if height < 3 else 1 if height < 7 else 2), (0 if height < 6 else 1 if height < 9 else 2)

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
            last = y == self.size.height - 1
            return text_strip(self._cursor_line(base) if last else self._legend(base), width, base)
        row = y - above
        if self.view is None or self._look is None or row >= self._look.numbers.shape[0]:
            return Strip.blank(width, base)
        partition = self.view.partition + row * self.view.row_step
        at, column = self.view.cursor
        styles = on(base, self.mode, palette_of(self.app))
        gutter = ((f"{partition:>3} ", quiet(base)),)
        return paint_row(gutter, self._look.numbers[row], styles, base, width,
                         column if at == row else -1, self._chosen(row), self._labels(row))  # fmt: skip

    def _chosen(self, row: int) -> np.ndarray | None:
        assert self.cells is not None
        if self.selection.kind != "bytes" or self.selection.value[:2] != (self.SPACE, self.core):
            return None
        found = cells_of_regions(self.cells.window, (Region(*self.selection.value),))[row]
        return found if found.any() else None

    def _labels(self, row: int) -> list[tuple[int, str]]:
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
        return (
            (f"by {what}", base + _BOLD),
            (f" · {view.partition}:{last}, {view.byte:#x}:{end:#x} of {view.nbytes:#x}", base),
            (f" · a cell is {view.row_step} × {bytes_text(view.byte_step)}", quiet(base)),
        )

    def _ruler(self, base: Style) -> tuple[tuple[str, Style], ...]:
        if self.view is None:
            return (("", base),)
        view, line = self.view, ""
        for column in range(0, view.columns, 12):
            byte = view.byte + column * view.byte_step
            if byte < view.nbytes:
                line += f"╵{byte:#x}".ljust(12)
        return ((" " * GUTTER, base), (line, quiet(base)))

    def _legend(self, base: Style) -> tuple[tuple[str, Style], ...]:
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
            line = f" {Path(facts.source.file or '').name}:{facts.source.line}" if facts.source is not None else ""
            parts += [(f"  ← #{facts.number} {duration(facts.time_ps or 0)} {engine} pc {pc}", base),
                      (f"{line} {facts.text}", quiet(base))]  # fmt: skip
        return tuple(parts)
