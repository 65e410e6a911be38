"""Sizes as the runtime's memory reports write them, "20.188GB", read and written."""

from __future__ import annotations

import re
from math import floor

from formats.errors import FormatError

__all__ = ["UNITS", "parse_size", "size_step", "size_text"]

UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_SIZE = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?(B|KB|MB|GB|TB)", re.ASCII)
_LARGEST = 1 << 50  # bytes; no machine has as much, and nothing below is rounded in a float


def size_text(nbytes: int) -> str:
    """Return bytes as the runtime prints them: the largest unit that keeps the number at one or more, three digits."""
    unit = "B"
    for name, scale in UNITS.items():
        if nbytes >= scale:
            unit = name
    return f"{nbytes / UNITS[unit]:.3f}{unit}"


def parse_size(text: str, where: str | None = None) -> int:
    """Return the bytes of a printed size, to the nearest byte that prints the same; FormatError for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[3] == "TB":
        raise FormatError("not a size", path=where, expected="a number and B, KB, MB or GB", got=repr(text[:40]))
    digits = found[2] or ""
    scaled = int(found[1] + digits) * UNITS[found[3]]
    nbytes: int = floor(scaled / float(10 ** len(digits)) + 0.5)
    if nbytes > _LARGEST:
        raise FormatError("larger than any device memory", path=where, got=text[:40])
    return nbytes


def size_step(text: str) -> float:
    """Return the bytes between two sizes that print differently, such as 1,048.6 for "1.000MB"."""
    found = _SIZE.fullmatch(text.strip())
    return 0.0 if found is None else UNITS.get(found[3], 1) / 10 ** len(found[2] or "")
