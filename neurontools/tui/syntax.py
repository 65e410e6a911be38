"""Colours of what is read: instructions and assembler programs by their parts, kernels by Python's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["Part", "source_parts", "word_parts"]

Part = tuple[str, str]  # a text with the role that colours it

_WORD = re.compile(
    r"(?P<semaphore>\b(?:S|E)\[\d+\](?:>=|<=|==|>|<|\+\+|--|\+=|-=|=)?-?\d*(?:@\w+)?)"
    r"|(?P<operand>\b\w+@0x[0-9a-f]+(?:\[[^\]]*\])*)"
    r"|(?P<field>\b[a-z_]\w*=)"
    r"|(?P<comment>[#;].*$)"
)
_OPCODE = re.compile(r"\s*(?P<opcode>[A-Z][A-Z0-9_]+)\b")
_PYTHON = re.compile(
    r"(?P<comment>\#.*$)"
    r"|(?P<text>(?:\b[rbfuRBFU]{1,2})?(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'))"
    r"|(?P<keyword>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|"
    r"for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b)"
    r"|(?P<number>\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:e[-+]?\d+)?)\b)"
    r"|(?P<mark>@[A-Za-z_][\w.]*)"
    r"|(?P<call>\b[A-Za-z_][\w.]*(?=\())"
)
_QUOTES = re.compile(r'"""|\'\'\'')


def word_parts(text: str, role: str = "") -> tuple[Part, ...]:
    """Return an instruction with the roles of its opcode, operands and semaphores; what is left has `role`."""
    return _word(text, role)


@lru_cache(4096)
def _word(text: str, role: str) -> tuple[Part, ...]:
    head = _OPCODE.match(text)
    if head is None:
        return tuple(_split(_WORD, text, 0, role))
    start = head.start("opcode")
    before = ((text[:start], role),) if start else ()
    return (*before, (head["opcode"], "opcode"), *_split(_WORD, text, head.end(), role))


@lru_cache(64)
def source_parts(lines: Sequence[str], python: bool) -> tuple[tuple[Part, ...], ...]:
    """Return the lines of a source file, Python's or an assembler program's, in parts."""
    if not python:
        return tuple(_assembler(line) for line in lines)
    found, quotes = [], ""
    for line in lines:
        parts: list[Part] = []
        at = 0
        while at < len(line) or not line:
            if quotes:
                end = line.find(quotes, at)
                behind = len(line) if end < 0 else end + 3
                parts.append((line[at:behind], "text"))
                quotes, at = ("" if end >= 0 else quotes), behind
            else:
                opening = _QUOTES.search(line, at)
                if opening is None or "#" in line[at : opening.start()]:
                    parts += _split(_PYTHON, line, at, "")
                    at = len(line)
                else:
                    parts += _split(_PYTHON, line[: opening.start()], at, "")
                    parts.append((opening[0], "text"))
                    quotes, at = opening[0], opening.end()
            if at >= len(line):
                break
        found.append(tuple(parts))
    return tuple(found)


def _assembler(line: str) -> tuple[Part, ...]:
    stripped = line.lstrip()
    if stripped.startswith("."):
        word = stripped.split(None, 1)[0]
        start = line.index(word)
        return ((line[:start], ""), (word, "keyword"), *_split(_WORD, line, start + len(word), ""))
    return word_parts(line)


def _split(pattern: re.Pattern[str], text: str, start: int, role: str) -> list[Part]:
    """Return a text from `start` on in parts: what a group of the pattern matches has the group's name as its role."""
    found: list[Part] = []
    at = start
    for each in pattern.finditer(text, start):
        if each.start() > at:
            found.append((text[at : each.start()], role))
        found.append((each[0], "dim" if each.lastgroup in ("comment", "field") else each.lastgroup or role))
        at = each.end()
    if at < len(text):
        found.append((text[at:], role))
    return found
