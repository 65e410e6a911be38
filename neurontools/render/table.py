"""Plain columns, counts and units."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

__all__ = ["arrow", "bold", "bytes_text", "count", "duration", "table"]


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return aligned lines: numbers to the right, everything else to the left, no trailing blanks."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [bool(cells) and all(_numeric(row[i]) for row in cells) for i in range(len(heads))]
    widths = [max(len(head), *(len(row[i]) for row in cells)) if cells else len(head) for i, head in enumerate(heads)]

    def line(row: Sequence[str]) -> str:
        return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()

    return [bold(line(list(heads))), *map(line, cells)]


def bold(text: str) -> str:
    """Return text in bold on a terminal that wants colours, and as it is elsewhere (NO_COLOR)."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def arrow() -> str:
    """Return "=>", green on a terminal that wants colours."""
    return "\033[32m=>\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "=>"


def count(number: int, noun: str) -> str:
    """Return "1 error" or "3 errors"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def bytes_text(number: int) -> str:
    """Return a size in the largest binary unit that keeps it above one."""
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def duration(picoseconds: int) -> str:
    """Return device time with three or four digits and its unit."""
    for unit, factor in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if picoseconds >= factor:
            return f"{picoseconds / factor:.3f} {unit}"
    return f"{picoseconds} ps"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _numeric(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "").lstrip("-").isdigit()
