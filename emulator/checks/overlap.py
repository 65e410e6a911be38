"""Do two strided regions share a byte? Exact, and remembered: programs repeat the same pairs of shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Pattern", "share_bytes"]

Pattern = tuple[tuple[tuple[int, int], ...], int]
_KEPT = 1 << 14

_starts: dict[Pattern, npt.NDArray[np.int64]] = {}
_known: dict[tuple[Any, ...], bool] = {}


def share_bytes(low0: int, size0: int, pattern0: Pattern | None, low1: int, size1: int,
                pattern1: Pattern | None) -> bool:
    """Tell whether two byte ranges, thinned out by their patterns, have a byte in common.

    A pattern is ((step, count), ..., run) as in `Region`, None for every byte of the range.
    """
    if low0 >= low1 + size1 or low1 >= low0 + size0:
        return False
    if pattern0 is None and pattern1 is None:
        return True
    key = (pattern0 or size0, pattern1 or size1, low1 - low0)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _KEPT:
            _known.clear()
            _starts.clear()
        found = _known[key] = _compute(pattern0 or ((), size0), pattern1 or ((), size1), low1 - low0)
    return found


def _compute(first: Pattern, second: Pattern, shift: int) -> bool:
    quick = _same_step(first, second, shift)
    if quick is not None:
        return quick
    a, b = _runs(first), _runs(second) + shift
    run_a, run_b = first[1], second[1]
    # For each run of a: the first run of b that ends behind its begin; it overlaps if it begins before a's end.
    index = np.searchsorted(b, a - run_b, side="right")
    inside = index < b.size
    return bool((b[index[inside]] < a[inside] + run_a).any())


def _same_step(first: Pattern, second: Pattern, shift: int) -> bool | None:
    """Decide two patterns of one dimension with the same step: rows of one table."""
    if len(first[0]) != 1 or len(second[0]) != 1 or first[0][0][0] != second[0][0][0]:
        return None
    step, rows_a = first[0][0]
    if max(first[1], second[1]) > step:
        return None
    rows_b = second[0][0][1]
    rows, offset = divmod(shift, step)
    # Row i of b begins `offset` behind row i + rows of a, and `step - offset` before the row after that.
    hits = []
    if offset < first[1]:
        hits.append(rows)
    if offset + second[1] > step:
        hits.append(rows + 1)
    return any(row < rows_a and row + rows_b > 0 for row in hits)


def _runs(pattern: Pattern) -> npt.NDArray[np.int64]:
    found = _starts.get(pattern)
    if found is None:
        found = np.zeros(1, np.int64)
        for step, count in pattern[0]:
            found = (found[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
        found = _starts[pattern] = np.unique(found)
    return found
