"""A survey of NEFFs for people: a row per file, the sums, and what is not understood."""

from __future__ import annotations

import os
from typing import Any

from neurontools.render.neff import percent
from neurontools.render.table import count, table

__all__ = ["survey_lines"]

_TITLES = {
    "unknown": "words that no class explains",
    "inexact": "words that their fields do not explain in full",
    "inconsistent": "words that break a rule",
    "unnamed": "codes without a name",
}
_MARKS = {"checked": "checked", "own": "this toolkit", "unchecked": "not checked against this version"}


def survey_lines(result: dict[str, Any], shown: int) -> list[str]:
    """Return `neff survey` for people; at most `shown` rows of each kind, all where it is 0."""
    files, total = result["files"], result["summary"]
    executing = bool(total["executed"])
    heads = ["file", "target", "LNC", "compiler", "words", "decoded", "re-encoded", "consistent", "errors"]
    common = _common_folder([record["path"] for record in files])
    prefix = f"{common}/" if common else ""
    rows = [_row(record, prefix, executing) for record in files]
    lines = [f"below {common}:"] if prefix else []
    lines += table([*heads, "executed"] if executing else heads, rows)
    broken = [record for record in files if record["error"] is not None]
    for record in broken:
        text, path = record["error"], record["path"]
        lines.append(f"  {text}" if text.startswith(path) else f"  {path}: {text}")
    lines += ["", *_totals(total)]
    for name, title in _TITLES.items():
        lines += _examples(title, total[name], shown)
    for record in files:
        if record["problem_count"]:
            lines += ["", f"{record['path']}: {count(record['problem_count'], 'error')}"]
            lines += [f"  {text}" for text in record["problems"][: shown or None]]
    refused = [record for record in files if record["executed"] and record["executed"]["reason"]]
    if refused:
        lines.append("")
        lines += [f"{one['path']}: {one['executed']['how']}: {one['executed']['reason']}" for one in refused]
    return lines


def _common_folder(paths: list[str]) -> str:
    """Return the folder that all files are below, or "" where there is none, or only one file."""
    if len(paths) < 2 or len({os.path.isabs(path) for path in paths}) > 1:
        return ""
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def _row(record: dict[str, Any], prefix: str, executing: bool) -> list[Any]:
    words = record["words"] or {}
    counts = [words.get(name) for name in ("words", "decoded", "reencoded", "consistent")]
    errors = record["problem_count"] if record["words"] else None
    row = [record["path"].removeprefix(prefix), record["target"], record["lnc"], record["compiler"], *counts, errors]
    return [*row, (record["executed"] or {}).get("how")] if executing else row


def _totals(total: dict[str, Any]) -> list[str]:
    words = total["words"]
    shares = ", ".join(
        f"{name} {percent(total[key], words)}"
        for name, key in (("decoded", "decoded"), ("re-encoded", "reencoded"), ("consistent", "consistent"))
        if words
    )
    lines = [
        f"{count(total['files'], 'file')}, {total['read']:,} read, {total['sound']:,} without errors; "
        f"{count(words, 'word')}{': ' if shares else ''}{shares}"
    ]
    for row in total["compilers"]:
        mark = _MARKS[row["checked"]]
        same = f", {percent(row['reencoded'], row['words'])} re-encoded" if row["words"] else ""
        lines.append(
            f"  {row['compiler']} for {row['target']} ({mark}): {count(row['files'], 'file')}, "
            f"{count(row['words'], 'word')}{same}"
        )
    if total["executed"]:
        lines.append("executed: " + ", ".join(f"{number:,} {how}" for how, number in total["executed"].items()))
    return lines


def _examples(title: str, found: dict[str, Any], shown: int) -> list[str]:
    if not found:
        return []
    rows = sorted(found.items(), key=lambda item: (-item[1]["count"], item[0]))
    lines = [
        "",
        *table(
            [title, "words", "files", "first place", "bytes of the first"],
            [
                [text, one["count"], one["files"], f"{one['first']} {one['place']}", one["raw"]]
                for text, one in rows[: shown or None]
            ],
        ),
    ]
    if shown and len(rows) > shown:
        lines.append(f"and {len(rows) - shown:,} more; --lines 0 shows all, --json too")
    return lines
