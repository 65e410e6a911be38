"""Emulated time as text: the one way in which times are printed. Values stay integer picoseconds."""

from __future__ import annotations

__all__ = ["duration"]

_UNITS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3))


def duration(picoseconds: int) -> str:
    """Return a time in the largest unit of which it has at least one, to three decimals: "64.000 ns", "2 ps"."""
    for unit, factor in _UNITS:
        if picoseconds >= factor:
            return f"{picoseconds / factor:.3f} {unit}"
    return f"{picoseconds} ps"
