"""Names that commands take: engines, cores, element types, program places."""

from __future__ import annotations

import re

from formats.dtypes import Dtype
from formats.engines import ENGINE_ALIASES, engine_name, short_engine
from formats.errors import FormatError
from formats.numerals import parse_signed
from neurontools.debugger.errors import UsageError

__all__ = [
    "engine_name",
    "is_engine",
    "parse_core",
    "parse_dtype",
    "parse_number",
    "parse_time",
    "positive",
    "short_engine",
]

_CORE = re.compile(r"nc(\d{1,9})(?:[.:/\s]\s*|$)", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ps|ns|us|ms|s)", re.IGNORECASE)
_LATEST = 1 << 62  # no run comes near it; enough digits in a text are an infinity
_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def is_engine(text: str) -> bool:
    """Return whether a word names an engine."""
    return text.lower() in ENGINE_ALIASES


def parse_core(text: str) -> tuple[int | None, str]:
    """Take "nc1", "nc1." or "nc1 " off the front; return the core, None where there is none, and the rest."""
    found = _CORE.match(text)
    return (int(found[1]), text[found.end() :].strip()) if found else (None, text.strip())


def parse_number(text: str, what: str) -> int:
    """Return a decimal or 0x number; UsageError names what it should have been."""
    try:
        return parse_signed(text)
    except ValueError:
        raise UsageError(f"{text!r} is not {what}") from None


def positive(count: int) -> int:
    """Return a count; UsageError for one below 1."""
    if count < 1:
        raise UsageError(f"a count is at least 1, not {count}")
    return count


def parse_time(text: str) -> int | None:
    """Return picoseconds for "1.5us", "300ns", "20ps", at most 53 days of them; None where the text is not a time."""
    found = _TIME.fullmatch(text.strip())
    return None if found is None else round(min(float(found[1]) * _PICOSECONDS[found[2].lower()], _LATEST))


def parse_dtype(text: str) -> Dtype | None:
    """Return the element type that a NumPy name or a profiler spelling names, None where there is none."""
    for lookup in (Dtype.from_numpy_name, Dtype.from_spelling):
        try:
            return lookup(text)
        except FormatError:
            continue
    return None
