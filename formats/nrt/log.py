"""Lines of a Neuron runtime log, as the documentation shows them.

`2025-Sep-19 18:57:20.782962  4444:4444  ERROR  TDRV:exec_wait_round_robin   text`; older releases write four digits of
a second's fraction, and loggers put their own prefix in front.  Source: AWS Neuron documentation, nrt-troubleshoot and
the core dump quickstart.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from formats.named_tuple import NamedTuple

__all__ = ["LEVELS", "LINE_LIMIT", "LogLine", "clean", "format_line", "parse_line"]

LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
LINE_LIMIT = 4096  # characters of a line that are looked at
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_LINE = re.compile(
    r"(?P<year>\d{4})-(?P<month>[A-Z][a-z]{2})-(?P<day>\d{1,2})\s{1,4}"
    r"(?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2})\.(?P<fraction>\d{1,9})\s{1,8}"
    r"(?P<pid>\d{1,10}):(?P<tid>\d{1,10})\s{1,8}(?P<level>[A-Z]{3,8})\s{1,8}"
    r"(?P<module>[A-Za-z_]{2,16}):(?P<function>[A-Za-z_][\w.]{0,100})(?:\s+(?P<text>.*))?$",
    re.ASCII,
)
_PLACE_WIDTH = 44  # of "MODULE:function" in the documented lines
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class LogLine(NamedTuple):
    """One line: `number` counts from 1; `time` is what the host wrote, taken as UTC; `text` is the message."""

    number: int
    time: datetime
    pid: int
    tid: int
    level: str
    module: str
    function: str
    text: str


def clean(line: str) -> str:
    """Return a line without colours and control characters, cut at a length that no message reaches."""
    return _CONTROL.sub("", line[:LINE_LIMIT]).rstrip()


def parse_line(line: str, number: int = 1) -> LogLine | None:
    """Return the fields of a line, None for a line that has another form."""
    found = _LINE.search(clean(line))
    if found is None or found["month"] not in _MONTHS:
        return None
    try:
        # Older releases print ".0593": milliseconds after a zero, so digits are no decimal fraction there.
        fraction = found["fraction"]
        micro = int(fraction) * 1000 if len(fraction) == 4 else int(fraction.ljust(6, "0")[:6])
        time = datetime(
            int(found["year"]),
            _MONTHS[found["month"]],
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            int(found["second"]),
            min(micro, 999_999),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return LogLine(
        number,
        time,
        int(found["pid"]),
        int(found["tid"]),
        found["level"],
        found["module"],
        found["function"],
        (found["text"] or "").strip(),
    )


def format_line(time: datetime, pid: int, tid: int, level: str, module: str, function: str, text: str) -> str:
    """Return a line as newer releases write it, modules and functions in columns; the inverse of `parse_line`."""
    month = next(name for name, number in _MONTHS.items() if number == time.month)
    place = f"{module:>4}:{function}".ljust(_PLACE_WIDTH)
    return f"{time:%Y}-{month}-{time:%d %H:%M:%S.%f}  {pid}:{tid}  {level}  {place} {text}".rstrip()
