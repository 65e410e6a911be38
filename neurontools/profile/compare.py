"""Two runs side by side: what each source line takes more or less."""

from __future__ import annotations

from typing import Any

__all__ = ["deltas"]

_FIELDS = ("critical", "busy", "wait", "dma")


def deltas(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the differences by line, now less before, the largest on the critical path first; equal ones are left out.

    Lines are matched by file name and number.
    """
    old = {one["line"]: one for one in before}
    new = {one["line"]: one for one in now}
    found = []
    for line in dict.fromkeys((*new, *old)):
        one: dict[str, Any] = {"line": line}
        for field in _FIELDS:
            key = f"{field}_ns"
            one[f"{field}_delta_ns"] = round(new.get(line, {}).get(key, 0.0) - old.get(line, {}).get(key, 0.0), 3)
        if any(one[f"{field}_delta_ns"] for field in _FIELDS):
            found.append(one)
    return sorted(found, key=lambda one: (-abs(one["critical_delta_ns"]), -abs(one["busy_delta_ns"])))
