"""What `ntff compare` prints: tables and plots for people, every residual as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from neurontools.ntff.residual_plot import plot as plotted
from neurontools.text.table import bold, count, duration, table

if TYPE_CHECKING:
    from neurontools.ntff.compared import Compared, ResidualRow
    from neurontools.ntff.residuals import Residual

__all__ = ["csv_text", "view"]

_HEADS = ("number", "captured", "emulated", "ratio", "p95 off", "off in all")
_COLUMNS = ("kind", "core", "owner", "pc", "execution", "name", "shape", "captured_start_ns", "captured_ns",
            "emulated_start_ns", "emulated_ns", "ratio")  # fmt: skip


def view(found: Compared, most: int, *, plot: bool) -> list[str]:
    """Return the comparison for people."""
    ended = "" if found.outcome == "finished" else f"; the emulator's run ended: {found.outcome}"
    lines = [bold(f"{found.name} on {found.target}, captured and emulated{ended}")]
    lines += table(
        ("core", "captured", "emulated", "ratio"),
        [(one.core, _time(one.captured_ns), _time(one.emulated_ns), _ratio(one.ratio)) for one in found.cores],
    )
    both = f"{count(found.words, 'word')} and {count(found.transfers, 'transfer')} on both sides"
    one_side = f"{found.captured_only:,} only captured, {found.emulated_only:,} only emulated"
    lines += ["", f"{both}; {count(found.waits, 'wait')} beside; {one_side}"]
    for heads, rows, short in (
        (("engine", "opcode"), found.opcodes, True),
        (("engine", "opcode", "shape"), found.classes, False),
        (("transfer",), found.moves, False),
    ):
        if rows:
            shown = rows[:most] if most else rows
            lines += ["", *table((*heads, *_HEADS), [_row(one, len(heads), short=short) for one in shown])]
            if len(shown) < len(rows):
                lines.append(f"and {len(rows) - len(shown):,} more, off by less")
    if plot:
        for title, spread in (("words", found.spread), ("transfers", found.moves_spread)):
            if any(spread):
                lines += ["", *plotted(title, spread)]
    return lines


def _row(one: ResidualRow, heads: int, *, short: bool) -> tuple[object, ...]:
    names = (one.owner, one.name) if short else (one.owner, one.name, one.shape)
    return (*names[-heads:], one.number, _time(one.captured_ns), _time(one.emulated_ns), _ratio(one.ratio),
            "-" if one.p95 is None else f"{100 * one.p95:.1f} %", _time(one.off_ns))  # fmt: skip


def _time(nanoseconds: float) -> str:
    return duration(round(nanoseconds * 1000))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def csv_text(rows: Iterable[Residual]) -> str:
    """Return every word and transfer as CSV, times in nanoseconds."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_COLUMNS)
    for one in rows:
        ratio = f"{one.emulated_ps / one.captured_ps:.4f}" if one.captured_ps else ""
        times = (each / 1000 for each in one[7:])
        out.writerow([*one[:7], *times, ratio])
    return text.getvalue()
