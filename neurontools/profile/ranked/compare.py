"""Two runs on ranks side by side: what each rank, each collective and each source line takes more or less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load
from neurontools.command.files import need_file, read_text
from neurontools.profile.compare import deltas
from neurontools.profile.ranked.results import CollectiveDelta, CollectiveTimes, RankDelta, RanksComparison, RankTimes
from neurontools.profile.results import LineRow

if TYPE_CHECKING:
    from neurontools.command.output import Report
    from neurontools.profile.ranked.results import RanksProfile

__all__ = ["Other", "compared", "saved_ranks"]

Key = TypeVar("Key")
Times = tuple[float, ...]


class Other(NamedTuple):
    """What is compared of a run: by rank time, compute and exposed time; by line and name of collectives theirs."""

    name: str
    total_time_ns: float
    ranks: Mapping[int, Times]
    collectives: Mapping[tuple[str, str], Times]
    lines: tuple[LineRow, ...]

    @classmethod
    def of(cls, result: RanksProfile) -> Other:
        """Return it of a profile."""
        return cls(result.name, result.total_time_ns, _by_rank(result.ranks), _by_call(result.collectives),
                   result.lines)  # fmt: skip


def _by_rank(rows: Iterable[RankTimes]) -> dict[int, Times]:
    return {row.rank: (row.time_ns, row.compute_ns, row.exposed_ns) for row in rows}


def _by_call(rows: Iterable[CollectiveTimes]) -> dict[tuple[str, str], Times]:
    return _sums(((row.line, row.name), (row.time_ns or 0.0, row.skew_ns, row.exposed_ns)) for row in rows)


def _sums(rows: Iterable[tuple[tuple[str, str], Times]]) -> dict[tuple[str, str], Times]:
    found: dict[tuple[str, str], Times] = {}
    for key, times in rows:
        found[key] = tuple(a + b for a, b in zip(found.get(key, (0.0,) * 3), times, strict=True))
    return found


def compared(now: Other, before: Other) -> RanksComparison:
    """Return the differences, now less before; what is equal is left out."""
    ranks = [(rank, *_gaps(now.ranks, before.ranks, rank)) for rank in sorted({*now.ranks, *before.ranks})]
    keys = dict.fromkeys((*now.collectives, *before.collectives))
    calls = [(key, *_gaps(now.collectives, before.collectives, key)) for key in keys]
    return RanksComparison(
        before.name, now.total_time_ns, before.total_time_ns,
        tuple(RankDelta(*row) for row in ranks if any(row[1:])),
        tuple(CollectiveDelta(*key, *gaps) for key, *gaps in calls if any(gaps)),
        deltas(now.lines, before.lines),
    )  # fmt: skip


def _gaps(now: Mapping[Key, Times], before: Mapping[Key, Times], key: Key) -> tuple[float, float, float]:
    one, two = now.get(key, (0.0,) * 3), before.get(key, (0.0,) * 3)
    first, second, third = (round(a - b, 3) for a, b in zip(one, two, strict=True))
    return first, second, third


def saved_ranks(path: Path, out: Report) -> Other:
    """Return what is compared of a profile saved as JSON; FormatError where it is none of several ranks."""
    from neurontools.profile.profiling import line_row, warn_unfinished  # deferred: start-up

    try:
        found = load(read_text(need_file(path)).encode(), "profile")
        found = found.object("result") if "result" in found else found
        if not isinstance(found.raw.get("ranks"), list):
            raise found.fail("ranks", "a list of ranks")
        warn_unfinished(found, path, out)
        ranks = {row.counted("rank"): _finite(row, "time_ns", "compute_ns", "exposed_ns")
                 for row in found.objects("ranks")}  # fmt: skip
        calls = _sums(((row.text("line"), row.text("name")), _called(row)) for row in found.objects("collectives"))
        return Other(found.text("name"), found.finite("total_time_ns"), ranks, calls,
                     tuple(line_row(one) for one in found.objects("lines")))  # fmt: skip
    except FormatError as error:
        wrote = "`neurontools profile run --ranks` with --json wrote"
        raise FormatError(f"is no profile that {wrote} ({error})", path=str(path)) from None


def _finite(row: Fields, *names: str) -> Times:
    return tuple(row.finite(name) for name in names)


def _called(row: Fields) -> Times:
    # A collective that did not end has no time.
    time = 0.0 if row.raw.get("time_ns", 0) is None else row.finite("time_ns")
    return (time, *_finite(row, "skew_ns", "exposed_ns"))
