"""Expansion of triangular systems and Cholesky factors: substitution row by row in blocks, products between blocks.

Inverting the blocks instead would leave products alone, but the powers of an ill-conditioned block lose what
substitution keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["LARGEST", "LINEAR"]

LARGEST = 512  # rows of a matrix; each becomes a handful of nodes
_BLOCK = 32  # rows that are substituted one by one before a product takes them out of all that follow
_TRANSPOSED = 2  # XLA's number; 1 is the matrix as it is, 3 the adjoint, which is the same for real ones


def _square(b: Builder, value: Value, rows: slice, columns: slice) -> Value:
    """Return a part of the last two dimensions."""
    batch = value.shape[:-2]
    starts = [*(0 for _ in batch), rows.start, columns.start]
    return b.slice(value, starts, (*batch, rows.stop - rows.start, columns.stop - columns.start))


def _swapped(b: Builder, value: Value) -> Value:
    rank = len(value.shape)
    return b.transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def _product(b: Builder, left: Value, right: Value, *, transposed: bool = False) -> Value:
    """Return left @ right, or left @ right^T, over the leading dimensions."""
    rank = len(left.shape)
    batch = tuple(range(rank - 2))
    columns = right.shape[-2 if transposed else -1]
    return b.graph.add(
        "dot", (left, right), left.dtype, (*left.shape[:-1], columns), lhs_batch=batch, rhs_batch=batch,
        lhs_contracting=(rank - 1,), rhs_contracting=(rank - 1 if transposed else rank - 2,), precision=(),
    )  # fmt: skip


def _over(b: Builder, value: Value, by: Value) -> Value:
    """Return rows or columns divided by a matrix of one element."""
    flat = b.reshape(by, by.shape[:-2])
    return b.op("divide", value, b.broadcast(flat, value.shape, range(len(flat.shape))))


def _solve(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    matrix, given = operands
    attrs = node.attrs
    # x a = b is a^T x^T = b^T; an upper system is a lower one read from its end.
    turned = (attrs["transpose"] >= _TRANSPOSED) != (not attrs["left"])
    lower = attrs["lower"] != turned
    last = len(matrix.shape) - 1
    matrix = _swapped(b, matrix) if turned else matrix
    given = given if attrs["left"] else _swapped(b, given)
    if not lower:
        matrix, given = b.reverse(matrix, (last - 1, last)), b.reverse(given, (last - 1,))
    found = _substituted(b, matrix, given, unit=attrs["unit"])
    if not lower:
        found = b.reverse(found, (last - 1,))
    return [found if attrs["left"] else _swapped(b, found)]


def _substituted(b: Builder, matrix: Value, given: Value, *, unit: bool) -> Value:
    """Return x of a lower system; only elements below the diagonal, and on it unless it is ones, are looked at."""
    size, columns, axis = matrix.shape[-1], given.shape[-1], len(matrix.shape) - 2
    solved: list[Value] = []  # whole blocks
    for start in range(0, size, _BLOCK):
        block = slice(start, min(start + _BLOCK, size))
        right = _square(b, given, block, slice(0, columns))
        if solved:
            left = _square(b, matrix, block, slice(0, start))
            right = b.op("subtract", right, _product(b, left, b.concatenate(solved, axis)))
        rows: list[Value] = []
        for row in range(block.start, block.stop):
            here = slice(row, row + 1)
            value = b.part(right, axis, row - start, 1)
            if rows:
                known = _product(b, _square(b, matrix, here, slice(start, row)), b.concatenate(rows, axis))
                value = b.op("subtract", value, known)
            rows.append(value if unit else _over(b, value, _square(b, matrix, here, here)))
        solved.append(b.concatenate(rows, axis))
    return b.concatenate(solved, axis)


def _cholesky(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    """Factor panel by panel: each column leaves the rest of its panel, each panel the rest of the matrix.

    What is not positive definite has a NaN on the diagonal, from the square root, and behind it.
    """
    (matrix,) = operands
    if not node.attrs["lower"]:
        matrix = _swapped(b, matrix)
    size, axis = matrix.shape[-1], len(matrix.shape) - 1
    panels: list[Value] = []
    rest = matrix  # what is left to factor: the last rows and columns
    for start in range(0, size, _BLOCK):
        left = size - start
        wide = min(_BLOCK, left)
        panel = _factored(b, _square(b, rest, slice(0, left), slice(0, wide)))
        if wide < left:
            below = _square(b, panel, slice(wide, left), slice(0, wide))
            square = _square(b, rest, slice(wide, left), slice(wide, left))
            rest = b.op("subtract", square, _product(b, below, below, transposed=True))
        panels.append(_from_row(b, panel, start, axis - 1))
    found = b.concatenate(panels, axis)
    return [found if node.attrs["lower"] else _swapped(b, found)]


def _factored(b: Builder, panel: Value) -> Value:
    """Return the columns of the factor in a panel whose first rows are on the diagonal."""
    rank = len(panel.shape)
    height, wide, axis = panel.shape[-2], panel.shape[-1], rank - 1
    columns: list[Value] = []  # each of all rows of the panel, zero above its diagonal
    for number in range(wide):
        column = _square(b, panel, slice(number, height), slice(number, number + 1))
        if columns:
            before = _square(b, b.concatenate(columns, axis), slice(number, height), slice(0, number))
            diagonal = _square(b, before, slice(0, 1), slice(0, number))
            column = b.op("subtract", column, _product(b, before, diagonal, transposed=True))
        root = b.op("sqrt", _square(b, column, slice(0, 1), slice(0, 1)))
        # The diagonal is the root itself: x / sqrt(x) may differ from it in the last bit.
        under = [] if height == number + 1 else [
            _over(b, _square(b, column, slice(1, height - number), slice(0, 1)), root)
        ]  # fmt: skip
        columns.append(_from_row(b, b.concatenate([root, *under], axis - 1), number, axis - 1))
    return b.concatenate(columns, axis)


def _from_row(b: Builder, value: Value, row: int, axis: int) -> Value:
    """Return values with rows of zeros before them."""
    padding: Sequence[tuple[int, int, int]] = [(row if i == axis else 0, 0, 0) for i in range(len(value.shape))]
    return b.pad(value, b.constant(0, value.dtype), padding)


LINEAR: dict[str, Rule] = {"triangular-solve": _solve, "cholesky": _cholesky}
