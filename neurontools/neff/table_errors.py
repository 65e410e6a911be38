"""How far an activation table of a file is from the exact function: sampled over a range, in fp64."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from formats.neff.activation import ActivationFunction, ActivationSet

    Wide = npt.NDArray[np.float64]

__all__ = ["Largest", "Samples", "column_errors", "largest_errors", "sample"]

_POINTS = 65536
_USUAL = 10.0
# A table that reaches further has no curve there worth sampling: a single cubic covers the rest.
_FARTHEST = 1e4
_SMALLEST_NORMAL = 2.0**-126


class Samples(NamedTuple):
    """Points of a range in fp32; the exact values there and the table's errors."""

    low: float
    high: float
    x: npt.NDArray[np.float32]
    exact: Wide
    error: Wide


class Largest(NamedTuple):
    """The largest errors: absolute, relative, in fp32 steps of the exact value; where the relative one is largest."""

    absolute: float
    relative: float
    ulp: float
    at: float


def sample(function: ActivationFunction, one: ActivationSet, span: tuple[float, float] | None) -> Samples:
    """Return the table's errors over a range, by default the one between the table's own thresholds.

    Raises UnsupportedError, or FormatError for a damaged table, where there is nothing to compare.
    """
    import numpy as np

    from emulator.activation_functions import FUNCTIONS, bind  # deferred: start-up
    from emulator.activation_tables import PiecewiseCubics  # deferred: start-up

    if function.name.lower() not in FUNCTIONS:
        raise UnsupportedError("no exact function to compare with")
    if not function.has_table:
        raise UnsupportedError("the file has no table of it")
    evaluate = PiecewiseCubics(function, one).evaluate
    low, high = span or _range(function)
    x = _points(low, high)
    wide = x.astype(np.float64)[None]
    exact = np.empty_like(wide)
    with np.errstate(all="ignore"):
        bind(function.name)(wide, exact, 0.01)
        return Samples(low, high, x, exact[0], evaluate(x).astype(np.float64) - exact[0])


def _range(function: ActivationFunction) -> tuple[float, float]:
    """Return where the table has its curve: between its own thresholds, or -10 to 10 where they say nothing."""
    ends = []
    for sign in ("neg", "pos"):
        exponent = function.profile.get(f"large_{sign}_signal_exp_threshold", 0)
        mantissa = function.profile.get(f"large_{sign}_signal_mantissa_threshold", 0)
        value = struct.unpack("<f", struct.pack("<I", min(exponent << 23 | mantissa, 0x7F7FFFFF)))[0]
        ends.append(value if 1e-3 < value < _FARTHEST else 0.0)
    low, high = ends
    if function.profile.get("symmetry_opt_en"):
        low = high = max(low, high)
    return -(low or _USUAL), high or _USUAL


def _points(low: float, high: float) -> npt.NDArray[np.float32]:
    """Return fp32 numbers over a range: evenly spaced, and ever denser towards zero where zero is inside."""
    import numpy as np

    parts = [np.linspace(low, high, _POINTS, dtype=np.float64)]
    for end in (low, high):
        if end and low <= 0 <= high:
            parts.append(np.sign(end) * np.geomspace(min(1e-6, abs(end)), abs(end), _POINTS // 4))
    joined = np.unique(np.concatenate(parts).astype(np.float32))
    points: npt.NDArray[np.float32] = joined[joined != 0]
    return points


def largest_errors(found: Samples) -> Largest | None:
    """Return the largest errors, None where no point has a finite one."""
    import numpy as np

    exact, error = found.exact, found.error
    kept = np.isfinite(exact) & np.isfinite(error)
    if not kept.any():
        return None
    relative = _relative(found)
    worst = int(np.argmax(np.where(kept, relative, -1)))
    step = np.spacing(np.maximum(np.abs(exact[kept]), _SMALLEST_NORMAL).astype(np.float32)).astype(np.float64)
    absolute = np.abs(error[kept])
    return Largest(float(absolute.max()), float(relative[worst]), float((absolute / step).max()), float(found.x[worst]))


def column_errors(found: Samples, width: int) -> list[float | None]:
    """Return the largest relative error in each column of a plot, None where nothing is finite."""
    import numpy as np

    x, low, high = found.x, float(found.x[0]), float(found.x[-1])
    columns = np.minimum(((x - low) / (high - low) * width).astype(int), width - 1) if high > low else x.astype(int)
    relative = _relative(found)
    finite = np.isfinite(relative)
    return [
        float(relative[here].max()) if (here := finite & (columns == column)).any() else None for column in range(width)
    ]


def _relative(found: Samples) -> Wide:
    """Return errors over exact values; below fp32's normal range, over the smallest normal number."""
    import numpy as np

    relative: Wide = np.abs(found.error) / np.maximum(np.abs(found.exact), _SMALLEST_NORMAL)
    return relative
