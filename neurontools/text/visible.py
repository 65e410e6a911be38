"""Control characters made visible: names and logs come from files, and a terminal obeys what it prints."""

from __future__ import annotations

import os
import re
import sys

__all__ = ["colours", "json_text", "printable", "visible", "visible_line"]

# ESC, BEL and their like by pictures; C1, which terminals obey too, and what turns the direction of text, by code.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_CODES = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)} | {
    code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}
_IN_LINE = _PICTURES | _CODES | {ord("\t"): " "}
_IN_TEXT = {code: text for code, text in _IN_LINE.items() if code not in (ord("\n"), ord("\t"))}
_OURS = re.compile("(\033\\[(?:0|1|32)m)")  # all that `neurontools.text.table` colours with


def visible(text: str) -> str:
    """Return a text with every control character but newline and tab replaced by something to see."""
    return text if text.isprintable() else text.translate(_IN_TEXT)


def visible_line(text: str) -> str:
    """Return what `visible` does, as one line: also newlines are replaced, and tabs by a blank."""
    return text if text.isprintable() else text.translate(_IN_LINE)


def colours() -> bool:
    """Return whether standard output is a terminal that wants colours (NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """Return what `visible` does, with the escapes of our own colours left in place where there are colours."""
    if text.isprintable():
        return text
    if not colours():
        return visible(text)
    return "".join(part if number % 2 else visible(part) for number, part in enumerate(_OURS.split(text)))


def json_text(text: str) -> str:
    """Return a JSON document with the one control character escaped that `json.dumps` leaves as it is."""
    return text.replace("\x7f", "\\u007f")
