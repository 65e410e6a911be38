"""The part of a memory that a map shows, in cells of some partitions and bytes."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["Window"]


class Window(NamedTuple):
    """`rows` x `columns` cells of `row_step` partitions x `byte_step` bytes, from a partition and a byte on."""

    space: str
    core: int
    partition: int
    byte: int
    rows: int
    columns: int
    row_step: int
    byte_step: int

    def clipped(self, partitions: int, width: int) -> Window:
        """Return the window without the cells that lie wholly outside the memory."""
        rows = min(self.rows, -(-(partitions - self.partition) // self.row_step))
        columns = min(self.columns, -(-(width - self.byte) // self.byte_step))
        return self._replace(rows=max(rows, 0), columns=max(columns, 0))
