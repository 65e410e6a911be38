"""Words of HLO text."""

from __future__ import annotations

import re
from typing import NoReturn

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["Lexer", "Token", "quoted", "quoted_bytes"]

_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|/\*.*?\*/|//[^\n]*)+)
    | (?P<labels>[0-9bf?]{2,}_[0-9io?]{2,}->[0-9bf?]{2,})
    | (?P<pads>-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?)*(?![\w.]))
    | (?P<sizes>[0-9]+(?:x[0-9]+)+(?!\w))
    | (?P<number>[-+]?(?:0x[0-9a-fA-F]+|nan(?:\(0x[0-9a-fA-F]+\))?(?![\w.])|inf(?:inity)?(?![\w.])
                 |[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)(?![\w]))
    | (?P<name>%?[A-Za-z_](?:[\w.]|-(?!>))*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<sign>->|<=|\.\.\.|[{}()\[\],=:<>?*+@|;/.-])
    """,
    re.VERBOSE | re.DOTALL,
)
# XLA escapes bytes, not characters: a letter beyond ASCII is several escapes.
_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


class Token(NamedTuple):
    """One word: its kind, text, and where it begins; the kind is `end` behind the last."""

    kind: str
    text: str
    offset: int


_END = "end"


class Lexer:
    """Words of a text, one looked at ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._offset = 0
        self._end = 0  # of the word before the next
        self.here = self._read()

    def _read(self) -> Token:
        while True:
            if self._offset >= len(self.text):
                return Token(_END, "", self._offset)
            match = _TOKEN.match(self.text, self._offset)
            if match is None:
                self.fail_at(self._offset, "no word of HLO text", got=repr(self.text[self._offset : self._offset + 12]))
            start, self._offset = self._offset, match.end()
            if match[0] == "/" and self.text.startswith("*", self._offset):  # looked for once, not for each of many
                self.fail_at(start, "a comment that does not end")
            if match.lastgroup != "space":
                return Token(match.lastgroup or "", match[0], start)

    def take(self) -> Token:
        """Return the word and go to the next."""
        token = self.here
        self._end = token.offset + len(token.text)
        self.here = self._read()
        return token

    def at(self, *texts: str) -> bool:
        """Return whether the next word is one of these."""
        return self.here.text in texts and self.here.kind != "string"

    def touches(self, text: str) -> bool:
        """Return whether the next word is this one and nothing lies before it."""
        return self.at(text) and self._end == self.here.offset

    def accept(self, text: str) -> bool:
        """Go past a word if it is there."""
        if self.at(text):
            self.take()
            return True
        return False

    def need(self, text: str) -> None:
        """Go past a word that must be there."""
        if not self.accept(text):
            self.fail("unexpected word", expected=repr(text))

    def kind(self, kind: str, what: str) -> str:
        """Return a word that must be of a kind."""
        if self.here.kind != kind:
            self.fail("unexpected word", expected=what)
        return self.take().text

    def name(self) -> str:
        """Return a name without its percent sign."""
        return self.kind("name", "a name").removeprefix("%")

    def string(self) -> str:
        """Return a quoted text; bytes in it that are no UTF-8 stay escaped."""
        return self.raw().decode("utf-8", "backslashreplace")

    def raw(self) -> bytes:
        """Return the bytes that a quoted text stands for."""
        return _ESCAPE.sub(_unescaped, self.kind("string", "a quoted text")[1:-1].encode("utf-8", "replace"))

    def integer(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        """Return a whole number."""
        if self.here.kind == "number" and len(self.here.text) < 25:
            try:
                value = int(self.here.text, 0) if "x" in self.here.text else int(self.here.text)
            except ValueError:
                value = high + 1
            if low <= value <= high:
                self.take()
                return value
        return self.fail("unexpected word", expected=f"a whole number from {low} to {high}")

    def boolean(self) -> bool:
        """Return true or false."""
        word = self.take().text
        if word in ("true", "false", "1", "0"):
            return word in ("true", "1")
        return self.fail("unexpected word", expected="true or false")

    def skip_value(self) -> None:
        """Go past one word, or past everything between brackets that match."""
        closing = {"{": "}", "(": ")", "[": "]"}
        open_ones: list[str] = []
        while True:
            token = self.take()
            if token.kind == _END:
                self.fail("the text ends inside brackets")
            if token.kind == "sign" and token.text in closing:
                open_ones.append(closing[token.text])
            elif (
                token.kind == "sign"
                and token.text in closing.values()
                and (not open_ones or open_ones.pop() != token.text)
            ):
                self.fail_at(token.offset, "a bracket without its other half", got=repr(token.text))
            if not open_ones:
                return

    def fail(self, what: str, expected: str = "") -> NoReturn:
        """Raise FormatError at the next word."""
        got = repr(self.here.text[:40]) if self.here.kind != _END else "the end"
        self.fail_at(self.here.offset, what, expected=expected or None, got=got)

    def fail_at(self, offset: int, what: str, expected: str | None = None, got: str | None = None) -> NoReturn:
        """Raise FormatError at a place of the text, as line and column."""
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        raise FormatError(what, field=f"line {line}, column {column}", expected=expected, got=got)


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 8) & 0xFF])
    return bytes([int(match[2], 16)]) if match[2] else _LETTERS.get(match[3], match[3])


def quoted(text: str) -> str:
    """Return a text in quotes, with what would end it or its line escaped."""
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{out}"'


def quoted_bytes(data: bytes) -> str:
    """Return bytes in quotes: UTF-8 as it is, any other byte in octal."""
    out = quoted(data.decode("utf-8", "surrogateescape"))
    return "".join(f"\\{ord(c) - 0xDC00:03o}" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in out)
