"""The report on the time model: docs/timing-validation.md, and the same as rows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from neurontools.validation.results import Row, Summary, use_of
from neurontools.validation.targets import GROUPS, LEFT_OUT, LIMITS, NOTES, RULE, targets

if TYPE_CHECKING:
    from neurontools.validation.measure import Measurement

__all__ = ["markdown", "rows", "summary"]

_FIXED = "nki_library.csv"


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
    text = files(__package__).joinpath(_FIXED).read_text(encoding="utf-8").splitlines()
    found = [line.split(",") for line in text[1:]]
    by_kernel: dict[str, list[float]] = {}
    for kernel, _, expected, ours in found:
        by_kernel.setdefault(kernel, []).append(float(ours) / float(expected) - 1)
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
        f" `neurontools/validation/{_FIXED}`.",
        "",
        *_table(("test file", "rows", "median absolute error", "median error", "within 25 %"), [*lines, total]),
        "",
    ]


def markdown(measurements: Sequence[Measurement]) -> str:
    """Return the report as a page."""
    everything = targets()
    held = sum(target.held_out for target in everything)
    page = [
        "# Timing, checked against what was published",
        "",
        "Written by `neurontools profile validate --all --write docs/timing-validation.md`; do not edit. Targets are"
        " facts with their sources in `neurontools/validation/targets.csv`; kernels were written for their shapes.",
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
    page += _library()
    page += ["## Looked into", "", *_table(("rows", "what was found"), NOTES), ""]
    page += ["## Published, and not run", "", *_table(("rows", "why"), LEFT_OUT), ""]
    return "\n".join(page)
