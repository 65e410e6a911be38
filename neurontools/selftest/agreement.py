"""Compare results with expected ones, within a tolerance that is relative and absolute alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neurontools.selftest.rows import Outcome

__all__ = ["NEAR", "compared", "flattened"]

NEAR = 10  # times the tolerance: sums in another order


def flattened(value: Any) -> list[Any]:
    """Return the arrays of a value, tuples taken apart."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in flattened(part)]
    return [value]


def compared(
    got: Sequence[Any], expected: Sequence[Any], relative: dict[str, float], absolute: dict[str, float] | None = None
) -> tuple[Outcome, str]:
    """Return how results compare; tolerances by element type, 0 for types without one."""
    if len(got) != len(expected):
        return "differ", f"{len(got)} results where {len(expected)} are expected"
    worst, where = 0.0, ""
    for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if theirs is None:
            continue
        a, b = np.asarray(mine), np.asarray(theirs)
        if a.shape != b.shape or a.dtype != b.dtype:
            return "differ", f"result {number}: {a.dtype}{list(a.shape)} where {b.dtype}{list(b.shape)} is expected"
        rtol = relative.get(a.dtype.name, 0.0)
        share = _excess(a, b, rtol, (absolute or relative).get(a.dtype.name, 0.0))
        if share > worst:
            worst, where = share, f"result {number} is off by {share:.3g} times the tolerance"
            if not rtol:
                where = f"result {number}: {int(share)} of {a.size} elements differ"
    if worst <= 1 and not (worst and where.endswith("differ")):
        return "agree", ""
    return ("near" if worst <= NEAR and where.endswith("tolerance") else "differ"), where


def _excess(a: Any, b: Any, relative: float, absolute: float) -> float:
    """Return the largest difference in units of the tolerance; without one, how many elements differ."""
    if not a.size:
        return 0.0
    if not relative and not absolute:
        same = (a == b) | ((a != a) & (b != b))
        return float(np.sum(~same))
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        off = np.where(same, 0, np.abs(x - y) / (absolute + relative * np.abs(y)))
    return float(np.max(np.where(np.isnan(off), np.inf, off)))
