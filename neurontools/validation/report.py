"""The report on the time model: docs/timing-validation.md, and the same as data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from neurontools.validation.measure import Measurement
from neurontools.validation.targets import GROUPS, LEFT_OUT, LIMITS, NOTES, RULE, targets

__all__ = ["markdown", "rows", "summary"]

_FIXED = "nki_library.csv"


def rows(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Return the measurements as plain data."""
    return [{"id": m.target.id, "chip": m.target.chip, "group": m.target.group, "what": m.target.what,
             "published": m.target.value, "ours": m.ours, "unit": m.target.unit, "error": m.error,
             "limit": m.target.limit, "within": m.ok, "held_out": m.target.held_out, "quality": m.target.quality,
             "source": m.target.source, "not_run": m.why or None} for m in measurements]


def summary(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return, per group and split, how many rows there are and how far they are off."""
    found = []
    for group in GROUPS:
        for held_out in (False, True):
            errors = [abs(m.error) for m in measurements
                      if m.target.group == group and m.target.held_out == held_out and m.error is not None]
            if errors:
                limit = LIMITS[group][held_out]
                found.append({"group": group, "title": GROUPS[group], "held_out": held_out, "rows": len(errors),
                              "median_error": statistics.median(errors), "largest_error": max(errors), "limit": limit,
                              "within": sum(error <= limit for error in errors)})
    return found


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
    lines = [(name, str(len(errors)), f"{statistics.median(map(abs, errors)):.1%}", f"{statistics.median(errors):+.1%}",
              f"{sum(abs(error) <= 0.25 for error in errors)}") for name, errors in by_kernel.items()]
    total = ("all", str(len(every)), f"{statistics.median(map(abs, every)):.1%}", f"{statistics.median(every):+.1%}",
             f"{sum(abs(error) <= 0.25 for error in every)}")
    return ["## nki-library", "",
            "AWS's kernel library says in its tests how long a case should take on trn2. Its kernels, unmodified,"
            " were traced, built and emulated by `benchmarks/nki_library.py`; none of these rows calibrated"
            " anything. The unit of the expected numbers is not stated; picoseconds fit. Rows are in"
            f" `neurontools/validation/{_FIXED}`.", "",
            *_table(("test file", "rows", "median absolute error", "median error", "within 25 %"), [*lines, total]), ""]


def markdown(measurements: Sequence[Measurement]) -> str:
    """Return the report as a page."""
    everything = targets()
    held = sum(target.held_out for target in everything)
    page = [
        "# Timing, checked against what was published", "",
        "Written by `neurontools profile validate --all --write docs/timing-validation.md`; do not edit. Targets are"
        " facts with their sources in `neurontools/validation/targets.csv`; kernels were written for their shapes.", "",
        f"{RULE} {held} of {len(everything)} rows are held out (`test` below), chosen before the model was fitted;"
        " figures that an earlier model took from one of them were taken anew from other rows and from profiles.", "",
        "Device times include what the runtime puts around a program: 15.1 us, the difference between runs and their"
        " programs in public profiles of trn2. Single instructions are taken with the Tensor engine's clock up.", "",
        *_table(("group", "rows", "use", "median error", "largest error", "aimed at", "within"),
                [(entry["title"], str(entry["rows"]), "test" if entry["held_out"] else "calibrate",
                  f"{entry['median_error']:.1%}", f"{entry['largest_error']:.1%}", f"{entry['limit']:.0%}",
                  f"{entry['within']} of {entry['rows']}") for entry in summary(measurements)]), ""]
    for group, title in GROUPS.items():
        lines = []
        for m in measurements:
            if m.target.group == group:
                use = "test" if m.target.held_out else "calibrate"
                ours, error = ("–", m.why) if m.ours is None or m.error is None else (
                    _number(m.ours), f"{m.error:+.1%}" + ("" if m.ok else " **beyond**"))
                published = f"{_number(m.target.value)} {m.target.unit}"
                lines.append((m.target.id, m.target.chip, m.target.what, published, ours, error, use, m.target.source))
        if lines:
            page += [f"## {title}", "",
                     *_table(("row", "chip", "what", "published", "ours", "error", "use", "source"), lines), ""]
    page += _library()
    page += ["## Looked into", "", *_table(("rows", "what was found"), NOTES), ""]
    page += ["## Published, and not run", "", *_table(("rows", "why"), LEFT_OUT), ""]
    return "\n".join(page)
