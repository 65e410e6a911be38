"""Two runs side by side: what each source line takes more or less."""

from __future__ import annotations

from collections.abc import Iterable

from neurontools.profile.results import LineDelta, LineRow

__all__ = ["deltas"]


def deltas(now: Iterable[LineRow], before: Iterable[LineRow]) -> tuple[LineDelta, ...]:
    """Return the differences by line, now less before, the largest on the critical path first; equal ones are left out.

    Lines are matched by file name and number.
    """
    old, new = ({one.line: _times(one) for one in rows} for rows in (before, now))
    none = (0.0,) * 4
    found = []
    for line in dict.fromkeys((*new, *old)):
        gaps = [round(a - b, 3) for a, b in zip(new.get(line, none), old.get(line, none), strict=True)]
        if any(gaps):
            found.append(LineDelta(line, *gaps))
    return tuple(sorted(found, key=lambda one: (-abs(one.critical_delta_ns), -abs(one.busy_delta_ns))))


def _times(row: LineRow) -> tuple[float, ...]:
    return row.critical_ns, row.busy_ns, row.wait_ns, row.dma_ns
