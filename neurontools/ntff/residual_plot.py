"""Ratios of emulated to captured time as a plot in the terminal."""

from __future__ import annotations

from math import floor, log2

__all__ = ["COLUMNS", "column", "plot"]

_REACH, _PER_DOUBLING, _HEIGHT, _WIDE = 3, 4, 6, 2
_BARS = " ▁▂▃▄▅▆▇█"
# One column has 1 at its middle; the outermost hold what is farther out.
COLUMNS = 2 * _REACH * _PER_DOUBLING + 1


def column(ratio: float) -> int:
    """Return the column of a ratio."""
    return min(max(floor(log2(ratio) * _PER_DOUBLING + 0.5) + COLUMNS // 2, 0), COLUMNS - 1)


def plot(title: str, spread: list[int]) -> list[str]:
    """Return a histogram: columns a quarter of a doubling wide, the middle one is where both sides agree."""
    most = max(spread)
    # The share's root, so that a few stragglers beside thousands are still seen.
    eighths = [0 if not number else max(1, round((number / most) ** 0.5 * _HEIGHT * 8)) for number in spread]
    lines = [f"{title} by emulated over captured time; the highest column is {most:,}"]
    for row in range(_HEIGHT - 1, -1, -1):
        bar = "".join(_BARS[min(8, max(0, height - 8 * row))] * _WIDE for height in eighths)
        lines.append(f"  {bar}".rstrip())
    lines.append("  " + "─" * (COLUMNS * _WIDE))
    marks = {at * _PER_DOUBLING: label for at, label in enumerate(("1/8", "1/4", "1/2", "1", "2", "4", "8"))}
    return [*lines, "  " + "".join(marks.get(at, "").ljust(_WIDE * _PER_DOUBLING)
                                   for at in range(0, COLUMNS, _PER_DOUBLING)).rstrip()]  # fmt: skip
