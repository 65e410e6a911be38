"""The report on the time model: docs/timing-validation.md, and the same as rows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from neurontools.validation.captures import RULE as CAPTURE_RULE
from neurontools.validation.captures import summary as capture_summary
from neurontools.validation.ranking import LIBRARY, library_rows, rankings
from neurontools.validation.results import CaptureRow, LeftOutRow, Row, Summary, use_of
from neurontools.validation.targets import GROUPS, LEFT_OUT, LIMITS, NOTES, RULE, targets

if TYPE_CHECKING:
    from neurontools.validation.measure import Measurement

__all__ = ["capture_cells", "markdown", "rows", "summary"]

_CAPTURE_HEAD = (
    "capture", "chip", "captured", "error", "words", "median", "95 % within", "active, farthest off", "use",
)  # fmt: skip


def rows(measurements: Iterable[Measurement]) -> tuple[Row, ...]:
    """Return the measurements as rows."""
    return tuple(
        Row(t.id, t.chip, t.group, t.what, t.value, m.ours, t.unit, m.error, t.limit, m.ok, t.held_out, t.quality,
            t.source, m.why or None)
        for m in measurements for t in (m.target,))  # fmt: skip


def summary(measurements: Sequence[Measurement]) -> tuple[Summary, ...]:
    """Return, per group and split, how many rows there are and how far they are off."""
    found = []
    for group, title in GROUPS.items():
        for held_out in (False, True):
            errors = [
                abs(m.error)
                for m in measurements
                if m.target.group == group and m.target.held_out == held_out and m.error is not None
            ]
            if errors:
                limit = LIMITS[group][held_out]
                within = sum(error <= limit for error in errors)
                found.append(
                    Summary(group, title, held_out, len(errors), statistics.median(errors), max(errors), limit, within)
                )
    return tuple(found)


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines)]


def _library() -> list[str]:
    """Return the section on nki-library, from the figures that `benchmarks/nki_library.py` gave."""
    by_kernel: dict[str, list[float]] = {}
    for row in library_rows():
        by_kernel.setdefault(row.kernel, []).append(row.ours / row.expected - 1)
    every = [error for errors in by_kernel.values() for error in errors]
    lines = [
        (
            name,
            str(len(errors)),
            f"{statistics.median(map(abs, errors)):.1%}",
            f"{statistics.median(errors):+.1%}",
            f"{sum(abs(error) <= 0.25 for error in errors)}",
        )
        for name, errors in by_kernel.items()
    ]
    total = (
        "all",
        str(len(every)),
        f"{statistics.median(map(abs, every)):.1%}",
        f"{statistics.median(every):+.1%}",
        f"{sum(abs(error) <= 0.25 for error in every)}",
    )
    return [
        "## nki-library",
        "",
        "AWS's kernel library says in its tests how long a case should take on trn2. Its kernels, unmodified,"
        " were traced, built and emulated by `benchmarks/nki_library.py`; none of these rows calibrated"
        " anything. The unit of the expected numbers is not stated; picoseconds fit. Rows are in"
        f" `neurontools/validation/{LIBRARY}`.",
        "",
        *_table(("test file", "rows", "median absolute error", "median error", "within 25 %"), [*lines, total]),
        "",
    ]


def capture_cells(row: CaptureRow) -> tuple[str, ...]:
    """Return a capture as views print it."""

    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.1%}"

    active = f"{row.active_engine} {row.active_error:+.1%}" if row.active_engine else ""
    return (row.path, row.chip, f"{row.captured_ns / 1000:,.2f} us", f"{row.error:+.1%}", f"{row.words:,}",
            share(row.word_median), share(row.word_most), active, use_of(row.held_out))  # fmt: skip


def _captures(rows: Sequence[CaptureRow]) -> list[str]:
    """Return the section on captures of devices."""
    lines = [
        (use_of(entry.held_out), str(entry.captures), f"{entry.median_error:.1%}", f"{entry.largest_error:.1%}",
         f"{entry.within} of {entry.captures}", f"{entry.word_median:.1%}", f"{entry.words_within} of {entry.captures}",
         f"{entry.active_within} of {entry.captures}", f"{entry.words:,}", f"{entry.near_share:.1%}")
        for entry in capture_summary(rows)
    ]  # fmt: skip
    head = ("use", "captures", "median error", "largest", "within 15 %", "words, median", "95 % of words within 10 %",
            "engines active within 10 %", "words in all", "within 10 %")  # fmt: skip
    return [
        "## Captures, word by word",
        "",
        f"Written with `--captures DIR`, a folder of checkouts. {CAPTURE_RULE} Stated before anything was fitted. The"
        " ten of trainium-kernel-fusion were known to the earlier model, also those that are held out now. A program"
        " lasts from its first word to the end of its last word or transfer; waits are not compared. Engines that"
        " were active for under 1 us are left out of `active`.",
        "",
        *_table(head, lines),
        "",
        *_table(_CAPTURE_HEAD, [capture_cells(row) for row in rows]),
        "",
    ]  # fmt: skip


def _left_out(rows: Sequence[LeftOutRow]) -> list[str]:
    """Return the section on repositories by the figures of the others."""
    head = ("left out", "chip", "captures", "median error", "largest", "words", "median", "within 10 %",
            "engines active within 10 %", "figures fitted to the others", "figures that no other has")  # fmt: skip
    lines = [
        (row.repository, row.chip, str(row.captures), f"{row.median_error:.1%}", f"{row.largest_error:.1%}",
         f"{row.words:,}", f"{row.word_median:.1%}", f"{row.near_share:.1%}", f"{row.active_within} of {row.captures}",
         str(row.figures), ", ".join(row.without) or "none")
        for row in rows
    ]  # fmt: skip
    return [
        "## One repository left out",
        "",
        "How far the model carries to programs nobody has fitted: the figures that say how long words take are taken"
        " anew from the captures of the other repositories, held out or not, and those of this one are predicted. A"
        " figure that no other repository has takes the value of the nearest kind of word, or what documents say:"
        " elements far apart at half rate, for one. Figures of the time between words, of first times and of transfers"
        " stay as they are. A chip that one repository alone has captures of is not here.",
        "",
        *_table(head, lines),
        "",
    ]


def _rankings(measurements: Sequence[Measurement]) -> list[str]:
    """Return the section on the order of versions."""
    lines = [(each.versions, str(each.number), f"{each.spearman:.3f}") for each in rankings(measurements)]
    return [
        "## Order of versions",
        "",
        "Whether the version that was published as faster is the one that is emulated as faster: Spearman's coefficient"
        " of emulated and published times, 1 where the order is the same; aimed at is 0.95 of all together. Kernels of"
        " different sizes are easy to order; versions of one that are published within a percent of each other (C-6,"
        " C-7 and C-8) are not. Rows that calibrate are among C and D; those of nki-library calibrated nothing.",
        "",
        *_table(("versions", "number", "Spearman"), lines),
        "",
    ]


def markdown(
    measurements: Sequence[Measurement], compared: Sequence[CaptureRow] = (), others: Sequence[LeftOutRow] = ()
) -> str:
    """Return the report as a page."""
    everything = targets()
    held = sum(target.held_out for target in everything)
    page = [
        "# Timing, checked against what was published",
        "",
        "Written by `neurontools profile validate --all --captures DIR --write docs/timing-validation.md`; do not edit."
        " Targets are facts with their sources in `neurontools/validation/targets.csv`; kernels were written for their"
        " shapes.",
        "",
        f"{RULE} {held} of {len(everything)} rows are held out (`test` below), chosen before the model was fitted;"
        " figures that an earlier model took from one of them were taken anew from other rows and from profiles.",
        "",
        "Device times include what the runtime puts around a program: 15.1 us, the difference between runs and their"
        " programs in public profiles of trn2. Single instructions are taken with the Tensor engine's clock up.",
        "",
        *_table(
            ("group", "rows", "use", "median error", "largest error", "aimed at", "within"),
            [
                (
                    entry.title,
                    str(entry.rows),
                    entry.use,
                    f"{entry.median_error:.1%}",
                    f"{entry.largest_error:.1%}",
                    f"{entry.limit:.0%}",
                    f"{entry.within} of {entry.rows}",
                )
                for entry in summary(measurements)
            ],
        ),
        "",
    ]
    for group, title in GROUPS.items():
        lines = []
        for m in measurements:
            t = m.target
            if t.group == group:
                ours, error = (
                    ("–", m.why)
                    if m.ours is None or m.error is None
                    else (_number(m.ours), f"{m.error:+.1%}" + ("" if m.ok else " **beyond**"))
                )
                published = f"{_number(t.value)} {t.unit}"
                lines.append((t.id, t.chip, t.what, published, ours, error, use_of(t.held_out), t.source))
        if lines:
            page += [
                f"## {title}",
                "",
                *_table(("row", "chip", "what", "published", "ours", "error", "use", "source"), lines),
                "",
            ]
    if compared:
        page += _captures(compared)
    if others:
        page += _left_out(others)
    page += _library()
    page += _rankings(measurements)
    page += ["## Looked into", "", *_table(("rows", "what was found"), NOTES), ""]
    page += ["## Published, and not run", "", *_table(("rows", "why"), LEFT_OUT), ""]
    return "\n".join(page)
