"""A triage as text, and as one page of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from neurontools.text.table import bold, count, table
from neurontools.triage.rows import Triage

__all__ = ["page", "view"]

Table = tuple[list[str], list[list[object]]]


def view(found: Triage, top: int) -> Iterator[str]:
    """Yield the text of a triage, `top` entries of each list."""
    yield _head(found)
    if found.unread:
        yield f"{count(found.unread, 'rank')} with nothing but names: no status is known"
    for number, each in enumerate(found.hypotheses[:top], 1):
        yield ""
        yield bold(f"{number}. {each.text}") + f"  [{each.cause}, {each.score:.2f}]"
        yield from (f"   {text}" for text in each.evidence)
        yield from (f"   -> {text}" for text in each.next_steps)
    yield from _more(len(found.hypotheses) - top)
    for heads, rows in (_cluster_table(found), _failure_table(found)):
        if rows:
            yield ""
            yield from table(heads, rows[:top])
            yield from _more(len(rows) - top)


def _head(found: Triage) -> str:
    folders = f"{found.directories:,} director{'y' if found.directories == 1 else 'ies'}"
    return (
        f"{count(found.ranks, 'rank')} in {count(found.executions, 'execution')} and {folders}, "
        f"{count(found.signatures, 'signature')}"
    )


def _more(number: int) -> list[str]:
    return [f"and {number:,} more; --json lists them"] if number > 0 else []


def _cluster_table(found: Triage) -> Table:
    heads = ["ranks", "first in", "hosts", "status", "engine", "opcode", "awaits", "source", "message"]
    rows: list[list[object]] = [
        [c.ranks, c.first_in, c.instances, c.status, c.engine, c.opcode, c.awaited, c.source, c.message]
        for c in found.clusters
    ]
    return heads, rows


def _failure_table(found: Triage) -> Table:
    heads = ["execution", "ranks", "missing", "first failure", "time", "status", "where"]
    rows: list[list[object]] = []
    for each in found.failures:
        first = each.first
        if first is None:
            continue
        name = each.execution.rstrip("/").rpartition("/")[2]
        who = f"{first.instance} pid {first.pid}" + ("" if first.rank is None else f" rank {first.rank}")
        where = f"{first.engine} pc {first.pc} {first.line}".strip() if first.engine else None
        rows.append([name, each.ranks, each.missing, who, _time(first.when), first.status_name or None, where])
    return heads, rows


def _time(seconds: float | None) -> str | None:
    try:
        return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S.%f}"
    except (OverflowError, ValueError):  # a dump may say that it is of the year 0
        return None


_STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #ddd;padding:.25em .6em;text-align:left;
vertical-align:top}li{margin:.6em 0}code{background:#f4f4f4}small{color:#666}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}td,th{border-color:#444}code{background:#2a2a2a}}"""


def page(found: Triage, title: str, top: int) -> str:
    """Return a triage as one page that needs nothing else, `top` entries of each list."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1><p>{escape(_head(found))}</p><h2>Likeliest causes</h2><ol>",
    ]
    for each in found.hypotheses[:top]:
        evidence = "".join(f"<br><small>{escape(text)}</small>" for text in each.evidence)
        steps = "".join(f"<br>&rarr; {escape(text)}" for text in each.next_steps)
        parts.append(
            f"<li><b>{escape(each.text)}</b> <small>{escape(each.cause)}, {each.score:.2f}</small>"
            f"{evidence}{steps}</li>"
        )
    parts.append("</ol>")
    for title, (heads, rows) in (("Signatures", _cluster_table(found)), ("First failures", _failure_table(found))):
        parts.append(f"<h2>{title}</h2><table><tr>" + "".join(f"<th>{escape(name)}" for name in heads) + "</tr>")
        for row in rows[:top]:
            cells = ("" if cell is None else str(cell) for cell in row)
            parts.append("<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells) + "</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "</html>\n"
