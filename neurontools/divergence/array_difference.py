"""How two arrays differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neurontools.divergence.results import Difference

__all__ = ["difference"]

Array = npt.NDArray[Any]


def _wide(array: Array) -> Array:
    if array.dtype.isbuiltin != 1:
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array if array.dtype == np.uint64 else array.astype(np.int64)


def difference(one: Array, other: Array, rtol: float = 0.0, atol: float | Array = 0.0) -> Difference | None:
    """Return how two arrays of one shape differ beyond |one - other| <= atol + rtol * |other|; None where they do not.

    `atol` may be an array with a number for each element, in their order. NaN equals NaN, and infinities equal
    themselves.
    """
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype == other.dtype and one.tobytes() == other.tobytes():
        return None
    shape = one.shape
    a, b = _wide(one.reshape(-1)), _wide(other.reshape(-1))
    if a.dtype != b.dtype and "f" in (a.dtype.kind, b.dtype.kind):
        a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        size = np.abs(b.astype(np.float64))
        if a.dtype == b.dtype:
            apart = np.maximum(a, b) - np.minimum(a, b)
            if apart.dtype == np.int64:
                apart = apart.view(np.uint64)  # two integers may be further apart than the largest signed one
        else:  # no type has both kinds of 64-bit integers; NumPy compares them exactly
            apart = np.where(a == b, 0.0, np.maximum(np.abs(a.astype(np.float64) - b.astype(np.float64)), 1.0))
        gap = np.where(finite, apart, 0).astype(np.float64)
        beyond = np.where(finite, gap > atol + rtol * size, ~((a == b) | (np.isnan(a) & np.isnan(b))))
        if not beyond.any():
            return None
        relative = np.where(gap > 0, gap / size, 0.0)
    relative[~np.isfinite(relative)] = np.inf
    # What is not a number on one side only is the worst there is.
    worst = int(np.argmax(np.where(beyond & ~finite, np.inf, np.where(beyond, gap, -1.0))))
    first = int(np.argmax(beyond))
    kept = gap[finite]
    return Difference(
        shape,
        int(a.size),
        int(beyond.sum()),
        float(gap.max()),
        float(relative.max()),
        float(kept.mean()) if kept.size else 0.0,
        _index(first, shape),
        _index(worst, shape),
        float(a[worst]),
        float(b[worst]),
        (int(np.isnan(a).sum()), int(np.isnan(b).sum())),
    )


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.unravel_index(flat, shape)) if shape else ()
