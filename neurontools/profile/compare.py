"""Two runs side by side: what each source line takes more or less."""

from __future__ import annotations

from collections.abc import Iterable

from neurontools.profile.results import LineDelta, LineRow

__all__ = ["deltas"]

_NONE = (0.0,) * 4


def deltas(now: Iterable[LineRow], before: Iterable[LineRow]) -> tuple[LineDelta, ...]:
    """Return the differences by line, now less before, the largest on the critical path first; equal ones are left out.

    Lines are matched by file name and number; those of two files of one name count together.
    """
    old, new = _by_line(before), _by_line(now)
    found = []
    for line in dict.fromkeys((*new, *old)):
        gaps = [round(a - b, 3) for a, b in zip(new.get(line, _NONE), old.get(line, _NONE), strict=True)]
        if any(gaps):
            found.append(LineDelta(line, *gaps))
    return tuple(sorted(found, key=lambda one: (-abs(one.critical_delta_ns), -abs(one.busy_delta_ns))))


def _by_line(rows: Iterable[LineRow]) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for row in rows:
        times = row.critical_ns, row.busy_ns, row.wait_ns, row.dma_ns
        found[row.line] = tuple(map(sum, zip(found.get(row.line, _NONE), times, strict=True)))
    return found
