"""What differs between two core dumps, for people and for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.core import plain
from neurontools.render.table import bytes_text, count, table

if TYPE_CHECKING:
    from neurontools.core_compare import Compared

__all__ = ["data", "lines"]

_SHOWN = 40
_WIDTH = 60


def data(found: Compared) -> dict[str, Any]:
    """Return the comparison for JSON."""
    return {
        "same": not (found.differences or found.memory),
        "differences": [{"where": d.where, "one": plain(d.one), "two": plain(d.two)} for d in found.differences],
        "memory": plain(found.memory),
        "compared": found.compared,
        "only_one": found.only_one,
        "only_two": found.only_two,
    }


def lines(found: Compared) -> list[str]:
    """Return the comparison for people."""
    rows = [[d.where, _cut(d.one), _cut(d.two)] for d in found.differences[:_SHOWN]]
    result = table(("what", "one", "two"), rows) if rows else []
    if len(found.differences) > _SHOWN:
        result.append(f"and {len(found.differences) - _SHOWN} more; --json lists them")
    memory = [
        [m.space, m.core, m.name or "-", m.partition, f"{m.first:#x}-{m.last:#x}", m.different]
        for m in found.memory[:_SHOWN]
    ]
    if memory:
        result += ["", *table(("memory", "core", "name", "partition", "bytes", "different"), memory)]
    if len(found.memory) > _SHOWN:
        result.append(f"and {len(found.memory) - _SHOWN} more; --json lists them")
    total = (
        f"{count(len(found.differences), 'difference')}, {count(len(found.memory), 'range')} of memory; "
        f"{bytes_text(found.compared)} are in both dumps, {bytes_text(found.only_one)} only in the first, "
        f"{bytes_text(found.only_two)} only in the second"
    )
    return [*result, "", total] if result else [f"the same: {total}"]


def _cut(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
