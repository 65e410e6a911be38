"""Findings as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from neurontools.check.rows import code_of, context_of, summary_of
from neurontools.running.rows import source_row
from neurontools.text.table import count

if TYPE_CHECKING:
    from emulator.checks import Finding
    from emulator.checks.finding import Site

__all__ = ["finding_lines", "lines"]


def lines(title: str, tools: tuple[str, ...], findings: Sequence[Finding], suppressed: int,
          notes: bool, nothing: str = "nothing found") -> Iterator[str]:  # fmt: skip
    """Return the report for people; notes are counted, and shown when they, or a tool of theirs, are asked for.

    `nothing` is what a report without findings says.
    """
    from emulator.checks.registry import ASKED  # deferred: start-up

    hidden = 0
    for item in findings:
        if not (notes or item.serious or item.tool in ASKED):
            hidden += 1
        else:
            yield from finding_lines(item)
            yield ""
    counts = summary_of(findings).severities
    parts = [count(number, name) for name, number in counts._asdict().items() if number]
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    hint = "; --notes shows the notes" if hidden else ""
    yield f"{title}: {', '.join(tools)}: {', '.join(parts) or nothing}{hint}"


def finding_lines(item: Finding) -> Iterator[str]:
    """Return a finding for people, with the code around each side."""
    sides = iter((item.site, *item.others))
    for line in item.text().splitlines():
        yield line
        if line.startswith(("  at ", "  other ")):
            yield from _code_lines(next(sides))


def _code_lines(site: Site) -> Iterator[str]:
    place = source_row(site.source)
    if place is None or code_of(site) in ("", site.text):  # a .s program's line is the word itself
        return
    around = context_of(site)
    margin = min(len(text) - len(text.lstrip()) for _, text in around if text)
    width = len(str(around[-1].line))
    for number, text in around:
        mark = ">" if number == place.line else " "
        yield f"       {mark} {number:{width}} | {text[margin:]}".rstrip()
