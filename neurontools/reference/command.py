"""`neurontools reference`: what a cite such as `hardware.md 5.1` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from formats.cites import PAGES, keys
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.reference.pages import Page, Section, page, section


class Reference(NamedTuple):
    """What was asked for: whole pages by their headings, sections with their text."""

    pages: tuple[Page, ...]
    sections: tuple[Section, ...]


def look_up(cite: str) -> Reference:
    """Return the pages and sections that a cite names, all pages where it is empty."""
    if not cite:
        return Reference(tuple(map(page, PAGES)), ())
    found = keys(cite)
    if not found:
        raise NotFoundError(f"{cite!r} names no reference page; there are {', '.join(PAGES)}")
    return Reference(
        tuple(page(key.page) for key in found if not key.number),
        tuple(section(key) for key in found if key.number),
    )


def reference_lines(found: Reference) -> Iterator[str]:
    """Yield the headings of pages, then the text of sections, each below the place where its file is."""
    for each in found.pages:
        yield from (f"{each.name}  {each.title}", f"  {each.path}")
        yield from (f"  {heading.number.ljust(5)} {heading.title}" for heading in each.sections)
        yield ""
    for one in found.sections:
        yield from (one.path, "", one.text, "")


def reference(
    cite: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CITE]",
            help="A cite as messages print it: hardware.md 5.1, or isa.md 2, 11. Without one, all pages.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the facts behind a cite, with their public sources.

    Messages, tables and manual pages cite the sections of eight pages: instruction words (isa.md), file formats
    (formats.md), hardware (hardware.md), runtime (runtime.md), instances and topologies (machine.md), collectives
    (collectives.md), compiler (compiler.md), NKI in public code (nki.md). Any text with such a cite in it will do.
    """
    text = " ".join(cite or ())
    with report("reference", json, cite=text or None) as out:
        found = look_up(text)
        out.result = found
        out.lines = lambda: reference_lines(found)


app = command_app(reference, result=Reference)
