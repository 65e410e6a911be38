"""Which part of a memory a map shows: zoom, scroll and cursor as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neurontools.debugger.window import Window

__all__ = ["View", "fitting"]

_STEPS = tuple(sorted({2**k for k in range(19)} | {3 * 2**k for k in range(6, 17)}))  # bytes a column
_ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128)  # partitions a row


@dataclass(frozen=True)
class View:
    """`rows` x `columns` cells from a partition and a byte on; the cursor is a cell of the whole memory."""

    partitions: int
    nbytes: int
    rows: int
    columns: int
    partition: int = 0
    byte: int = 0
    row_step: int = 1
    byte_step: int = 1
    cursor_partition: int = 0
    cursor_byte: int = 0

    def window(self, space: str, core: int) -> Window:
        """Return the window to ask for."""
        return Window(space, core, self.partition, self.byte, self.rows, self.columns, self.row_step, self.byte_step)

    @property
    def cursor(self) -> tuple[int, int]:
        """Return row and column of the cursor in the window; they may lie outside of it."""
        return ((self.cursor_partition - self.partition) // self.row_step,
                (self.cursor_byte - self.byte) // self.byte_step)  # fmt: skip

    @property
    def cell(self) -> tuple[int, int, int, int]:
        """Return first partition, partitions, first byte and bytes of the cell under the cursor."""
        row, column = self.cursor
        partition, byte = self.partition + row * self.row_step, self.byte + column * self.byte_step
        return (partition, min(self.row_step, self.partitions - partition),
                byte, min(self.byte_step, self.nbytes - byte))  # fmt: skip

    def resized(self, rows: int, columns: int) -> View:
        """Return the view in another number of cells."""
        return replace(self, rows=max(rows, 1), columns=max(columns, 1)).settled()

    def moved(self, rows: int, columns: int) -> View:
        """Return the view with the cursor moved by cells, scrolled as little as needed."""
        partition = min(max(self.cursor_partition + rows * self.row_step, 0), self.partitions - 1)
        byte = min(max(self.cursor_byte + columns * self.byte_step, 0), self.nbytes - 1)
        return replace(self, cursor_partition=partition, cursor_byte=byte).settled()

    def at(self, partition: int, byte: int) -> View:
        """Return the view with the cursor on a byte, scrolled as little as needed."""
        return replace(self, cursor_partition=partition, cursor_byte=byte).settled()

    def zoomed(self, by: int) -> View:
        """Return the view with the next smaller (1) or larger (-1) cells along the bytes, the cursor where it was."""
        return self._stepped(self.row_step, _next(_STEPS, self.byte_step, -by, self.columns, self.nbytes))

    def stretched(self, by: int) -> View:
        """Return the view with the next smaller (1) or larger (-1) cells along the partitions."""
        return self._stepped(_next(_ROWS, self.row_step, -by, self.rows, self.partitions), self.byte_step)

    def _stepped(self, row_step: int, byte_step: int) -> View:
        row, column = self.cursor
        partition = (self.cursor_partition // row_step - min(max(row, 0), self.rows - 1)) * row_step
        byte = (self.cursor_byte // byte_step - min(max(column, 0), self.columns - 1)) * byte_step
        return replace(self, row_step=row_step, byte_step=byte_step, partition=partition, byte=byte).settled()

    def settled(self) -> View:
        """Return the view scrolled so that the cursor is in it and as little as possible outside the memory."""
        partition = _scrolled(self.partition, self.cursor_partition, self.row_step, self.rows, self.partitions)
        byte = _scrolled(self.byte, self.cursor_byte, self.byte_step, self.columns, self.nbytes)
        return replace(self, partition=partition, byte=byte)


def fitting(view: View, first: int, behind: int) -> View:
    """Return the view with the smallest cells that show all partitions and bytes `first` to `behind` - 1."""
    rows = next((step for step in _ROWS if step * view.rows >= view.partitions), _ROWS[-1])
    for step in _STEPS:
        start = first // step * step
        if start + step * view.columns >= behind:
            break
    found = replace(view, row_step=rows, byte_step=step, partition=0, byte=start)
    row, column = found.cursor
    if not (0 <= row < view.rows and 0 <= column < view.columns):
        found = replace(found, cursor_partition=0, cursor_byte=start)
    return found.settled()


def _next(steps: tuple[int, ...], step: int, by: int, cells: int, size: int) -> int:
    """Return the previous or next step; none larger than what shows everything already."""
    index = steps.index(step) + by
    if by > 0 and step * cells >= size:
        return step
    return steps[min(max(index, 0), len(steps) - 1)]


def _scrolled(start: int, cursor: int, step: int, cells: int, size: int) -> int:
    """Return a multiple of `step` near `start` at which the cursor is among `cells`."""
    at, here = start // step, cursor // step
    last = max(-(-size // step) - cells, 0)
    at = min(max(at, here - cells + 1), here)
    return min(max(at, 0), last) * step
