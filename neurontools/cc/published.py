"""The published rows of nccom-test beside the emulator's: what is held out, what is fitted, how far off the rest is.

The rule, stated before anything was fitted: of every series (one table of the documentation) the smallest and the
largest size are for fitting, every row between them is held out. Two numbers are fitted a series: what a run takes
before the first byte moves, from the smallest size, and how much slower than the links of our model bytes move, from
the largest. A series of one row tests nothing and is not here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated

from formats.named_tuple import NamedTuple

__all__ = ["Row", "Series", "Validation", "page", "validated"]

_FILE = Path(__file__).with_name("published.csv")


class Row(NamedTuple):
    """One published time and ours."""

    size: int
    published_us: float
    modelled_us: Annotated[float, "the step lists alone"]
    fitted_us: Annotated[float, "with the two fitted numbers of the series"]
    algorithm: str
    held_out: bool
    error: Annotated[float, "of the fitted time, relative to the published one"]


class Series(NamedTuple):
    """One published table."""

    name: str
    operation: str
    instance: Annotated[str, "taken here; most tables do not name it"]
    nodes: int
    ranks: int
    group: Annotated[int, "ranks of one replica group"]
    start_us: float
    slower: Annotated[float, "factor on the time of transfer"]
    rows: tuple[Row, ...]
    median_error: Annotated[float, "of the rows held out"]


class Validation(NamedTuple):
    """All series."""

    series: tuple[Series, ...]
    held_out: int
    median_error: Annotated[float, "of all rows held out"]


def validated() -> Validation:
    """Return every published row beside ours."""
    from neurontools.cc.asking import ask, request  # deferred: start-up

    tables: dict[str, list[dict[str, str]]] = {}
    with _FILE.open(encoding="ascii", newline="") as file:
        for line in csv.DictReader(file):
            tables.setdefault(line["series"], []).append(line)
    found = []
    for name, lines in tables.items():
        if len(lines) < 3:
            continue
        first = lines[0]
        nodes, ranks, group = int(first["nodes"]), int(first["ranks"]), int(first["group"])
        base = ask(first["operation"], 1, instance=first["instance"], nodes=nodes, ranks=ranks, dtype=first["dtype"])
        every = base.requests[0].group.ranks
        timed_rows = []
        for line in lines:
            from emulator.machine.collectives.choose import DEFAULTS  # deferred: start-up
            from emulator.machine.collectives.run import timed  # deferred: start-up

            operation = base.requests[0].operation
            parts = [every[at : at + group] for at in range(0, ranks, group)]
            size = int(line["size"])
            requests = [request(base.machine, operation, part, size, base.dtype, "auto", "add", (), DEFAULTS)[0]
                        for part in parts]  # fmt: skip
            time_ps, _ = timed(requests, base.dtype.itemsize)
            one = requests[0]
            name_of = one.algorithm if one.algorithm != "hier" else f"{one.inner}+{one.outer}"
            timed_rows.append((int(line["size"]), float(line["us"]), time_ps / 1e6, name_of))
        found.append(_fitted(name, first, nodes, ranks, group, timed_rows))
    errors = [row.error for series in found for row in series.rows if row.held_out]
    return Validation(tuple(found), len(errors), median(errors))


def _fitted(name: str, first: dict[str, str], nodes: int, ranks: int, group: int,
            rows: list[tuple[int, float, float, str]]) -> Series:  # fmt: skip
    """Return a series with its start and its factor, from its first and its last row."""
    _, least_us, least, _ = rows[0]
    _, most_us, most, _ = rows[-1]
    slower = max(0.0, (most_us - least_us) / (most - least)) if most > least else 1.0
    made = []
    for at, (size, us, model, algorithm) in enumerate(rows):
        fitted = least_us + slower * (model - least)
        made.append(Row(size, us, model, fitted, algorithm, 0 < at < len(rows) - 1, abs(fitted - us) / us))
    held = [row.error for row in made if row.held_out]
    return Series(name, first["operation"], first["instance"], nodes, ranks, group, least_us - slower * least, slower,
                  tuple(made), median(held))  # fmt: skip


def page(found: Validation) -> Iterator[str]:
    """Yield the lines of docs/collectives-validation.md."""
    yield "# Collectives: published times beside ours"
    yield ""
    yield "Written by `neurontools cc bench-parse --published --write docs/collectives-validation.md`; do not edit."
    yield ""
    yield from ("" if line == "" else line for line in (__doc__ or "").split("\n\n", 1)[1].strip().splitlines())
    yield ""
    yield (
        "The rows are those of the guide of nccom-test ([collectives.md 11](reference/collectives.md#11)), which calls "
        "them\nillustrative. Most tables do not name their instance; the one taken here is named. *Links alone* is the "
        "time of\nthe step lists, *ours* the same with the two fitted numbers. A negative start says that a published "
        "run took less\nthan the documented latencies of our steps."
    )
    yield ""
    yield f"**{found.held_out} rows held out, median error {found.median_error:.1%}.**"
    yield ""
    yield "| series | operation | machine | ranks | start µs (fitted) | slower by (fitted) | median error held out |"
    yield "|---|---|---|---|---|---|---|"
    for one in found.series:
        ranks = f"{one.ranks} in groups of {one.group}" if one.group != one.ranks else str(one.ranks)
        machine = one.instance if one.nodes == 1 else f"{one.nodes} x {one.instance}"
        yield (f"| {one.name} | {one.operation} | {machine} | {ranks} | {one.start_us:,.1f} | {one.slower:.2f} | "
               f"{one.median_error:.1%} |")  # fmt: skip
    for one in found.series:
        yield ""
        yield f"## {one.name}"
        yield ""
        yield "| bytes | published µs | links alone µs | ours µs | error | algorithm | row |"
        yield "|---|---|---|---|---|---|---|"
        for row in one.rows:
            yield (f"| {row.size:,} | {row.published_us:,.2f} | {row.modelled_us:,.2f} | {row.fitted_us:,.2f} | "
                   f"{row.error:.1%} | {row.algorithm} | {'held out' if row.held_out else 'fitted'} |")  # fmt: skip
