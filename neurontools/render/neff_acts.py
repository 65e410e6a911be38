"""Activation functions of a file: their tables, how far these are from the exact functions, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import FormatError, NotFoundError, UnsupportedError
from neurontools.render.table import bold, count, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from formats.neff import Subgraph
    from formats.neff.activation import ActivationFunction, ActivationSet

__all__ = ["act_lines", "acts", "plot_lines"]

_POINTS = 65536
_USUAL = 10.0
# A table that reaches farther has no curve there worth sampling: one cubic goes on.
_FARTHEST = 1e4
_WIDTH, _HEIGHT = 72, 10
_BARS = " ▁▂▃▄▅▆▇█"


def acts(graph: Subgraph, plotted: str | None, span: tuple[float, float] | None) -> dict[str, Any]:
    """Return the sets of a subgraph with every function, and the errors of one function along its range if asked for.

    Errors are of the fp32 table against the exact function in fp64; `ulp` counts fp32 steps of the exact value.
    """
    words = _words(graph)
    sets, curve = [], None
    for one in graph.activation_sets:
        functions = []
        for function in one.functions:
            row, found = _function(one, function, words.get(function.func_id, 0), span)
            functions.append(row)
            if plotted is not None and curve is None and function.name.lower() == plotted.lower():
                if found is None:
                    raise UnsupportedError(f"{function.name}: {row['reason']}")
                curve = {"name": function.name, **_curve(*found)}
        sets.append(
            {
                "name": one.name,
                "table_select": one.table_select,
                "buckets": len(one.buckets),
                "controls": len(one.controls),
                "functions": functions,
            }
        )
    if plotted is not None and curve is None:
        names = ", ".join(f["name"] for one in sets for f in one["functions"]) or "none"
        raise NotFoundError(f"{graph.name} has no activation function {plotted!r}; functions: {names}")
    info = graph.activation_info
    known = (
        []
        if info is None
        else [
            {"name": one.name, "functions": dict(one.functions), "packed": any(s["name"] == one.name for s in sets)}
            for one in info.sets
        ]
    )
    return {"subgraph": graph.name, "sets": sets, "known_sets": known, "curve": curve}


def _words(graph: Subgraph) -> dict[int, int]:
    """Return how many words use each function code."""
    found: dict[int, int] = {}
    for word in graph.streams["Activation"]:
        code = getattr(word, "function", None)
        if code is not None:
            found[int(code)] = found.get(int(code), 0) + 1
    return found


def _function(
    one: ActivationSet, function: ActivationFunction, words: int, span: tuple[float, float] | None
) -> tuple[dict[str, Any], Any]:
    from emulator.activation_functions import FUNCTIONS
    from emulator.activation_tables import PiecewiseCubics

    row: dict[str, Any] = {
        "func_id": function.func_id,
        "name": function.name,
        "pieces": function.pieces,
        "first_bucket": one.bucket_starts.get(function.name),
        "words": words,
        "range": None,
        "max_absolute": None,
        "max_relative": None,
        "max_ulp": None,
        "worst_at": None,
        "reason": None,
    }
    if function.name.lower() not in FUNCTIONS:
        row["reason"] = "no exact function to compare with"
        return row, None
    if not function.has_table:
        row["reason"] = "the file has no table of it"
        return row, None
    try:
        call = PiecewiseCubics(function, one).evaluate
    except (UnsupportedError, FormatError) as error:
        row["reason"] = str(error)
        return row, None
    low, high = span or _range(function)
    x = _samples(low, high)
    exact, error = _errors(call, function.name, x)
    import numpy as np

    kept = np.isfinite(exact) & np.isfinite(error)
    relative = _relative(exact, error)
    row["range"] = [low, high]
    if kept.any():
        worst = int(np.argmax(np.where(kept, relative, -1)))
        row["max_absolute"] = float(np.abs(error[kept]).max())
        row["max_relative"] = float(relative[worst])
        row["max_ulp"] = float((np.abs(error[kept]) / _ulp(exact[kept])).max())
        row["worst_at"] = float(x[worst])
    return row, (x, exact, error)


def _range(function: ActivationFunction) -> tuple[float, float]:
    """Return where the table has its curve: between its own thresholds, or -10 to 10 where they say nothing."""
    import struct

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


def _samples(low: float, high: float) -> npt.NDArray[np.float32]:
    """Return fp32 numbers over a range, evenly, and closer and closer to zero where zero is in it."""
    import numpy as np

    even = np.linspace(low, high, _POINTS, dtype=np.float64)
    parts = [even]
    for end in (low, high):
        if end and low <= 0 <= high:
            parts.append(np.sign(end) * np.geomspace(min(1e-6, abs(end)), abs(end), _POINTS // 4))
    joined = np.unique(np.concatenate(parts).astype(np.float32))
    return joined[joined != 0]


def _errors(call: Any, name: str, x: npt.NDArray[np.float32]) -> tuple[Any, Any]:
    """Return the exact values and the table's errors, both fp64."""
    import numpy as np

    from emulator.activation_functions import bind

    wide = x.astype(np.float64)[None]
    exact = np.empty_like(wide)
    with np.errstate(all="ignore"):
        bind(name)(wide, exact, 0.01)
        return exact[0], call(x).astype(np.float64) - exact[0]


def _relative(exact: Any, error: Any) -> Any:
    """Return errors over exact values; where the exact value is below fp32's normal range, over that range's end."""
    import numpy as np

    return np.abs(error) / np.maximum(np.abs(exact), 2.0**-126)


def _ulp(exact: Any) -> Any:
    import numpy as np

    return np.spacing(np.maximum(np.abs(exact), 2.0**-126).astype(np.float32)).astype(np.float64)


def _curve(x: Any, exact: Any, error: Any) -> dict[str, Any]:
    """Return the largest relative error of each of the plot's columns, None where nothing is finite."""
    import numpy as np

    low, high = float(x[0]), float(x[-1])
    columns = np.minimum(((x - low) / (high - low) * _WIDTH).astype(int), _WIDTH - 1) if high > low else x.astype(int)
    relative = _relative(exact, error)
    finite = np.isfinite(relative)
    largest = [
        float(relative[here].max()) if (here := finite & (columns == column)).any() else None
        for column in range(_WIDTH)
    ]
    return {"range": [low, high], "relative": largest}


def act_lines(found: dict[str, Any]) -> list[str]:
    """Return `neff acts` for people."""
    lines: list[str] = []
    for one in found["sets"]:
        lines.append(
            bold(
                f"{found['subgraph']} set {one['table_select']}: {one['name']}, "
                f"{count(one['buckets'], 'bucket')}, {count(one['controls'], 'control')}"
            )
        )
        rows = [
            [
                f["func_id"],
                f["name"],
                f["pieces"],
                f["first_bucket"],
                f["words"],
                _span(f["range"]),
                _short(f["max_absolute"]),
                _short(f["max_relative"]),
                _short(f["max_ulp"]),
                _short(f["worst_at"]),
            ]
            for f in one["functions"]
        ]
        heads = ["code", "function", "pieces", "bucket", "words", "range", "absolute", "relative", "ulp", "worst at"]
        lines += ["", *table(heads, rows), ""]
        lines += [f"{f['name']}: {f['reason']}" for f in one["functions"] if f["reason"]]
    if not found["sets"]:
        lines.append(f"{found['subgraph']} uses no activation table")
    packed = sum(one["packed"] for one in found["known_sets"])
    if found["known_sets"]:
        lines.append(f"{count(len(found['known_sets']), 'set')} known to the compiler, {packed} packed")
    return lines


def plot_lines(curve: dict[str, Any]) -> list[str]:
    """Return the errors of one function as a plot: columns over its range, height the logarithm of the error."""
    from math import floor, log10

    values = [value for value in curve["relative"] if value]
    low, high = curve["range"]
    title = f"{curve['name']}: relative error of the table, {low:g} to {high:g}"
    if not values:
        return [title, "exact everywhere"]
    top = log10(max(values))
    bottom = floor(min(log10(min(values)), top - 1))
    eighths = [
        0 if not value else max(1, round((log10(value) - bottom) / (top - bottom) * _HEIGHT * 8))
        for value in curve["relative"]
    ]
    lines = [title]
    for row in range(_HEIGHT - 1, -1, -1):
        label = f"{10**top:.1e}" if row == _HEIGHT - 1 else f"{10.0**bottom:.0e}" if row == 0 else ""
        bar = "".join(_BARS[min(8, max(0, height - 8 * row))] for height in eighths)
        lines.append(f"{label:>8} ┤{bar}".rstrip())
    left, right = f"{low:g}", f"{high:g}"
    lines.append(f"{'':>8} └{'─' * _WIDTH}")
    lines.append(f"{'':>10}{left}{right.rjust(_WIDTH - len(left))}")
    return lines


def _span(ends: list[float] | None) -> str | None:
    return None if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
