"""Plain columns, counts and units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formats.times import duration
from neurontools.text.visible import colours, printable

__all__ = ["arrow", "bold", "bytes_text", "count", "duration", "ranges", "table"]


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
    return f"\033[1m{text}\033[0m" if colours() else text


def arrow() -> str:
    """Return "=>", green on a terminal that wants colours."""
    return "\033[32m=>\033[0m" if colours() else "=>"


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


def ranges(numbers: Iterable[int], between: str = ", ") -> str:
    """Return numbers with neighbours drawn together, "8-23, 40"; "-" for none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return between.join(str(first) if first == last else f"{first}-{last}" for first, last in runs) or "-"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _numeric(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "").lstrip("-").isdigit()
