"""The reference pages as data: where they are, their sections, the text of one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from formats.cites import PAGES, Key
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple

__all__ = ["Heading", "Page", "Section", "folder", "page", "section"]

_HEADING = re.compile(r'^<a id="([\d-]+)"></a>\n(#{2,3}) ([\d.]+) (.*)$', re.MULTILINE)


class Heading(NamedTuple):
    """A numbered section of a page."""

    number: Annotated[str, "as cites give it: 5.1"]
    title: str


class Page(NamedTuple):
    """A page and its sections."""

    name: Annotated[str, "as cites give it: isa.md"]
    title: str
    path: Annotated[str, "the file, in Markdown"]
    sections: tuple[Heading, ...]


class Section(NamedTuple):
    """One section, its subsections included."""

    page: str
    number: str
    title: str
    path: Annotated[str, "the file, with the fragment that leads to the section"]
    text: Annotated[str, "Markdown"]


@cache
def folder() -> Path:
    """Return where the pages are: inside an installed package, in docs/reference of a source tree."""
    installed = Path(__file__).with_name("pages")
    return installed if installed.is_dir() else Path(__file__).parents[2] / "docs" / "reference"


def page(name: str) -> Page:
    """Return a page and its headings; NotFoundError for a name that is none of `PAGES`."""
    if name not in PAGES:
        raise NotFoundError(f"no reference page {name!r}; there are {', '.join(PAGES)}")
    text = _text(name)
    title = text.split("\n", 1)[0].removeprefix("# ")
    return Page(name, title, str(folder() / name), tuple(Heading(m[3], m[4]) for m in _HEADING.finditer(text)))


def section(key: Key) -> Section:
    """Return a section with what stands below it; NotFoundError for a number that the page does not have."""
    text, found = _text(key.page), None
    for match in _HEADING.finditer(text):
        if found is not None and len(match[2]) <= len(found[2]):
            return _section(key, found, text[found.start(2) : match.start()])
        if match[3] == key.number:
            found = match
    if found is None:
        numbers = ", ".join(heading.number for heading in page(key.page).sections)
        raise NotFoundError(f"{key.page} has no section {key.number}; it has {numbers}")
    return _section(key, found, text[found.start(2) :])


def _section(key: Key, heading: re.Match[str], text: str) -> Section:
    plain = re.sub(r'^<a id="[\d-]+"></a>\n', "", text, flags=re.MULTILINE).strip()
    return Section(key.page, key.number, heading[4], str(folder() / key.target), plain)


@cache
def _text(name: str) -> str:
    return (folder() / name).read_text(encoding="utf-8")
