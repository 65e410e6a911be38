"""Numbers in text: what counts as one, wherever text comes from a file, a variable or a person."""

from __future__ import annotations

import re
from math import isinf

__all__ = ["parse_decimal", "parse_real", "parse_signed", "version_numbers"]

_REAL = re.compile(
    r"[+-]?(?:(?P<digits>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)|inf|infinity|nan)", re.IGNORECASE
)
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")


def parse_decimal(text: str, digits: int = 9) -> int | None:
    """Return a number of at most so many ASCII digits, None for any other text.

    `str.isdigit` lets through what `int` refuses ("²"), `int` takes the digits of every script and underscores, and
    raises ValueError beyond 4,300 digits.
    """
    return int(text) if len(text) <= digits and text.isascii() and text.isdecimal() else None


def parse_signed(text: str) -> int:
    """Return an integer, decimal or with 0x, with or without a minus sign; ValueError for any other text.

    `int(text, 0)` would take 0b1, 1_000 and the digits of every script as well.
    """
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no integer")
    return int(text, 0 if "x" in text or "X" in text else 10)


def parse_real(text: str) -> float:
    """Return a number with or without a fraction and an exponent, an infinity or NaN; ValueError for any other text.

    OverflowError where digits give an infinity. `float` would make one of them, and take 1_0.5 and the digits of every
    script.
    """
    match = _REAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no number")
    value = float(text)
    if match["digits"] and isinf(value):
        raise OverflowError(f"{text[:40]!r} is too large")
    return value


def version_numbers(text: str) -> tuple[int, ...] | None:
    """Return "2.31.24.0" as numbers, None for what is no version."""
    parts = tuple(map(parse_decimal, text.split(".")))
    numbers = tuple(part for part in parts if part is not None)
    return numbers if len(numbers) == len(parts) else None
