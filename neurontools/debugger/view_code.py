"""Source lines and words as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neurontools.debugger.view import place_of
from neurontools.text.table import arrow, bold, count

if TYPE_CHECKING:
    from neurontools.debugger.results import Disassembly, Listing

__all__ = ["disassembly_lines", "listing_lines"]


def listing_lines(item: Listing) -> Iterator[str]:
    """Return source lines with the engines and breakpoints on them."""
    yield bold(f"{item.file}:")
    for row in item.rows:
        mark = ("=>" if row.engines else "  ") + ("*" if row.breakpoints else " ")
        who = f"    <- {', '.join(row.engines)}" if row.engines else ""
        yield f"{mark}{row.number:5}  {row.text}{who}".rstrip()


def disassembly_lines(item: Disassembly) -> Iterator[str]:
    """Return words, where the engine stands among them, and whether their waits hold."""
    yield bold(f"nc{item.core} {item.engine}, {count(item.words, 'word')}:")
    last = None
    for row in item.rows:
        place = place_of(row.source) if row.source is not None else None
        if place is not None and place != last:
            yield f"           # {place}"
        last = place
        marks = {"next": arrow(), "fault": arrow(), "flying": "->", "done": " ."}
        mark = marks.get(row.state, "  ") + ("*" if row.breakpoints else " ")
        wait = "" if row.satisfied is None else "   [wait holds]" if row.satisfied else "   [wait does not hold]"
        yield f"{mark}{row.pc:6}  {row.text}{wait if row.state in ('next', '') else ''}"
