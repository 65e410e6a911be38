"""A triage as plain data, as text and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import Any

from neurontools.render.table import bold, count, table
from neurontools.triage.hypotheses import hypotheses
from neurontools.triage.summary import Cluster, Execution, Summary

__all__ = ["html", "lines", "result"]


def result(summary: Summary, top: int) -> dict[str, Any]:
    """Return a triage as plain data; `top` limits each list, the counts are of everything."""
    executions = sorted(summary.executions.values(), key=_by_time)
    return {
        "directories": summary.directories,
        "ranks": summary.ranks,
        "executions": len(executions),
        "signatures": len(summary.clusters),
        "unread": summary.unread,
        "hypotheses": [
            {
                **each._asdict(),
                "score": round(each.score, 3),
                "evidence": list(each.evidence),
                "next_steps": list(each.next_steps),
            }
            for each in hypotheses(summary)[:top]
        ],
        "clusters": [_cluster(each) for each in summary.by_size[:top]],
        "failures": [_execution(each) for each in executions[:top]],
    }


def _by_time(each: Execution) -> tuple[float, str]:
    return (each.first.when or 0.0 if each.first is not None else 0.0, each.key)


def _cluster(item: Cluster) -> dict[str, Any]:
    names = ("status", "engine", "opcode", "awaited", "source", "message")
    return {
        **{name: value or None for name, value in zip(names, item.signature, strict=True)},
        "ranks": item.count,
        "first_in": item.firsts,
        "executions": item.executions,
        "instances": len(item.instances),
        "more_instances": item.more_instances,
        "example": item.example.path,
    }


def _execution(item: Execution) -> dict[str, Any]:
    return {
        "execution": item.key,
        "cluster": item.cluster,
        "ranks": item.ranks,
        "world": item.world,
        "missing": item.missing,
        "statuses": dict(item.statuses.most_common()),
        "consequences": item.consequences,
        "first": None if item.first is None else item.first.as_dict(),
    }


def lines(data: dict[str, Any]) -> Iterator[str]:
    """Return the text of a triage."""
    yield (
        f"{count(data['ranks'], 'rank')} in {count(data['executions'], 'execution')} and "
        f"{count(data['directories'], 'directory').replace('directorys', 'directories')}, "
        f"{count(data['signatures'], 'signature')}"
    )
    if data["unread"]:
        yield f"{count(data['unread'], 'rank')} with nothing but names: no status is known"
    for number, each in enumerate(data["hypotheses"], 1):
        yield ""
        yield bold(f"{number}. {each['text']}") + f"  [{each['cause']}, {each['score']:.2f}]"
        yield from (f"   {text}" for text in each["evidence"])
        yield from (f"   -> {text}" for text in each["next_steps"])
    if data["clusters"]:
        yield ""
        yield from table(*_cluster_table(data))
    if data["failures"]:
        yield ""
        yield from table(*_failure_table(data))


def _cluster_table(data: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    heads = ["ranks", "first in", "hosts", "status", "engine", "opcode", "awaits", "source", "message"]
    rows = [
        [
            c["ranks"],
            c["first_in"],
            c["instances"],
            c["status"],
            c["engine"],
            c["opcode"],
            c["awaited"],
            c["source"],
            c["message"],
        ]
        for c in data["clusters"]
    ]
    return heads, rows


def _failure_table(data: dict[str, Any]) -> tuple[list[str], list[list[object]]]:
    heads = ["execution", "ranks", "missing", "first failure", "time", "status", "where"]
    rows: list[list[object]] = []
    for each in data["failures"]:
        first = each["first"]
        if first is None:
            continue
        name = each["execution"].rstrip("/").rpartition("/")[2]
        number = "" if first["rank"] is None else f" rank {first['rank']}"
        who = f"{first['instance']} pid {first['pid']}{number}"
        where = f"{first['engine']} pc {first['pc']} {first['line']}".strip() if first["engine"] else None
        status = first["status_name"] or None
        rows.append([name, each["ranks"], each["missing"], who, _time(first["when"]), status, where])
    return heads, rows


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S.%f}"


_STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #ddd;padding:.25em .6em;text-align:left;
vertical-align:top}li{margin:.6em 0}code{background:#f4f4f4}small{color:#666}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}td,th{border-color:#444}code{background:#2a2a2a}}"""


def html(data: dict[str, Any], title: str) -> str:
    """Return a triage as one page that needs nothing else."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1><p>{escape(next(lines(data)))}</p><h2>Likeliest causes</h2><ol>",
    ]
    for each in data["hypotheses"]:
        evidence = "".join(f"<br><small>{escape(text)}</small>" for text in each["evidence"])
        steps = "".join(f"<br>&rarr; {escape(text)}" for text in each["next_steps"])
        parts.append(
            f"<li><b>{escape(each['text'])}</b> <small>{escape(each['cause'])}, {each['score']:.2f}</small>"
            f"{evidence}{steps}</li>"
        )
    parts.append("</ol>")
    for head, (heads, rows) in (("Signatures", _cluster_table(data)), ("First failures", _failure_table(data))):
        parts.append(f"<h2>{head}</h2><table><tr>" + "".join(f"<th>{escape(name)}" for name in heads) + "</tr>")
        for row in rows:
            cells = ("" if cell is None else str(cell) for cell in row)
            parts.append("<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells) + "</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "</html>\n"
