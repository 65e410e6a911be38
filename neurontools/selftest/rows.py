"""What a suite of tests gives: one row a case, one a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from formats.named_tuple import NamedTuple

__all__ = ["CaseRow", "GroupRow", "Outcome", "SuiteResult", "summed_up"]

Outcome = Literal["agree", "near", "differ", "unsupported", "refused", "error", "left-out"]


class CaseRow(NamedTuple):
    """One case."""

    name: str
    group: str
    outcome: Annotated[
        Outcome,
        "agree: within the suite's tolerance; near: within ten times of it; unsupported: not modelled, and said so; "
        "refused: an input error; error: a bug; left-out: no test of what is tested",
    ]
    detail: str


class GroupRow(NamedTuple):
    """The cases of one primitive or operator."""

    group: str
    cases: int
    agree: int
    near: int
    differ: int
    unsupported: int
    refused: int
    error: int


class SuiteResult(NamedTuple):
    """The result of `selftest jax` and `selftest onnx`."""

    suite: str
    version: Annotated[str, "of the package that has the cases"]
    backend: str
    cases: Annotated[int, "that were run, without those left out"]
    left_out: int
    agree: int
    share: Annotated[float, "of the cases that agree"]
    outcomes: dict[str, int]
    groups: tuple[GroupRow, ...]
    others: Annotated[tuple[CaseRow, ...], "every case that does not agree"]
    reasons: Annotated[dict[str, int], "why cases were left out"]


def summed_up(suite: str, version: str, backend: str, rows: Iterable[CaseRow]) -> SuiteResult:
    """Return what the cases say together."""
    every = sorted(rows)
    run = [row for row in every if row.outcome != "left-out"]
    outcomes = Counter(row.outcome for row in run)
    groups: dict[str, Counter[str]] = {}
    for row in run:
        groups.setdefault(row.group, Counter())[row.outcome] += 1
    table = tuple(
        GroupRow(name, sum(found.values()), *(found[kind] for kind in GroupRow._fields[2:]))
        for name, found in sorted(groups.items())
    )
    reasons = Counter(row.detail for row in every if row.outcome == "left-out")
    share = round(outcomes["agree"] / len(run), 4) if run else 0.0
    return SuiteResult(
        suite, version, backend, len(run), len(every) - len(run), outcomes["agree"], share,
        dict(outcomes.most_common()), table,
        tuple(row for row in run if row.outcome != "agree"), dict(reasons.most_common()),
    )  # fmt: skip
