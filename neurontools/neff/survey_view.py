"""A survey of NEFFs for people: a row per file, the sums, and what is not understood."""

from __future__ import annotations

import os
from collections.abc import Mapping

from neurontools.neff.rows import percent
from neurontools.neff.surveying.records import FileRecord, SummaryExample, Survey, SurveySummary
from neurontools.text.table import count, table

__all__ = ["survey_lines"]

_MARKS = {"checked": "checked", "own": "this toolkit", "unchecked": "not checked against this version"}


def survey_lines(found: Survey, shown: int) -> list[str]:
    """Return the survey for people; at most `shown` rows of each kind, all where it is 0."""
    files, total = found.files, found.summary
    executing = bool(total.executed)
    heads = ["file", "target", "LNC", "compiler", "words", "decoded", "re-encoded", "consistent", "errors"]
    common = _common_folder([record.path for record in files])
    prefix = f"{common}/" if common else ""
    rows = [_row(record, prefix, executing) for record in files]
    lines = [f"below {common}:"] if prefix else []
    lines += table([*heads, "executed"] if executing else heads, rows)
    for record in files:
        if record.error is not None:
            named = record.error.startswith(record.path)
            lines.append(f"  {record.error}" if named else f"  {record.path}: {record.error}")
    lines += ["", *_totals(total)]
    lines += _examples("words that no class explains", total.unknown, shown)
    lines += _examples("words that their fields do not explain in full", total.inexact, shown)
    lines += _examples("words that break a rule", total.inconsistent, shown)
    lines += _examples("codes without a name", total.unnamed, shown)
    for record in files:
        if record.problem_count:
            lines += ["", f"{record.path}: {count(record.problem_count, 'error')}"]
            lines += [f"  {text}" for text in record.problems[: shown or None]]
    refused = [f"{one.path}: {one.executed.how}: {one.executed.reason}"
               for one in files if one.executed and one.executed.reason]  # fmt: skip
    return [*lines, "", *refused] if refused else lines


def _common_folder(paths: list[str]) -> str:
    """Return the folder that all files are below, or "" where there is none, or only one file."""
    if len(paths) < 2 or len({os.path.isabs(path) for path in paths}) > 1:
        return ""
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def _row(record: FileRecord, prefix: str, executing: bool) -> list[object]:
    words = record.words
    counts: list[object] = [None] * 5
    if words is not None:
        counts = [words.words, words.decoded, words.reencoded, words.consistent, record.problem_count]
    row = [record.path.removeprefix(prefix), record.target, record.lnc, record.compiler, *counts]
    return [*row, record.executed.how if record.executed else None] if executing else row


def _totals(total: SurveySummary) -> list[str]:
    words = total.words
    parts = (("decoded", total.decoded), ("re-encoded", total.reencoded), ("consistent", total.consistent))
    shares = ", ".join(f"{name} {percent(part, words)}" for name, part in parts if words)
    lines = [
        f"{count(total.files, 'file')}, {total.read:,} read, {total.sound:,} without errors; "
        f"{count(words, 'word')}{': ' if shares else ''}{shares}"
    ]
    for row in total.compilers:
        same = f", {percent(row.reencoded, row.words)} re-encoded" if row.words else ""
        lines.append(
            f"  {row.compiler} for {row.target} ({_MARKS[row.checked]}): {count(row.files, 'file')}, "
            f"{count(row.words, 'word')}{same}"
        )
    if total.executed:
        lines.append("executed: " + ", ".join(f"{number:,} {how}" for how, number in total.executed.items()))
    return lines


def _examples(title: str, found: Mapping[str, SummaryExample], shown: int) -> list[str]:
    if not found:
        return []
    rows = sorted(found.items(), key=lambda item: (-item[1].count, item[0]))
    cells = [[text, one.count, one.files, f"{one.first} {one.place}", one.raw] for text, one in rows[: shown or None]]
    lines = ["", *table([title, "words", "files", "first place", "bytes of the first"], cells)]
    if shown and len(rows) > shown:
        lines.append(f"and {len(rows) - shown:,} more; --lines 0 shows all, --json too")
    return lines
