"""Findings as data and as lines."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterator
from typing import Any

from neurontools.render.run import source
from neurontools.render.table import count

__all__ = ["finding", "lines", "summary"]


def finding(item: Any) -> dict[str, Any]:
    """Return a finding as plain data."""
    region = item.region
    return {
        "id": item.id,
        "tool": item.tool,
        "kind": item.kind,
        "severity": item.severity,
        "message": item.message,
        "count": item.count,
        "site": site(item.site),
        "others": [site(one) for one in item.others],
        "range": None
        if region is None
        else {
            "space": region.space,
            "core": region.core,
            "partition": region.first,
            "partitions": region.partitions,
            "byte": region.byte,
            "bytes": region.nbytes,
            "strided": region.pattern is not None,
        },
        "tensor": item.tensor or None,
        "hint": item.hint or None,
        "details": item.details,
        "reproduce": item.reproduce or None,
    }


def site(item: Any) -> dict[str, Any]:
    """Return one side of a finding as plain data; what does not apply is None."""
    return {
        "core": item.core,
        "engine": item.engine,
        "owner": item.owner,
        "pc": None if item.pc < 0 else item.pc,
        "instruction": item.text or None,
        "source": source(item.source),
        "code": code(item) or None,
        "access": item.access or None,
        "operand": item.operand or None,
        "time_ps": None if item.time_ps < 0 else item.time_ps,
        "clock": None if item.clock < 0 else item.clock,
        "knows": None if item.seen < 0 else item.seen,
    }


def code(item: Any) -> str:
    """Return the source line of a site where the file is at hand."""
    place = source(item.source)
    return "" if place is None or not place["line"] else linecache.getline(place["file"], place["line"]).strip()


def summary(findings: list[Any]) -> dict[str, Any]:
    """Return how many findings there are, by severity and by tool and kind."""
    return {
        "severities": {name: sum(f.severity == name for f in findings) for name in ("error", "warning", "note")},
        "kinds": dict(sorted(Counter(f"{f.tool}:{f.kind}" for f in findings).items())),
    }


def lines(title: str, tools: tuple[str, ...], findings: list[Any], suppressed: int, verbose: bool) -> Iterator[str]:
    """Return the report for people; notes are counted, and shown when asked for."""
    shown = [f for f in findings if verbose or f.serious]
    for item in shown:
        yield from _finding_lines(item)
        yield ""
    counts = summary(findings)["severities"]
    parts = [count(number, name) for name, number in counts.items() if number]
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    hint = "; --notes shows the notes" if counts["note"] and not verbose else ""
    yield f"{title}: {', '.join(tools)}: {', '.join(parts) or 'nothing found'}{hint}"


def _finding_lines(item: Any) -> Iterator[str]:
    sides = [item.site, *item.others]
    at = 0
    for line in item.text().splitlines():
        yield line
        if line.startswith(("  at ", "  other ")):
            site = sides[at]
            text = code(site)
            at += 1
            if text and text != site.text:  # a .s program's line is the word itself
                yield f"         > {text}"
