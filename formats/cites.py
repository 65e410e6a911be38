"""Cites of the reference pages: `hardware.md 3.9, 8.1: A-1` names two sections of docs/reference/hardware.md.

A cite is free text with such keys in it. Tables keep it as it is; whoever shows it to a person adds how to open it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from formats.named_tuple import NamedTuple

__all__ = ["PAGES", "Key", "how_to_open", "keys", "markdown"]

PAGES = (
    "isa.md", "formats.md", "hardware.md", "runtime.md", "nki.md", "machine.md", "collectives.md", "compiler.md",
)  # fmt: skip

_NUMBER = r"\d+(?:\.\d+)*(?![\w%])"
_KEY = re.compile(rf"\b({'|'.join(map(re.escape, PAGES))})(?: ({_NUMBER}(?:(?:,? |-|, | to ){_NUMBER})*))?")


class Key(NamedTuple):
    """One section of a reference page; `number` is empty for the whole page."""

    page: str
    number: str = ""

    @property
    def anchor(self) -> str:
        """The fragment that leads to the section: every numbered heading of a page stands behind its anchor."""
        return self.number.replace(".", "-")

    @property
    def target(self) -> str:
        """Page and fragment, as a link beside the pages names them."""
        return f"{self.page}#{self.anchor}" if self.number else self.page


def keys(cite: str) -> list[Key]:
    """Return the sections that a cite names, each once, in its order."""
    found = [Key(match[1], number) for match in _KEY.finditer(cite) for number in _numbers(match)]
    return list(dict.fromkeys(found))


def how_to_open(*cites: str) -> str:
    """Return the command line that prints the sections that the cites name, "" where they name none."""
    pages: dict[str, list[str]] = {}
    for page, number in (key for cite in cites for key in keys(cite)):
        pages.setdefault(page, []).append(number)
    words = [word for page, numbers in pages.items() for word in (page, *dict.fromkeys(filter(None, numbers)))]
    return " ".join(["neurontools reference", *words]) if words else ""


def markdown(cite: str, folder: str) -> str:
    """Return a cite with its keys as Markdown links to the pages in `folder`."""

    def linked(match: re.Match[str]) -> str:
        if match[2] is None:
            return f"[{match[1]}]({folder}/{match[1]})"
        before = f"{match[1]} "
        parts = []
        for number in re.finditer(_NUMBER, match[2]):
            parts.append(f"[{before}{number[0]}]({folder}/{Key(match[1], number[0]).target})")
            before = ""
        between = re.split(_NUMBER, match[2])[1:]
        return "".join(part + gap for part, gap in zip(parts, between, strict=True))

    return _KEY.sub(linked, cite)


def _numbers(match: re.Match[str]) -> Iterable[str]:
    return re.findall(_NUMBER, match[2]) if match[2] else ("",)
