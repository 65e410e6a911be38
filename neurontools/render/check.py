"""Findings as data and as lines."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterator
from typing import Any

from neurontools.render.run import source
from neurontools.render.table import count

__all__ = ["code", "context", "finding", "finding_lines", "lines", "summary"]

_AROUND = 1  # lines shown before and behind that of a finding


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
        "context": [{"line": number, "text": text} for number, text in context(item)],
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


def context(item: Any) -> list[tuple[int, str]]:
    """Return the source lines around that of a site, with their numbers; [] where the file is not at hand."""
    place = source(item.source)
    if place is None or not place["line"] or not linecache.getline(place["file"], place["line"]):
        return []
    numbers = range(max(place["line"] - _AROUND, 1), place["line"] + _AROUND + 1)
    return [(n, text.rstrip()) for n in numbers if (text := linecache.getline(place["file"], n))]


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
        yield from finding_lines(item)
        yield ""
    counts = summary(findings)["severities"]
    parts = [count(number, name) for name, number in counts.items() if number]
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    hint = "; --notes shows the notes" if counts["note"] and not verbose else ""
    yield f"{title}: {', '.join(tools)}: {', '.join(parts) or 'nothing found'}{hint}"


def finding_lines(item: Any) -> Iterator[str]:
    """Return a finding for people, with the code around each side."""
    sides = [item.site, *item.others]
    at = 0
    for line in item.text().splitlines():
        yield line
        if line.startswith(("  at ", "  other ")):
            yield from _code_lines(sides[at])
            at += 1


def _code_lines(site: Any) -> Iterator[str]:
    if code(site) in ("", site.text):  # a .s program's line is the word itself
        return
    around = context(site)
    margin = min(len(text) - len(text.lstrip()) for _, text in around if text)
    width = len(str(around[-1][0]))
    for number, text in around:
        mark = ">" if number == site.source.line else " "
        yield f"       {mark} {number:{width}} | {text[margin:]}".rstrip()
